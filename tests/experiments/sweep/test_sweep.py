"""``wb.sweep`` and one that is held: real runs, a driver that is killed, a handle in another process's place."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

import workbench as wb
from tests.experiments.drivers import drivers_in
from tests.experiments.sweep.conftest import Planned, held
from tests.forecasting.machine_rates import RATES
from tests.tiny_runs import wait_until
from workbench.base.errors import RunError, RunFailed
from workbench.client.run_list import runs
from workbench.experiments.experiment_folder import SweepFolder
from workbench.experiments.sweep.sweep import Sweep, begin
from workbench.recipes.recipe import Recipe
from workbench.store.folder import write_json


@pytest.mark.extended
@pytest.mark.process
def test_a_sweep_survives_its_driver_and_trains_every_run_once(tiny: Recipe, root: Path) -> None:
    said: list[str] = []
    sweep = wb.sweep(
        tiny.with_(objective="causal"), {"optimizer.lr": [1e-2, 1e-4]}, budget="40 steps", name="rates",
        runs_dir=root, rates=RATES, say=said.append,
    )  # fmt: skip
    assert isinstance(sweep, Sweep)
    assert any(line.startswith("2 points, 2 runs") for line in said)
    wait_until(lambda: len(runs(root)) >= 1, what="the first launch")
    (driver,) = drivers_in(SweepFolder.root(root))
    driver.kill()
    wait_until(lambda: sweep.status == "interrupted", what="the end of the driver")
    # Whoever waits brings it a new driver; found by its name, as another process would.
    found = wb.experiment("rates", root).wait(240)
    assert isinstance(found, dict)
    assert found["status"] == "finished", found["summary"]
    assert [point["status"] for point in found["points"]] == ["done"] * 2
    assert found["best"]["point"] == 0
    assert found["importance"] == {}
    assert len(runs(root)) == 2
    launched = [event["run"] for event in sweep.folder.read_events() if event["kind"] == "launched"]
    # The one that stood between launch and event when the driver was killed has none.
    assert len(launched) == len(set(launched)) >= 1
    assert sweep.run(0).result["heldout_loss"] == found["best"]["score"]
    json.dumps(found)


def test_a_sweep_is_opened_and_gives_its_runs_and_recipes(planned: Planned, root: Path) -> None:
    plan, points = planned(name="mine", seeds=2)
    sweep = held((plan, points))
    for which in (plan.id, plan.id[:24], "mine", sweep.folder.path, str(sweep.folder.path)):
        assert wb.experiment(which, root).id == plan.id
    assert sweep.summary == sweep.wait_blocking(1)["summary"] == repr(sweep)
    assert asyncio.run(sweep.wait_async(1))["best"]["point"] == 3
    assert len(sweep.rows) == len(sweep.frame()) == 6
    assert sweep.run(3).id == plan.run_folder((points[3], 1000)).id == sweep.rows[3]["runs"]["1000"]
    assert sweep.run(3, 1001).id == sweep.rows[3]["runs"]["1001"]
    best = sweep.recipe()
    assert best == sweep.recipe(3)
    # Its own seed again: those of a sweep are spent.
    assert (best.optimizer.lr, best.architecture.layers, best.seed) == (2e-3, 2, 0)
    for wrong, said in ((lambda: sweep.run(9), "has no point 9; it has 0 to 5"), (lambda: sweep.run(0, 7), "no seed 7"),
                        (lambda: sweep.recipe(-1), "no point -1")):  # fmt: skip
        with pytest.raises(RunError, match=said):
            wrong()


def test_results_are_whole_and_json(planned: Planned, tmp_path: Path) -> None:
    sweep = held(planned())
    found = json.loads(sweep.result.write(tmp_path / "out" / "sweep.json").read_text())
    assert found["best"] == {"point": 3, "values": {"optimizer.lr": 2e-3, "architecture.layers": 2},
                             "score": found["points"][3]["score"], "spread": None,
                             "runs": found["points"][3]["runs"], "chosen_on": "its own score"}  # fmt: skip
    assert list(found["importance"]) == ["optimizer.lr", "architecture.layers"]
    assert 0.95 < sum(found["importance"].values()) <= 1
    # The smaller model is faster and worse: of each size the best rate.
    assert found["pareto"] == {"seconds": [2, 3], "memory_bytes": [2, 3], "parameters": [2, 3]}
    assert [each["rung"] for each in found["would_have_ended"]] == [0.25, 0.5]
    assert "ending the worse half at 25% of the budget would have saved 38% of it and kept the best" in found["summary"]
    sweep.result.require()
    assert repr(sweep.result).startswith("<sweep 20")
    assert sweep.result._repr_html_().startswith("<table><tr><th style='text-align:left'>sweep</th>")
    assert "it says</th>" in sweep.result._repr_html_()
    assert len(repr(sweep.result)) < 410
    with pytest.raises(AttributeError, match="a sweep's result has no 'verdict'"):
        _ = sweep.result.verdict


def test_a_sweep_of_another_version_opens_and_says_so(planned: Planned) -> None:
    plan, points = planned()
    sweep = held((replace(plan, version="0.0.1"), points))
    assert "begun by workbench 0.0.1, and this is" in sweep.summary
    write_json(sweep.folder.plan, {**plan.to_dict(), "schema_version": 99})
    with pytest.raises(RunError, match="begun by a newer workbench"):
        _ = sweep.plan
    write_json(sweep.folder.plan, {"space": 3})
    with pytest.raises(RunError, match="is damaged"):
        _ = sweep.plan


def test_a_sweep_that_is_not_over(planned: Planned) -> None:
    sweep = begin(*planned())
    with pytest.raises(RunError, match="no best point yet"):
        sweep.recipe()
    with pytest.raises(RunError, match="has no run"):
        sweep.run(0)
    with pytest.raises(RunFailed, match="is starting"):
        sweep.result.require()
    with sweep.folder.driver_lock(), pytest.raises(TimeoutError, match="has not ended in time; it goes on"):
        sweep.wait_blocking(0)
