"""``workbench queue``, and what the other verbs say on a busy machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.launchers.queue.conftest import new_run, queue  # noqa: F401  (the same fixtures as for the queue)
from tests.run_folders import processes_of
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.cli.command import main
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.launchers.queue.outlook import training_now
from workbench.launchers.queue.queue_folder import Queue
from workbench.launchers.queue.turn import Turn, enter
from workbench.store.folder import RunFolder
from workbench.store.state import write_state

A, B = "20260101-000000-a", "20260101-000000-b"


@pytest.fixture
def busy(queue: Queue, new_run: Callable[..., RunFolder]) -> Iterator[list[Turn]]:  # noqa: F811
    """One run trains, two wait."""
    turns = [enter(new_run("t", status="running")), enter(new_run("a")), enter(new_run("b", threads=2))]
    yield turns
    for turn in turns:
        turn.leave()


@pytest.mark.usefixtures("busy")
def test_what_trains_and_what_waits_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue"]) == 0
    head, trains, first, second = capsys.readouterr().out.splitlines()
    assert head == "1 training (1 of 1 core), 2 waiting"
    assert trains.startswith("  20260101-000000-t  t of ")
    assert first.endswith(
        "1 thread, position 1, start unknown: no one can say yet how long the runs before it take; it needs 1 core, "
        "and 1 of 1 are taken"
    )
    assert "2 threads, position 2" in second
    assert main(["queue", "list", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [each["run"] for each in said["waiting"]] == [A, B]
    assert (said["cores"], said["threads"], said["training"][0]["name"]) == (1, 1, "t")
    assert (said["waiting"][1]["position"], said["waiting"][1]["expected_start_seconds"]) == (2, None)


def test_a_paused_run_trains_not_and_keeps_its_cores_and_one_that_is_done_is_ending(
    busy: list[Turn], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = busy[0].ticket.run
    write_state(folder, status="paused")
    assert main(["queue"]) == 0
    head, paused, *_ = capsys.readouterr().out.splitlines()
    assert head == "0 training (0 of 1 core), 1 paused (keeps 1 core), 2 waiting"
    assert paused.endswith("1 thread, paused: keeps its turn, resume or stop it")
    assert training_now() == [], "the forecast says the same"
    write_state(folder, status="finished")
    assert main(["queue"]) == 0
    head, ending, *_ = capsys.readouterr().out.splitlines()
    assert (head, ending.rpartition(", ")[2]) == ("0 training (0 of 1 core), 1 ending, 2 waiting", "ending")
    assert training_now() == []


@pytest.mark.usefixtures("busy")
def test_places_and_priorities_are_changed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue", "move", B, "1"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{B}: position 1, ")
    assert "priority" not in said
    assert main(["queue", "priority", A, "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["position"] == 1
    assert main(["queue", "priority", A, "-3"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{A}: position 2, ")
    assert said.endswith("; its priority is now -3, it was 3\n")
    assert main(["queue", "move", A, "1"]) == 0
    assert capsys.readouterr().out.endswith("; its priority is now 0, it was -3\n"), "of the run whose place it takes"


def test_settings_are_changed_and_shown(queue: Queue, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    assert main(["queue", "set", "cores=4", "running_per_owner=2"]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == ["cores=4", "runs_per_gpu=1", "running_per_owner=2"]
    assert main(["queue", "set", "running_per_owner=", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["running_per_owner"] is None
    assert queue.settings().cores == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["move", A], "`workbench queue move RUN PLACE` takes 2 arguments, got 1"),
        (["move", A, "first"], "PLACE: 'first' is not a whole number"),
        (["mvoe"], "did you mean 'move'"),
        (["cancel"], "which?"),
        (["cancel", "nothing"], "no run 'nothing' waits here"),
        (["set", "cores"], "'cores' is not NAME=NUMBER"),
        (["set", "slots=3"], "queue setting: unknown value 'slots'"),
        (["set", "cores=0"], "0 is not a whole number of 1 to"),
        (["start", A], "takes no arguments, got 1"),
    ],
)
@pytest.mark.usefixtures("busy")
def test_what_cannot_be_is_told(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_run_that_has_begun_keeps_the_others_from_being_cancelled_and_says_so(
    busy: list[Turn], capsys: pytest.CaptureFixture[str]
) -> None:
    trains = busy[0].ticket.run.id
    assert main(["queue", "cancel", trains, A, B]) == 2
    said = capsys.readouterr().err
    assert f"{trains} trains already and no longer waits: `workbench stop {trains}` ends it" in said
    assert "nothing was cancelled" in said
    assert main(["queue", "--json"]) == 0
    assert [each["run"] for each in json.loads(capsys.readouterr().out)["waiting"]] == [A, B]
    assert main(["queue", "cancel", trains]) == 2
    assert "nothing was cancelled" not in capsys.readouterr().err


def test_a_queue_that_is_off_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("WORKBENCH_QUEUE", "off")
    assert main(["queue"]) == 2
    assert "switched off" in capsys.readouterr().err


@pytest.mark.process
def test_a_launch_on_a_busy_machine_waits_says_so_and_can_be_cancelled(
    corpus: Path, root: Path, tmp_path: Path, busy: list[Turn], capsys: pytest.CaptureFixture[str]
) -> None:
    busy[2].leave()
    recipe = tiny_recipe(corpus, steps=5).save(tmp_path / "recipe.json")

    def said(*asked: str) -> tuple[str, str]:
        assert main(list(asked)) == 0
        return capsys.readouterr()

    launch, there = ("launch", "--recipe", str(recipe), "--priority", "3"), ("--runs", str(root))
    out, err = said(*launch, *there)
    run = Run(out.strip(), root)
    assert err.startswith(f"{run.id}: queued, position 1, start unknown")
    listed = said("runs", *there)[0]
    assert "queued" in listed
    assert "position 1" in listed
    assert said("queue", "cancel", run.id)[0].strip() == f"{run.id}: taken out of the queue before it began"
    assert run.wait_blocking(timeout=30)["state"] == "stopped"
    # Its folder is whole: a resume begins it, when its turn comes.
    assert "queued, position 2" in said("resume", run.id, *there)[0], "without the priority that one launch had"
    assert run.status == "queued"
    now = json.loads(said(*launch, *there, "--now", "--json")[0])
    assert (now["state"], now["queue_position"], now["expected_start_seconds"]) == ("starting", None, None)
    assert Run(now["run"], root).wait_blocking(timeout=120)["steps"] == 5
    assert run.status == "queued"
    for turn in busy:
        turn.leave()
    assert run.wait_blocking(timeout=120)["steps"] == 5


@pytest.mark.usefixtures("busy")
@pytest.mark.process
def test_train_says_that_it_waits_and_ctrl_c_leaves_the_queue(corpus: Path, root: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(corpus, steps=5).save(tmp_path / "recipe.json")
    command = [sys.executable, "-m", "workbench", "train", "--recipe", str(recipe), "--runs", str(root), "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stderr is not None
    line = child.stderr.readline()
    assert "queued, position 3, start unknown" in line
    assert "Ctrl-C takes it out of the queue; with --now it trains at once" in child.stderr.readline()
    wait_until(lambda: runs(root)[0].status == "queued", 30, "the queue")
    os.killpg(child.pid, signal.SIGINT)
    out, said = child.communicate(timeout=60)
    assert child.returncode == 1, said
    assert "leaving the queue" in said
    assert json.loads(out)["state"] == "stopped"
    assert processes_of(root) == []
