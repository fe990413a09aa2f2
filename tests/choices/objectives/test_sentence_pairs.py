"""Pairs of segments: made of the right text, balanced, found again in rows, refused where there are no sentences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from workbench.base.errors import DataError
from workbench.choices.data.order import RowOrder
from workbench.choices.data.pieces import Pieces
from workbench.choices.data.tokens import TokenStore, Vocabulary
from workbench.choices.objectives.masked import MaskedModel
from workbench.choices.objectives.objective import Builder
from workbench.choices.objectives.sentence_pairs import PairedRows, Sentence, changed, check_sentences, pairs_of
from workbench.recipes.recipe import Recipe

from .test_token_prediction import PLAN, START

NAMES = ("[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", ".", *(f"w{token}" for token in range(6, 60)))
VOCABULARY = Vocabulary(size=64, used=60, cls=1, sep=2, mask=3, pad=0, unk=4, pieces=Pieces(NAMES, "##"))


def store(sentences: int = 6, documents: int = 40) -> TokenStore:
    """Documents whose tokens tell where they stand: no two places of the text have the same six tokens."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(documents):
        sizes = rng.integers(4, 12, sentences)
        found.append([1, *(token for size in sizes for token in [*rng.integers(6, 60, size), 5]), 2])
    return TokenStore(np.concatenate(found).astype(np.uint16), np.cumsum([0, *map(len, found)]))


def place_of(store: TokenStore, part: list[int]) -> int:
    windows = np.lib.stride_tricks.sliding_window_view(store.ids_N, len(part))
    (found,) = np.flatnonzero((windows == part).all(1))
    return int(found)


@pytest.mark.parametrize("sentence", ["order", "next"])
@pytest.mark.parametrize("length", [24, 64])
def test_pairs_are_consecutive_swapped_or_of_two_documents(sentence: Sentence, length: int) -> None:
    text = store()
    plain = RowOrder(text, length, 3)
    batch = PairedRows(plain, VOCABULARY, sentence).batch(np.arange(40))
    first_B, paired_B = pairs_of(batch, VOCABULARY.sep)
    labels = changed(batch, 3).tolist()
    before, ours = plain.batch(np.arange(40)), 0
    assert torch.equal(before.positions_BT, batch.positions_BT)
    assert torch.equal(before.documents_BT, batch.documents_BT)
    for row in range(40):
        if not paired_B[row]:
            assert torch.equal(batch.tokens_BT[row], before.tokens_BT[row])
            continue
        begin = int(first_B[row]) - row * length
        document = batch.documents_BT[row] == batch.documents_BT[row, begin]
        assert torch.equal(batch.tokens_BT[row][~document], before.tokens_BT[row][~document])
        piece = batch.tokens_BT[row][document].tolist()
        middle = piece.index(2)
        a, b = piece[1:middle], piece[middle + 1 : -1]
        assert (piece[0], piece[-1], len(a) + len(b) + 3) == (1, 2, len(piece))
        ours += 1
        if min(len(a), len(b)) < 6:
            continue
        at_a, at_b = place_of(text, a), place_of(text, b)
        document_a, document_b = (int(np.searchsorted(text.offsets_D1, at, side="right")) for at in (at_a, at_b))
        if not labels[row]:
            assert (at_b, a[-1]) == (at_a + len(a), 5)
        elif sentence == "order":
            assert (at_a, b[-1]) == (at_b + len(b), 5)
        else:
            assert document_a != document_b
            assert text.ids_N[at_b - 1] in (1, 5), "from the beginning of a sentence"
    assert ours >= 30
    assert 10 < sum(labels) < 30


def test_rows_depend_on_the_sample_and_the_seed_alone() -> None:
    text = store()
    order = PairedRows(RowOrder(text, 48, 3), VOCABULARY, "next")
    whole = order.batch(np.arange(12)).tokens_BT
    assert torch.equal(order.batch(np.array([7, 2])).tokens_BT, whole[[7, 2]])
    assert not torch.equal(PairedRows(RowOrder(text, 48, 4), VOCABULARY, "next").batch(np.arange(12)).tokens_BT, whole)
    assert order.of_length(48) is order
    assert isinstance(order.of_length(24), PairedRows)


def test_its_loss_is_that_of_a_classifier_at_cls() -> None:
    recipe = Recipe(
        objective={"kind": "masked", "sentence": "order", "sentence_weight": 0.5},
        architecture={"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2},
    )
    model = recipe.objective.build(Builder(recipe.architecture, VOCABULARY, 64, 3))
    assert isinstance(model, MaskedModel)
    batch = recipe.objective.arrange(RowOrder(store(), 64, 3), VOCABULARY).batch(np.arange(6))
    result, counts = model(batch, PLAN, START), model.counts(batch, START)
    first_B, paired_B = pairs_of(batch, 2)
    seen, head = model.labelled(batch, START), model.sentences
    assert head is not None
    x_BD = model.backbone(seen.tokens_BT, batch, PLAN).flatten(0, 1)[first_B]
    logits = torch.tanh(x_BD @ head.pool.weight.T + head.pool.bias) @ head.classify.weight.T + head.classify.bias
    labels = changed(batch, 3)
    nats = F.cross_entropy(logits[paired_B], labels[paired_B], reduction="sum")
    assert result.parts["sentence"].item() == pytest.approx(nats.item(), rel=1e-5)
    hits = (logits.argmax(1) == labels)[paired_B].sum()
    assert result.metrics["sentence_accuracy"].item() == hits.item()
    assert counts["sentence"] == int(paired_B.sum())
    assert result.parts["loss"].item() == pytest.approx(
        model.score(model.states(seen, batch, PLAN), seen.labels_N, seen.weight_N)[0].item(), rel=1e-5
    )
    assert model.weights(START) == {"sentence": 0.5}


def test_documents_of_one_sentence_are_refused_with_their_share() -> None:
    check_sentences(store(), VOCABULARY, "order")
    with pytest.raises(DataError, match=r"objective\.sentence 'order' needs .* and 100% of the 40 have one only; use"):
        check_sentences(store(sentences=1), VOCABULARY, "order")
    with pytest.raises(DataError, match="sentence 'next' needs documents"):
        check_sentences(store(documents=1), VOCABULARY, "next")
