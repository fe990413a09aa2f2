"""``workbench workshop``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
import pytest

from tests.documents import ROOT
from tests.launchers.queue.conftest import queue  # noqa: F401  (the same fixture as for the queue)
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.base.errors import RunError
from workbench.cli.command import main
from workbench.cli.workshop import RUNNING, SECONDS, WAITING
from workbench.client.launch import launch
from workbench.client.run_list import runs
from workbench.launchers.queue.changes import set_limits
from workbench.launchers.queue.queue_folder import Queue
from workbench.workshop import machine


@pytest.mark.process
def test_limits_are_set_and_a_machine_that_cannot_do_it_exits_with_2(
    queue: Queue,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wanted = ["--waiting", "2", "--seconds", "30", "--presets", "", "--runs", str(tmp_path)]
    assert main(["workshop", *wanted, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["limits"] == {"running_per_owner": 1, "waiting_per_owner": 2, "seconds_per_run": 30}
    assert queue.settings().waiting_per_owner == 2
    monkeypatch.setattr(machine, "free_bytes", lambda device: 0)
    assert main(["workshop", "--waiting", "9", "--presets", "", "--runs", str(tmp_path)]) == 2
    assert "BAD   memory: 0.0 GiB free" in capsys.readouterr().out
    assert queue.settings().waiting_per_owner == 2, "nothing is set on a machine that cannot do it"


@pytest.mark.process
def test_who_launches_fifty_runs_is_told_the_limit_and_loses_nothing(
    queue: Queue,  # noqa: F811
    corpus: Path,
    tmp_path: Path,
) -> None:
    root = tmp_path / "runs"
    limits = {"running_per_owner": 1, "waiting_per_owner": 2}
    set_limits(limits)
    launched, refused = [], set()
    for _ in range(50):
        try:
            launched.append(launch(tiny_recipe(corpus, steps=1_000_000), runs_dir=root, say=None))
        except RunError as error:
            refused.add(str(error))
    (said,) = refused
    assert said.startswith("2 of your runs wait already, and the queue of this machine allows 2: wait, cancel some")
    assert len(launched) == 3
    assert {run.id for run in runs(root)} == {run.id for run in launched}
    assert sorted(run.status for run in launched)[0] == "queued"
    for run in reversed(launched):
        run.stop(timeout=60)
    wait_until(lambda: {run.status for run in launched} == {"stopped"}, 60, "the end of all")


@pytest.mark.process
def test_a_run_trains_no_longer_than_it_may(queue: Queue, corpus: Path, tmp_path: Path) -> None:  # noqa: F811
    set_limits({"seconds_per_run": 1})
    recipe = tiny_recipe(corpus, steps=1_000_000)
    with pytest.raises(RunError, match=r"budget: 60 seconds, and a run on this machine may train 1 s"):
        launch(recipe.with_(budget="60 s"), runs_dir=tmp_path)
    run = launch(recipe, runs_dir=tmp_path, say=None)
    run.wait(timeout=120)
    assert run.status == "stopped"
    assert "1 s, as long as a run may train" in (run.folder.telemetry / "events.jsonl").read_text()


def test_lessons_fit_into_the_limits_of_a_learner() -> None:
    """70 launches its runs at once, 64 trains for eight of its minutes."""

    def parameter(lesson: str, name: str) -> int:
        notebook = nbformat.read(ROOT / "notebooks" / f"{lesson}.ipynb", as_version=4)
        source = next(cell.source for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
        return int(re.search(rf"^{name} = (\d+)", source, re.MULTILINE)[1])  # type: ignore[index]

    assert parameter("70_is_it_real", "runs") <= RUNNING + WAITING
    assert 8 * parameter("64_minute_eight", "minute") <= SECONDS
