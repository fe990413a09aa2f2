"""The peer's data, its stops between rounds, and that it computes what we compute: real Trainer, tiny model."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.bench.here import said
from workbench.bench import timed_trainer
from workbench.bench.contender import Stage
from workbench.bench.peers import same_maths, trainer
from workbench.choices.data.order import RowOrder
from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokens import TokenStore
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Progress
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.batches import StepShape, step_batch

pytest.importorskip("transformers", reason="needs the package transformers")
from workbench.bench import peer_transformers
from workbench.bench.peer_transformers import IGNORED, Rounds, Rows, ignoring
from workbench.bench.timed_trainer import PeakMemory


def test_the_peer_reads_our_rows_in_our_order() -> None:
    order = RowOrder(TokenStore(np.arange(64, dtype=np.uint16), np.arange(0, 65, 8)), 16, seed=0)
    rows = Rows(order, 1000)
    assert len(rows) == 1000
    ours = order.batch(np.arange(8)).tokens_BT
    assert torch.equal(torch.stack([rows[index]["input_ids"] for index in range(8)]), ours), "the second epoch, too"


def test_rounds_stop_the_loop_and_tell_their_own_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"steps": 3}\n{"steps": 1}\n'))
    monkeypatch.setattr(sys, "stdout", out)
    rounds = Rounds(Stage(), warmup=2, tokens_per_step=10, ready={"parameters": 7})
    control, taken = SimpleNamespace(should_training_stop=False), 0
    while not control.should_training_stop:
        taken += 1
        rounds.losses.append(torch.tensor(float(taken)))
        rounds.on_step_end(None, None, control)
    said = [json.loads(line) for line in out.getvalue().splitlines()]
    assert taken == 2 + 3 + 1
    assert said[0]["ready"]["parameters"] == 7
    assert said[0]["ready"]["compile_wall_seconds"] <= said[0]["ready"]["warmup"]["seconds"]
    assert [answer["tokens"] for answer in said[1:]] == [30, 10]
    assert [said[0]["ready"]["warmup"]["losses"], *(answer["losses"] for answer in said[1:])] == [
        [1, 2],
        [3, 4, 5],
        [6],
    ]
    assert all(answer["seconds"] >= 0 for answer in said[1:])


def losses(module: object, setting: dict, monkeypatch: pytest.MonkeyPatch) -> tuple[list[float], int]:
    """Of ten steps in this process, and the number of parameters."""
    ready, answer = said(module, {"warmup": 4, **setting}, '{"steps": 6}\n', monkeypatch)
    return ready["ready"]["warmup"]["losses"] + answer["losses"], ready["ready"]["parameters"]


def test_the_same_maths_has_the_same_losses(tiny: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = same_maths(tiny).with_(execution={"precision": "fp32", "compile": False}, architecture={"dropout": 0.0})
    theirs, theirs_parameters = losses(peer_transformers, trainer(tiny, dropout=0.0, same_masks=True), monkeypatch)
    for head in ("labelled", "all"):
        setting = {"recipe": recipe.with_(execution={"head": head}).to_dict(), "grouped": True}
        ours, parameters = losses(timed_trainer, setting, monkeypatch)
        assert parameters == theirs_parameters
        assert len(ours) == len(theirs) == 10
        assert ours == pytest.approx(theirs, abs=1e-4)
    # Where documents are kept apart the losses are others: the comparison can fail.
    apart, _ = losses(timed_trainer, {"recipe": recipe.to_dict()}, monkeypatch)
    assert max(abs(a - b) for a, b in zip(apart, theirs, strict=True)) > 1e-3
    assert len(set(theirs)) == 10


@pytest.mark.parametrize("module", [peer_transformers, timed_trainer])
def test_what_every_process_loads_is_nobodys_memory(module: Any, tiny: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler and libraries of products, before memory is watched: of the Trainer as of ours."""
    order: list[str] = []
    begin = PeakMemory.__enter__

    def watched(memory: PeakMemory) -> PeakMemory:
        order.append("watched")
        return begin(memory)

    monkeypatch.setattr(module, "load_what_all_need", lambda: order.append("loaded"))
    monkeypatch.setattr(PeakMemory, "__enter__", watched)
    (ready,) = said(module, {"warmup": 1, "memory": True, **trainer(tiny)}, "", monkeypatch)
    assert order == ["loaded", "watched"]
    assert ready["ready"]["compile_wall_seconds"] == 0.0, "neither compiles: a first step is none"


def test_labels_of_transformers_are_ours_where_they_count(tiny: Recipe) -> None:
    assembled = assemble(tiny, prepare(tiny.data))
    model = assembled.model
    assert isinstance(model, TokenPrediction)
    batch = step_batch(assembled.order, 0, StepShape(4, tiny.data.longest, 4)).parts[0]
    start = Progress(step=0, tokens=0, seconds=0.0, budget=tiny.budget)
    seen, count = model.labelled(batch, start), model.counts(batch, start)["loss"]
    labels_BT = ignoring(seen)
    places = (labels_BT != IGNORED).flatten().nonzero().flatten()
    assert torch.equal(places, seen.index_N)
    assert torch.equal(labels_BT.flatten()[places], batch.tokens_BT.flatten()[places])
    assert len(places) == count
    # A slot that weighs nothing has no label either.
    lighter = seen._replace(weight_N=seen.weight_N.clone())
    lighter.weight_N[0] = 0
    assert int((ignoring(lighter) != IGNORED).sum()) == count - 1
