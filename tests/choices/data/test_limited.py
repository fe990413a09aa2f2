"""A fixed sample of the training text: whole documents, the same for every recipe, counted anew."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.choices.data.orders.slow import prepared_of
from workbench.base.errors import DataError
from workbench.choices.data import Files
from workbench.choices.data.limited import limited
from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokens import TokenStore

DOCUMENTS = [[10 + number] * (1 + number % 9) for number in range(40)]
PREPARED = prepared_of(DOCUMENTS)


def documents_of(store: TokenStore) -> list[tuple[int, ...]]:
    return [tuple(store.ids_N[begin:end].tolist()) for begin, end in pairwise(store.offsets_D1)]


def test_a_sample_is_whole_documents_in_their_order_and_part_of_a_larger_one() -> None:
    whole, small, large = (
        documents_of(each.train) for each in (PREPARED, limited(PREPARED, 60), limited(PREPARED, 150))
    )
    assert small == [each for each in whole if each in {*small}], "in the order of the corpus"
    assert {*small} < {*large} < {*whole}
    assert 60 - 11 < sum(map(len, small)) <= 60
    found = limited(PREPARED, 60)
    assert np.array_equal(found.counts_V, np.bincount([token for each in small for token in each], minlength=64))
    assert found.fingerprint["train"]["sha256"] != limited(PREPARED, 150).fingerprint["train"]["sha256"]


def test_a_limit_above_the_text_changes_nothing_and_one_below_a_document_is_refused() -> None:
    assert limited(PREPARED, 10_000) is PREPARED
    with pytest.raises(DataError, match=r"data\.tokens_limit: 2 tokens hold no document"):
        limited(PREPARED, 2)


def test_the_cache_entry_and_the_heldout_text_stay(tmp_path: Path, sentences) -> None:
    (tmp_path / "text.txt").write_text("\n\n".join(sentences(300)), encoding="utf-8")
    data = {"paths": (str(tmp_path / "text.txt"),), "document_characters": 1, "sequence_length": 16, "batch_size": 2,
            "tokenizer": {"kind": "trained", "vocabulary_size": 128}}  # fmt: skip
    whole, part = prepare(Files(**data), say=str), prepare(Files(**data, tokens_limit=800), say=str)
    assert part.fingerprint["key"] == whole.fingerprint["key"]
    assert np.array_equal(part.heldout.ids_N, whole.heldout.ids_N)
    assert 600 < part.train.tokens <= 800 < whole.train.tokens
    with pytest.raises(DataError, match="too small: 7"):
        prepare(Files(**data | {"batch_size": 64}, tokens_limit=800), say=str)


def test_epochs_of_the_sample_are_told() -> None:
    order = Files(paths=("x",), sequence_length=8).row_order(limited(PREPARED, 100), 0)
    assert order.read(0) == {"data.epochs": 0.0}
    assert order.read(3 * order.rows) == {"data.epochs": 3.0}
