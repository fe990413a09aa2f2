"""Notes of rare words against loops over words, as dictionaries of tuples of tokens."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.forecasting.machine_rates import RATES
from workbench.base.errors import RecipeError
from workbench.choices.architectures.notes.rare_words import RareWordNotes, RareWords
from workbench.choices.data.pieces import Pieces
from workbench.choices.data.tokens import Batch, TokenStore, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.objective import Builder, TrainingModel
from workbench.choices.progress import Budget, Progress
from workbench.forecasting.forecast import forecast
from workbench.recipes.recipe import Recipe

# Ids 0 to 4 are special; 5 to 14 begin words, 15 to 19 continue them.
NAMES = ("[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", *"abcdefghij", *(f"##{c}" for c in "klmno"))
VOCABULARY = Vocabulary(
    size=64, used=20, cls=1, sep=2, mask=3, pad=0, unk=4, pieces=Pieces(NAMES, "##")
)  # fmt: skip
CHOICE = RareWords(fewest=3, most=40, words=200, window=2, share=0.25, rate=0.5)
LENGTH, WIDTH = 24, 8


def text_of(documents: int, seed: int) -> TokenStore:
    draw = np.random.default_rng(seed)
    pieces = [np.r_[1, draw.integers(5, 20, draw.integers(3, 30)), 2] for _ in range(documents)]
    return TokenStore(np.concatenate(pieces).astype(np.uint16), np.cumsum([0, *map(len, pieces)]))


def batch_of(text: TokenStore, rows: int) -> Batch:
    """Documents one after another, cut where a row ends."""
    tokens = torch.from_numpy(text.ids_N[: rows * LENGTH].astype(np.int64)).view(rows, LENGTH)
    places = torch.zeros_like(tokens)
    pieces = torch.zeros_like(tokens, dtype=torch.int32)
    for row in range(rows):
        for t in range(1, LENGTH):
            new = tokens[row, t] == VOCABULARY.cls
            places[row, t] = 0 if new else places[row, t - 1] + 1
            pieces[row, t] = pieces[row, t - 1] + new.int()
    return Batch(tokens, places, pieces, torch.arange(rows))


def words_of(tokens: list[int], positions: list[int]) -> list[tuple[int, int, tuple[int, ...]]]:
    """First place, place after the last, and tokens of each word of a row."""
    starts = [t for t, token in enumerate(tokens) if token < 15 or positions[t] == 0]
    return [(a, b, tuple(tokens[a:b])) for a, b in zip(starts, [*starts[1:], len(tokens)], strict=True)]


def rare(text: TokenStore) -> set[tuple[int, ...]]:
    counts: Counter[tuple[int, ...]] = Counter()
    for begin, end in zip(text.offsets_D1[:-1], text.offsets_D1[1:], strict=True):
        ids = text.ids_N[begin:end].tolist()
        counts.update(word for _, _, word in words_of(ids, list(range(len(ids)))) if word[0] > 4)
    return {word for word, many in counts.items() if 3 <= many <= 40}


class Slow:
    """Notes as a dictionary."""

    def __init__(self, words: set[tuple[int, ...]]) -> None:
        self.words = words
        self.notes: dict[tuple[int, ...], Tensor] = {}

    def read(self, x: Tensor, shown: Tensor, batch: Batch) -> Tensor:
        x = x.clone()
        for row, tokens in enumerate(batch.tokens_BT.tolist()):
            for a, b, word in words_of(tokens, batch.positions_BT[row].tolist()):
                if word in self.notes and shown[row, a:b].tolist() == list(word):
                    x[row, a:b] = 0.75 * x[row, a:b] + 0.25 * self.notes[word]
        return x

    def write(self, x: Tensor, batch: Batch) -> None:
        found: dict[tuple[int, ...], list[Tensor]] = {}
        for row, tokens in enumerate(batch.tokens_BT.tolist()):
            pieces = batch.documents_BT[row].tolist()
            for a, b, word in words_of(tokens, batch.positions_BT[row].tolist()):
                if word in self.words:
                    near = [t for t in range(a - 2, b + 2) if 0 <= t < LENGTH and pieces[t] == pieces[a]]
                    found.setdefault(word, []).append(x[row, near].double().mean(0))
        for word, means in found.items():
            new = torch.stack(means).mean(0)
            self.notes[word] = 0.5 * self.notes[word] + 0.5 * new if word in self.notes else new


def notes_of(text: TokenStore) -> RareWordNotes:
    notes = CHOICE.build(VOCABULARY, LENGTH, WIDTH)
    notes.study(text)
    return notes


def test_reading_and_writing_equal_a_loop_over_words() -> None:
    text = text_of(400, 0)
    fast, slow = notes_of(text), Slow(rare(text))
    assert 20 < len(slow.words) == int((fast.words_W != torch.iinfo(torch.int64).max).sum())
    generator = torch.Generator().manual_seed(0)
    for step in range(3):
        batch = batch_of(text_of(60, step), 8)
        x = torch.randn(8, LENGTH, WIDTH, generator=generator)
        hidden = (torch.rand(8, LENGTH, generator=generator) < 0.15) & (batch.tokens_BT > 4)
        shown = batch.tokens_BT.masked_fill(hidden, VOCABULARY.mask)
        read = fast.read(x, shown, batch)
        assert torch.allclose(read, slow.read(x, shown, batch).float(), atol=1e-6)
        assert (read != x).any() == (step > 0)
        fast.write(x, batch)
        slow.write(x, batch)
    assert int(fast.written_W.sum()) == len(slow.notes) > 10


def model_of(**architecture: Any) -> tuple[TrainingModel, Batch]:
    torch.manual_seed(0)
    notes = CHOICE.model_dump()
    recipe = Recipe(
        architecture={"kind": "pre_ln", "layers": 2, "width": WIDTH, "heads": 2, "notes": notes, **architecture}
    )
    model = recipe.objective.build(Builder(recipe.architecture, VOCABULARY, LENGTH))
    text = text_of(400, 0)
    model.backbone.study(text)
    return model, batch_of(text, 8)


def test_training_steps_take_notes_and_scores_do_not_read_them() -> None:
    model, batch = model_of()
    plan, start = LayerPlan.full(2), Progress(0, 0, 0.0, Budget())
    book = model.backbone.notebook
    assert isinstance(book, RareWordNotes)
    first = model(batch, plan, start).parts["loss"]
    written = book.notes_WD.clone()
    assert written.abs().sum() > 0
    second = model(batch, plan, start).parts["loss"]
    assert first.item() != second.item(), "the second pass reads what the first has noted"
    assert not torch.equal(book.notes_WD, written)
    second.backward()
    model.eval()
    kept = book.notes_WD.clone()
    seen = model.labelled(batch, start)  # type: ignore[operator]
    with torch.no_grad():
        scored = model.heldout(batch, seen, plan)
        book.notes_WD.zero_()
        assert torch.equal(model.heldout(batch, seen, plan), scored)
    assert kept.abs().sum() > 0


def test_labelled_rows_are_those_of_all_positions() -> None:
    model, batch = model_of()
    model.train()
    rows = torch.tensor([3, 30, 77])
    plan = LayerPlan.full(2)
    some = model.backbone(batch.tokens_BT, batch, plan, rows)
    model.backbone.notebook.written_W.zero_()  # type: ignore[union-attr, operator]
    assert torch.equal(model.backbone(batch.tokens_BT, batch, plan).flatten(0, 1)[rows], some)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"objective": "causal"}, "betray"),
        ({"objective": "replaced_token"}, "betray"),
        ({"depth": {"kind": "grow_width"}}, "changes the width"),
        ({"execution": {"kind": "native", "padding": "kept"}}, "which tokens are true"),
        ({"execution": {"kind": "native", "compile_scope": "step"}}, "compiles no notes"),
        (
            {"architecture": {"kind": "pre_ln", "notes": {"kind": "rare_words", "fewest": 9, "most": 3}}},
            "no word occurs",
        ),
    ],
)
def test_what_cannot_take_notes_is_refused(changes: dict[str, Any], why: str) -> None:
    given = {"architecture": {"kind": "pre_ln", "notes": "rare_words"}, **changes}
    with pytest.raises(RecipeError, match=why):
        Recipe(**given)
    with pytest.raises(RecipeError, match="several processes"):
        Recipe(architecture={"kind": "pre_ln", "notes": "rare_words"}).check_together(2)


def test_the_forecast_counts_the_notes() -> None:
    given = {"kind": "pre_ln", "layers": 2, "width": 64, "heads": 2}
    plain, noted = (
        forecast(Recipe(architecture=given | {"notes": notes}), rates=RATES).memory["weights"]
        for notes in ("none", {"kind": "rare_words", "words": 1000})
    )
    assert 1000 * (4 * 64 + 9) <= noted - plain < 1000 * (4 * 64 + 9) + 300_000
