"""Likelihoods in batches of equal lengths against one row at a time, written as the definition says."""

from __future__ import annotations

import pytest
import torch

import workbench.scoring.reader as reader_module
from tests.scoring.conftest import PAIRS
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.client.run import Run
from workbench.models.export import run_tokenizer
from workbench.scoring.reader import Ids, Pair, Reader
from workbench.training.restored import restore

pytestmark = pytest.mark.process


@pytest.fixture(scope="session")
def reader(run: Run) -> Reader:
    recipe, trained, _ = restore(run.folder)
    return Reader(trained, run_tokenizer(run.folder), recipe.architecture.layers)


def probabilities(reader: Reader, row: Ids) -> torch.Tensor:
    """Log-probabilities (T, V) from the head on every position of one row, without any of the reader's batching."""
    tokens = torch.tensor([row])
    batch = Batch(tokens, torch.arange(len(row))[None], torch.zeros_like(tokens, dtype=torch.int32), torch.zeros(1))
    with torch.no_grad():
        states = reader.model.backbone(tokens, batch, LayerPlan.full(2))
        return reader.model.head(states)[0].log_softmax(-1)


def slow(reader: Reader, pair: Pair, at_once: bool = False) -> float:
    """The definition: each token after those before it, or behind a [MASK] in its place."""
    context, text = pair
    row = [reader.vocabulary.cls, *context, *text]
    total = 0.0
    if reader.causal:
        row = row[-(reader.longest + 1) :]
        for place in range(max(1, len(row) - len(text)), len(row)):
            total += probabilities(reader, tuple(row[:place]))[-1, row[place]].item()
        return total
    row = [*row, reader.vocabulary.sep][-reader.longest :]
    places = range(max(0, len(row) - 1 - len(text)), len(row) - 1)
    for place in places:
        hidden = [reader.vocabulary.mask if at == place or (at_once and at in places) else token
                  for at, token in enumerate(row)]  # fmt: skip
        total += probabilities(reader, tuple(hidden))[place, row[place]].item()
    return total


@pytest.mark.parametrize("at_once", [False, True])
def test_likelihoods_equal_the_definition(reader: Reader, at_once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = reader.pairs([("", text) for good, bad, _ in PAIRS for text in (good, bad)])
    pairs += reader.pairs([("he said that", " she came"), ("word " * 60, " at the end"), ("", "a " * 60), ("", "")])
    # Small batches, so that groups are cut.
    monkeypatch.setattr(reader_module, "_TOKENS", 64)
    told: list[float] = []
    found = reader.likelihoods(pairs, at_once=at_once, tell=told.append)
    assert found.nats_P.tolist() == pytest.approx([slow(reader, pair, at_once) for pair in pairs], rel=1e-5)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert found.cut_P.tolist() == [False] * 11 + [True, True, False]
    assert found.tokens_P[-1] == 0
    # Equal sentences get equal numbers, to the last bit.
    assert found.nats_P[6] == found.nats_P[7]


def test_the_first_choice_is_the_likeliest_token(reader: Reader) -> None:
    context = reader.ids("he said")
    row = (reader.vocabulary.cls, *context)
    tail = () if reader.causal else (reader.vocabulary.mask, reader.vocabulary.sep)
    # The logits of the next token stand at the one before it, those of a hidden one at its own place.
    said = probabilities(reader, (*row, *tail))[len(row) - int(reader.causal)]
    best, worst = int(said.argmax()), int(said.argmin())
    found = reader.likelihoods([(context, (best,)), (context, (worst,))])
    assert found.likeliest_P.tolist() == [True, False]
