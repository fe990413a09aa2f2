"""A run under a planned execution, from its calibration to its score and its report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.conftest import LiveRun
from tests.training.test_resume import assert_same, train
from workbench.choices.execution import autotune
from workbench.choices.execution.autotune import Plan, PlannedEngine, Trial, remembered
from workbench.choices.execution.execution import Execution
from workbench.cli import main
from workbench.client.run import Run
from workbench.plots.report import report_html
from workbench.recipes.recipe import Recipe
from workbench.store.folder import read_json
from workbench.training.evaluate import evaluate_run

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def lean(tiny: Recipe) -> Recipe:
    """At any price, so that there is always something to plan; of what does not depend on how busy the machine is."""
    execution = {"kind": "memory", "price": 9.0, "threads": 1, "micro_batch_size": tiny.data.most_rows}
    return tiny.with_(execution=execution, budget={"amount": 6})


@pytest.mark.usefixtures("graphs_alone")
@pytest.mark.parametrize("measured", [False, pytest.param(True, marks=pytest.mark.extended)])
def test_a_run_plans_keeps_its_plan_and_is_scored_by_it(
    lean: Recipe, live: Callable[..., LiveRun], measured: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Each with a memory of its own. What a calibration finds is seen below, with the execution that tries less.
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path)
    if not measured:
        why = "least memory within the price"
        trials = tuple(Trial(knob, "layers", 1.2, 0.1, True, why) for knob in ("recompute", "optimizer_states"))
        knobs = {"recompute": "layers", "compile": False}
        earlier = Plan(knobs, trials, 1.2, 0.1, 0.2, date="2026-01-01 00:00 UTC")
        subject = autotune._subject(lean)
        autotune.remember(tmp_path / autotune.FOLDER, autotune.NAME, subject, earlier.to_dict(), 0.0)
    run = live(lean)
    train(run, stop_at=3)
    environment = read_json(run.folder.environment)
    plan = Plan.read(environment["plan"])
    assert plan is not None
    assert {"recompute", "optimizer_states"} <= {trial.knob for trial in plan.trials}
    assert not plan.note
    assert plan.knobs["recompute"] == environment["memory"]["recompute"]
    assert plan.memory_gib is not None
    assert plan.default_gib is not None
    assert plan.memory_gib < plan.default_gib
    assert remembered(lean) == plan
    (event,) = [each for each in run.telemetry.events if each["kind"] == "plan"]
    assert event["text"] == f"execution 'memory': {plan.text} (measured {plan.date})"
    # Whatever is remembered by now, the run goes on as it began.
    other = PlannedEngine(lean, plan._replace(knobs={"optimizer_states": "8bit"}))
    resumed = other.resume(environment)
    assert isinstance(resumed, PlannedEngine)
    assert resumed.plan == plan
    assert_same(train(run, resume=True), train(live(lean)))
    assert evaluate_run(run.folder)["heldout_loss"] > 0
    assert "least memory within the price" in report_html([Run(run.folder.path).view()])


def test_the_command_prints_the_table_and_json(
    tiny: Recipe, live: Callable[..., LiveRun], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = str(live(tiny.with_(execution={"compile": False})).folder.recipe)
    assert main(["plan", "--recipe", recipe]) == 0
    said = capsys.readouterr().out
    assert "beside" in said
    assert "micro_batch_size" in said
    assert "execution 'auto': " in said
    # What `memory` tries is tried above, and takes seconds.
    asked: list[Execution] = []
    plan = Plan({"recompute": "layers"}, (Trial("recompute", "layers", 1.2, 0.1, True, "least"),), 1.2, 0.1, 0.2)
    monkeypatch.setattr(autotune, "calibrate", lambda recipe, say: asked.append(recipe.execution) or plan)
    memory = ["--set", "execution=memory", "--set", f"execution.micro_batch_size={tiny.data.most_rows}"]
    assert main(["plan", "--recipe", recipe, *memory, "--json"]) == 0
    assert Plan.read(json.loads(capsys.readouterr().out)) == plan
    assert [(each.kind, each.micro_batch_size) for each in asked] == [("memory", tiny.data.most_rows)]
