"""The execution contract: a second engine goes all the way of a recipe, and nothing goes past it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from tests.forecasting.machine_rates import RATES
from tests.training.conftest import LiveRun
from tests.training.test_resume import assert_same, train
from workbench.choices.choice import _REGISTRY, registry
from workbench.client.fork import create_fork
from workbench.forecasting.forecast import forecast
from workbench.recipes.recipe import Recipe
from workbench.store.folder import read_json
from workbench.telemetry.streams import TelemetryWriter
from workbench.training import checkpoint
from workbench.training.evaluate import evaluate, evaluate_run
from workbench.training.forks import as_forked
from workbench.training.loop import Training
from workbench.training.warmup import compile_ahead

Live = Callable[..., LiveRun]
Build = Callable[..., Training]


@pytest.fixture
def second(tiny: Recipe) -> Iterator[Recipe]:
    """``tiny`` under the second engine, which is a choice like any other for the time of a test."""
    from tests.training.scaled import Scaled

    _REGISTRY["execution"]["scaled"] = Scaled
    yield tiny.with_(execution={"kind": "scaled"})
    del _REGISTRY["execution"]["scaled"]


def test_a_recipe_composes_with_it(second: Recipe, tiny: Recipe) -> None:
    assert "scaled" in registry("execution")
    assert Recipe.from_json(second.to_json()) == second
    assert second.with_assignments(["execution.exponent=5"]).execution.exponent == 5
    # What all engines share stays when one gives way to another; what only the other has goes.
    assert second.execution.threads == tiny.execution.threads == 1
    assert second.to_dict()["execution"].keys() == registry("execution")["scaled"].model_fields.keys()


@pytest.mark.parametrize(
    "change",
    [
        {"execution.micro_batch_size": 4},
        pytest.param({"optimizer": "sophia"}, marks=pytest.mark.extended),
        pytest.param({"depth": {"kind": "grow_width"}, "architecture": {"heads": 4}}, marks=pytest.mark.extended),
    ],
)
def test_training_and_scoring_ask_the_engine_alone(
    second: Recipe, tiny: Recipe, build: Build, change: dict[str, object]
) -> None:
    plain, scaled = (build(recipe.with_(**change)) for recipe in (tiny, second))
    for training in (plain, scaled):
        compile_ahead(training)
        training.engine.asked = []  # type: ignore[attr-defined]
        while not training.progress.done:
            training.step()
        training.settle()
    assert list(plain.recorder.recent) == list(scaled.recorder.recent)
    for ours, theirs in zip(scaled.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    parts = 16 // scaled.engine.rows
    asked = scaled.engine.asked  # type: ignore[attr-defined]
    assert asked.count("forward") == 20 * parts
    assert asked.count("backward") >= asked.count("forward")
    assert asked.count("finish") == asked.count("step") == 20
    scores = [evaluate(each.recipe, each.assembled, each.assembled.heldout) for each in (plain, scaled)]
    assert scores[0] == scores[1]


def test_warm_up_rehearses_with_it(second: Recipe, build: Build) -> None:
    training = build(second)
    before = [parameter.clone() for parameter in training.model.parameters()]
    compile_ahead(training)
    assert training.engine.asked[:3] == ["place", "compile", "forward"]  # type: ignore[attr-defined]
    assert training.engine.steps == 0  # type: ignore[attr-defined]
    assert all(map(torch.equal, before, training.model.parameters()))


def test_a_run_resumes_with_its_state(second: Recipe, live: Live) -> None:
    whole, parts = live(second), live(second)
    straight = train(whole)
    assert train(parts, stop_at=7).meta["engine"] == {"steps": 7}
    resumed = train(parts, resume=True)
    assert_same(straight, resumed)
    assert resumed.meta["engine"] == {"steps": 20}
    assert read_json(parts.folder.environment)["scaled_by"] == 8.0
    assert evaluate_run(parts.folder)["heldout_loss"] == evaluate_run(whole.folder)["heldout_loss"]


def test_a_checkpoint_from_before_there_were_engines_resumes(second: Recipe, live: Live) -> None:
    run = live(second.with_(budget={"amount": 5}))
    saved = train(run, stop_at=2)
    shutil.rmtree(run.folder.checkpoints)
    meta = {name: value for name, value in saved.meta.items() if name not in ("engine", "step", "format")}
    checkpoint.save(run.folder.checkpoints, saved.step, saved.tensors, meta | {"scaler": {"steps": 2}})
    assert train(run, resume=True).meta["engine"] == {"steps": 5}


def test_a_fork_under_another_engine_leaves_its_state_behind(second: Recipe, live: Live, tmp_path: Path) -> None:
    parent = live(second.with_(budget={"amount": 5}))
    train(parent, stop_at=2)
    writer = TelemetryWriter(tmp_path)
    for change, left in (({"execution": "native"}, None), ({"execution.exponent": 2}, {"steps": 2})):
        folder, lock = create_fork(parent.folder, change)
        os.close(lock)
        saved = checkpoint.load_latest(folder.checkpoints)
        assert saved is not None
        data = read_json(parent.folder.environment)["data"]
        assert as_forked(folder, saved, Recipe.load(folder.recipe), data, writer).meta["engine"] == left
    writer.close()


def test_a_forecast_prices_its_mode(second: Recipe, tiny: Recipe) -> None:
    assert second.engine().mode == tiny.engine().mode
    assert forecast(second, rates=RATES) == forecast(tiny, rates=RATES)


@pytest.mark.extended
@pytest.mark.process
def test_another_package_brings_an_engine_with_a_process_of_its_own(
    second: Recipe, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trainer moves there before anything is prepared, as the same process."""
    info = tmp_path / "scaled-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scaled\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[workbench.choices]\nscaled = tests.training.scaled\n")
    root = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), root, os.environ.get("PYTHONPATH", "")]))
    run = live(second.with_(budget={"amount": 4}))
    assert run.start().wait() == 0, run.log
    assert run.process is not None
    assert run.state.pid == run.process.pid
    assert read_json(run.folder.environment)["variable"] == "1"
    saved = checkpoint.load_latest(run.folder.checkpoints)
    assert saved is not None
    assert saved.meta["engine"] == {"steps": 4}
