"""A run that fine-tunes, from its folder to its scores."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.corpus import CYCLE
from workbench.base.errors import RunError
from workbench.experiments.finetune.encoder import Encoder
from workbench.experiments.finetune.finetuning_plan import Job, plan_finetuning
from workbench.recipes.recipe import Recipe
from workbench.store.evaluations import read_evaluations, scores_by_step
from workbench.store.folder import RunFolder
from workbench.training import worker
from workbench.training.checkpoint import load_latest
from workbench.training.examples import ExampleTask, main
from workbench.training.session import Session
from workbench.training.status import Status


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences whose label is whether a certain word is among them."""
    path, dice = tmp_path_factory.mktemp("task") / "reviews.csv", random.Random(0)
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(("review", "stars"))
        for _ in range(300):
            words = dice.sample(CYCLE[1:], 5) + [CYCLE[0]] * dice.randrange(2)
            lines.writerow((" ".join(dice.sample(words, len(words))), "good" if CYCLE[0] in words else "bad"))
    return path


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> RunFolder:
    """A run of five steps."""
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "20260101-000000-encoder-aaaaaa-0000")
    folder.path.mkdir()
    Recipe(
        name="encoder",
        data={"kind": "files", "paths": [str(corpus)], "tokenizer": {"kind": "trained", "vocabulary_size": 256},
              "sequence_length": 32, "batch_size": 8},
        architecture={"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2},
        execution={"kind": "native", "device": "cpu", "precision": "fp32", "compile": False, "threads": 1,
                   "attention": "plain"},
        budget={"amount": 5, "unit": "steps", "evaluations": 1, "evaluation_tokens": 1024},
    ).save(folder.recipe)  # fmt: skip
    assert worker.main([str(folder.path)]) == 0
    return folder


@pytest.fixture
def tuned(tmp_path: Path, encoder: RunFolder, reviews: Path) -> Callable[..., RunFolder]:
    """``tuned(start="trained", **changes)`` -> the folder of a run that has not begun."""

    def _tuned(start: str = "trained", name: str = "run", **changes: Any) -> RunFolder:
        plan = plan_finetuning(str(encoder.path), reviews, text="review", label="stars", rates=[3e-3], untrained=True,
                               changes=[*changes.items()])  # fmt: skip
        folder = RunFolder(tmp_path / name)
        folder.path.mkdir()
        plan.encoder.put_into(folder, recipe := plan.recipe_of(Job(start, 3e-3, 0))).save(folder.recipe)
        assert recipe.objective.labels == ("bad", "good")
        return folder

    return _tuned


def test_a_task_is_learned_and_scored(tuned: Callable[..., RunFolder], capsys: pytest.CaptureFixture[str]) -> None:
    folder = tuned(**{"budget.amount": 150})
    assert worker.main([str(folder.path)]) == 0, folder.state.read_text()
    scores = scores_by_step(folder)
    assert list(scores) == [50, 100, 150]
    last = scores[150]
    assert last["reviews dev accuracy"].value > 0.9
    assert (last["reviews dev accuracy"].unit, last["reviews dev accuracy"].better) == ("share", "higher")
    # The whole of what settings are chosen on.
    assert last["reviews dev accuracy"].count == 24
    evaluations = read_evaluations(folder)
    assert evaluations["score"]["kind"] == "examples"
    assert evaluations["result"]["learned"] is None
    assert evaluations["result"]["heldout_loss"] == last["heldout_loss"].value < 0.3
    capsys.readouterr()
    assert main([str(folder.path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["examples"] == 60
    assert found["scores"]["accuracy"] > 0.85
    assert 0.3 < found["baseline"]["accuracy"] < 0.7
    folder.tokenizer.unlink()
    assert main([str(folder.path)]) == 2
    assert "does not hold the tokenizer" in json.loads(capsys.readouterr().out)["error"]


def test_a_run_begins_with_the_encoder_and_its_twin_without(
    tuned: Callable[..., RunFolder], encoder: RunFolder
) -> None:
    theirs = load_latest(encoder.checkpoints)
    assert theirs is not None
    same = {}
    for start in ("trained", "untrained"):
        folder = tuned(start, start, **{"budget.amount": 1, "optimizer.schedule": {"kind": "linear", "start": 0.0}})
        assert worker.main([str(folder.path)]) == 0
        ours = load_latest(folder.checkpoints)
        assert ours is not None
        names = [name for name in theirs.tensors["model"] if name.startswith("backbone.")]
        same[start] = all(torch.equal(ours.tensors["model"][name], theirs.tensors["model"][name]) for name in names)
        assert set(ours.tensors["model"]) - set(names) == {"head.weight", "head.bias"}
    assert same == {"trained": True, "untrained": False}


def test_a_run_that_is_resumed_repeats_bit_for_bit(tuned: Callable[..., RunFolder]) -> None:
    whole, parts = tuned(name="whole", **{"budget.amount": 12}), tuned(name="parts", **{"budget.amount": 12})
    assert worker.main([str(whole.path)]) == 0
    assert _stopped_after(parts, 6) == "stopped"
    assert worker.main([str(parts.path), "--resume"]) == 0
    first, second = load_latest(whole.checkpoints), load_latest(parts.checkpoints)
    assert first is not None
    assert second is not None
    assert first.step == second.step == 12
    for name, tensor in first.tensors["model"].items():
        assert torch.equal(tensor, second.tensors["model"][name]), name


def _stopped_after(folder: RunFolder, step: int) -> str:
    status = Status(folder)
    session = Session(folder, status, False)
    taken = session.training.step

    def counted() -> None:
        taken()
        if session.training.progress.step == step:
            session.stop("enough")

    session.training.step = counted  # type: ignore[method-assign]
    try:
        return session.run()
    finally:
        status.close()


def test_scores_during_training_see_every_class_of_labels_that_take_turns(encoder: RunFolder, tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    parts = ["train"] * 20 + ["dev"] * 1200 + ["test"] * 20
    path.write_text("".join(
        json.dumps({"split": part, "text": CYCLE[n % 7], "label": "ab"[n % 2]}) + "\n" for n, part in enumerate(parts)
    ))  # fmt: skip
    plan = plan_finetuning(str(encoder.path), path, text="text", label="label", rates=[3e-3])
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    recipe = plan.encoder.put_into(folder, plan.recipe_of(Job("trained", 3e-3, 0)))
    task = ExampleTask(recipe)
    task.prepare(folder, False, lambda _line: None)
    assert len(task._few) == 300
    assert 0.4 < task._few.targets.mean() < 0.6


def test_an_encoder_says_what_it_lacks(encoder: RunFolder) -> None:
    with pytest.raises(RunError, match="has no checkpoint of step 3; it has those of 5"):
        Encoder.of(str(encoder.path), 3)
    assert Encoder.of(str(encoder.path)).step == 5
