"""What races, sweeps and tunings say in the line that the table of runs has for them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.race import conftest as racing
from tests.experiments.race.conftest import planned, root, tiny
from tests.experiments.sweep import conftest as sweeping
from tests.experiments.sweep.conftest import planned as planned_sweep
from tests.experiments.tune import conftest as tunings
from tests.experiments.tune.conftest import planned as planned_tuning
from tests.jupyter.runs.test_runs_table import Heard
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.experiments.race.race import Race
from workbench.experiments.sweep.sweep import begin as begin_sweep
from workbench.experiments.tune.tune import begin as begin_tuning
from workbench.jupyter.runs.named_experiments import Briefs, name_of
from workbench.store.folder import write_json

__all__ = ["planned", "planned_sweep", "planned_tuning", "root", "tiny"]


def tagged(root: Path, tag: str) -> None:
    """As launches leave it: each run says of which experiment it is."""
    for run in runs(root):
        write_json(run.folder.labels, {"tags": [tag]})


def test_a_race_says_its_verdicts_in_the_table(planned: Any, root: Path) -> None:
    race = racing.held(planned(name="deep or wide"))
    tagged(root, race.folder.tag)
    table = Heard(root)
    table.refresh_experiments()
    (said,) = table.of("experiments")
    assert said["briefs"] == {name_of(race): "mine worse"}
    table.refresh_experiments()
    assert len(table.of("experiments")) == 1, "nothing new is not told again"
    table.hears(type="hello")
    assert table.of("experiments")[1]["briefs"] == said["briefs"], "a page that mounts later knows it, too"
    table.close()


def test_a_sweep_says_its_best_loss_and_point(planned_sweep: Any, root: Path) -> None:
    sweep = sweeping.held(planned_sweep())
    tagged(root, sweep.folder.tag)
    table = Heard(root)
    table.refresh_experiments()
    best = sweep.look().points[sweep.best or 0]
    words = table.of("experiments")[0]["briefs"][name_of(sweep)]
    assert words == f"best {best.score:.3f} nats: point {sweep.best} ({best.point.label})"
    table.close()


def test_it_is_read_again_only_where_it_or_one_of_its_runs_has_changed(
    planned: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    race = racing.held(planned())
    tagged(root, race.folder.tag)
    table, read = Heard(root), []
    rows = [dict(row) for row in table.rows]
    briefs = Briefs(root)
    monkeypatch.setattr(Race, "brief", property(lambda race: read.append(race.id) or f"words {len(read)}"))
    for _ in range(3):
        assert briefs.of(rows) == {name_of(race): "words 1"}
    rows[0]["heldout_loss"] = 1.0
    assert briefs.of(rows) == {name_of(race): "words 2"}
    race.folder.write_state("cancelled", "")
    for _ in range(2):
        assert briefs.of(rows) == {name_of(race): "words 3"}, "of its runs none has changed"
    assert briefs.of([]) == {}
    table.close()


def test_one_that_is_gone_says_nothing(planned: Any, root: Path) -> None:
    race = racing.held(planned())
    tagged(root, race.folder.tag)
    shutil.rmtree(race.folder.path)
    table = Heard(root)
    table.refresh_experiments()
    assert table.of("experiments") == []
    assert len(table.rows) == len(runs(root)) > 0
    table.close()


def test_a_tuning_says_how_far_its_claim_is(planned_tuning: Any) -> None:
    tuning = tunings.held(planned_tuning(name="mine", axes={"architecture.layers": [2, 1]}))
    verdict = tuning.race.look().verdicts["tuned"].verdict
    assert tuning.brief == f"{tuning.stage}; tuned {verdict}"
    tuning.folder.write_state("cancelled", "")
    assert tuning.brief == f"cancelled; {tuning.stage}"


def test_a_tuning_or_a_sweep_that_was_cancelled_says_so(
    planned_tuning: Any, planned_sweep: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "ask", lambda run, verb, **_: None)
    tuning, sweep = begin_tuning(*planned_tuning()), begin_sweep(*planned_sweep())
    assert (tuning.brief, sweep.brief) == ("tuning", "no best yet")
    tuning.cancel()
    sweep.cancel()
    assert (tuning.brief, sweep.brief) == ("cancelled", "cancelled; no point has a score")
