"""Vocabulary, store and batch: the facts that models, objectives and evaluation read off them."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from workbench.choices.data.tokens import Batch, TokenStore, Vocabulary


@given(st.lists(st.integers(1, 50), max_size=40))
def test_a_store_counts_what_its_offsets_say(lengths: list[int]) -> None:
    offsets_D1 = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    store = TokenStore(np.zeros(sum(lengths), np.uint16), offsets_D1)
    assert store.documents == len(lengths)
    assert store.tokens == sum(lengths)
    assert isinstance(store.tokens, int), "a numpy integer would not go into JSON"


def test_special_ids_are_listed_once_though_parts_share_them() -> None:
    # GPT-2's own tokenizer: <|endoftext|> is start, end and padding at once.
    gpt2 = Vocabulary(size=50_304, used=50_258, cls=50_256, sep=50_256, mask=50_257, pad=50_256, unk=50_256)
    assert gpt2.special == (50_256, 50_257)
    bert = Vocabulary(size=512, used=500, cls=2, sep=3, mask=4, pad=0, unk=1)
    assert bert.special == (0, 2, 3, 4)
    assert bert.unk not in bert.special, "an unknown word is a word: it is labelled and predicted like any other"


def test_a_batch_moves_whole_and_keeps_its_types() -> None:
    batch = Batch(
        torch.arange(6).reshape(2, 3), torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 3, dtype=torch.int32),
        torch.tensor([4, 5]),
    )  # fmt: skip
    moved = batch.to("meta")
    assert {tensor.device.type for tensor in moved} == {"meta"}
    assert [tensor.dtype for tensor in moved] == [tensor.dtype for tensor in batch]
    assert moved.tokens_BT.shape == (2, 3)
    for here, there in zip(batch, batch.to("cpu"), strict=True):
        assert torch.equal(here, there)
