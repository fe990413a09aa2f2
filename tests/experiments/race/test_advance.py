"""A race brought forward look by look, killed and gone on with: what is launched, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.experiments.race.conftest import Starter, loss, written
from workbench.base.errors import EngineError, RunError
from workbench.client.run import Run
from workbench.experiments import experiment, launching
from workbench.experiments.experiment_folder import RaceFolder
from workbench.experiments.race.race import Race
from workbench.experiments.race.race_plan import Entry, RacePlan
from workbench.store import control
from workbench.store.labels import read_labels
from workbench.store.lease import claim
from workbench.store.state import write_state

Planned = Callable[..., RacePlan]


def test_a_race_goes_from_look_to_look_and_launches_nothing_twice(planned: Planned) -> None:
    plan = replace(planned(seeds=6), at_once=3)
    folder, starter = written(plan), Starter(plan, loss)
    Race(folder).advance(starter)
    assert [entry for entry, _ in starter.launched] == plan.entries(4, ["mine"])[:3]
    Race(folder).advance(starter)
    assert len(starter.launched) == 3
    message = "0 of at most 24 runs done, 3 runs waiting; next verdict after 4 seeds"
    state = folder.read_state()
    assert (state["status"], state["message"].partition(", about ")[0]) == ("racing", message)
    while folder.read_state()["status"] == "racing":
        starter.end_all()
        Race(folder).advance(starter)
    # 0.5 nats are clear after four seeds.
    assert [entry for entry, _ in starter.launched] == plan.entries(4, ["mine"])
    assert [recipe.seed for _, recipe in starter.launched] == [entry.seed for entry in plan.entries(4, ["mine"])]
    kinds = [event["kind"] for event in folder.read_events()]
    assert kinds == ["launched"] * 16 + ["verdict"]
    assert folder.read_events()[-1]["verdict"] == "worse"
    assert folder.read_state()["status"] == "finished"
    Race(folder).advance(starter)
    assert len(folder.read_events()) == 17
    labels = read_labels(Run(starter.launched[0][1] and plan.run_id(Entry("mine", 0)), plan.runs_dir).folder)
    assert (labels.tags, labels.notes) == (("race:baseline-vs-mine",), f"race {plan.id}: mine seed 0")


def test_a_launch_that_fails_is_tried_again_and_one_that_is_refused_fails_its_arm(planned: Planned) -> None:
    plan = replace(planned(), at_once=2)
    folder, starter = written(plan), Starter(plan, loss)

    def full(*_: object, **__: object) -> Run:
        raise RunError("No space left on device")

    with pytest.raises(RunError, match="No space"):
        Race(folder).advance(full)
    assert folder.read_events() == []

    def no_engine(recipe: object, *, runs_dir: str, run_id: str) -> Run:
        if starter.entries[run_id].arm == "mine":
            raise EngineError("not installed")
        return starter(recipe, runs_dir=runs_dir, run_id=run_id)  # type: ignore[arg-type]

    Race(folder).advance(no_engine)
    now = Race(folder).advance(no_engine)
    assert "not installed" in now.verdicts["mine"].error
    # Its only arm: nothing is left to race.
    Race(folder).advance(no_engine)
    state = folder.read_state()
    assert state["status"] == "failed", "it has compared nothing"
    assert state["message"].startswith("mine failed, so there is no verdict: ")
    assert "not installed" in state["message"]


def test_what_no_verdict_needs_any_more_is_stopped_and_has_not_failed(planned: Planned, tiny: object) -> None:
    plan = replace(planned({"baseline": tiny, "broken": tiny, "mine": tiny}, reference=()), at_once=5)
    folder, starter = written(plan), Starter(plan, loss)
    Race(folder).advance(starter)
    assert starter.going == plan.entries(4, plan.others)[:5]
    write_state(plan.run_folder(Entry("broken", 0)), status="failed", error="the loss is nan")
    now = Race(folder).advance(starter)
    stopped = {event["run"] for event in folder.read_events() if event["kind"] == "withdrawn"}
    assert stopped == {plan.run_id(Entry("broken", 1))}
    assert (now.verdicts["broken"].reason, now.verdicts["mine"].final) == ("failed", False)
    for seed in (1, 0):
        write_state(plan.run_folder(Entry("broken", seed)), status="stopped" if seed else "failed", error="nan")
    write_state(plan.run_folder(Entry("mine", 0)), status="failed", error="no memory")
    Race(folder).advance(starter)
    race = Race(folder)
    assert race.status == "failed"
    assert race.message.startswith("broken and mine failed, so there is no verdict: ")
    # What was stopped is no failure of the baseline's, and nothing goes on.
    for entry in (Entry("baseline", 0), Entry("baseline", 1)):
        write_state(plan.run_folder(entry), status="stopped")
    assert {row["status"] for row in race.rows if row["arm"] == "baseline"} == {"stopped"}
    said, broken, mine = race.summary.splitlines()
    assert "0 of 12 runs done, " in said
    assert "going" not in said
    assert said.endswith(" stopped (not needed any more); nothing could be judged")
    assert broken.startswith("broken has no verdict: ")
    assert broken.endswith("nan")
    assert mine.endswith("no memory")
    assert race.result["error"] == race.message


def test_a_stopped_run_that_is_needed_again_goes_on(planned: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(planned(reference=()), at_once=1)
    folder, starter = written(plan), Starter(plan, loss)
    Race(folder).advance(starter)
    (going,) = starter.going
    launching.withdraw(folder, plan, going)
    assert launching.withdrawn(folder) == {plan.run_id(going)}
    resumed: list[str] = []
    monkeypatch.setattr(Run, "resume", lambda run: resumed.append(run.id))
    Race(folder).advance(starter)
    assert resumed == [plan.run_id(going)]
    assert launching.withdrawn(folder) == set()


def test_a_run_that_found_no_space_goes_on_when_there_is_some(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(planned(), at_once=1)
    folder, starter = written(plan), Starter(plan, loss)
    Race(folder).advance(starter)
    (going,) = starter.going
    write_state(plan.run_folder(going), status="failed", error="the disk is full: tokenizer.json", attempt=1)
    resumed: list[str] = []
    monkeypatch.setattr(Run, "resume", lambda run: resumed.append(run.id))
    free = SimpleNamespace(free=0)
    monkeypatch.setattr(launching.shutil, "disk_usage", lambda _path: free)
    with pytest.raises(OSError, match="No space left on device"):
        Race(folder).advance(starter)
    free.free = 1 << 30
    Race(folder).advance(starter)
    assert resumed == [plan.run_id(going)]
    assert folder.read_state()["status"] == "racing"


def test_cancelling_ends_it_for_good(planned: Planned) -> None:
    plan = planned()
    folder, starter = written(plan), Starter(plan, loss)
    Race(folder).advance(starter)
    Race(folder).cancel()
    assert folder.read_state()["status"] == "cancelled"
    count = len(starter.launched)
    Race(folder).advance(starter)
    assert len(starter.launched) == count
    with pytest.raises(RunError, match="is cancelled"):
        Race(folder).cancel()


def asked(plan: RacePlan, entry: Entry) -> list[str]:
    """Return what a run was asked, and has not answered."""
    folder = plan.run_folder(entry)
    return [request.verb for request in control.pending(folder) if not control.refusal(folder, request)]


def test_who_was_killed_while_he_cancelled_can_do_so_again(planned: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(planned(), at_once=2)
    folder, starter = written(plan), Starter(plan, loss)
    Race(folder).advance(starter)
    # A page steers one of them: of an experiment that ends, it goes on no more than the others.
    claim(plan.run_folder(starter.going[0]), "a page")

    def killed(_runs: object) -> list[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(experiment, "stop", killed)
        with pytest.raises(KeyboardInterrupt):
            Race(folder).cancel()
    assert (folder.read_state()["status"], asked(plan, starter.going[0])) == ("cancelled", [])
    assert Race(folder).cancel() == [plan.run_id(entry) for entry in starter.going]
    assert [asked(plan, entry) for entry in starter.going] == [["stop"], ["stop"]]
    assert [event["kind"] for event in folder.read_events()].count("cancelled") == 1


def test_a_run_that_was_withdrawn_is_stopped_also_where_the_driver_was_killed_before(
    planned: Planned, tiny: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(planned({"baseline": tiny, "broken": tiny, "mine": tiny}, reference=()), at_once=5)
    folder, starter = written(plan), Starter(plan, loss)
    Race(folder).advance(starter)
    write_state(plan.run_folder(Entry("broken", 0)), status="failed", error="the loss is nan")

    def killed(_runs: object, by: str) -> list[str]:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(launching, "stop", killed)
        with pytest.raises(RuntimeError):
            Race(folder).advance(starter)
    assert asked(plan, Entry("broken", 1)) == []
    for _ in range(2):
        Race(folder).advance(starter)
    assert asked(plan, Entry("broken", 1)) == ["stop"], "and once"
    (request,) = control.pending(plan.run_folder(Entry("broken", 1)))
    assert request.by == f"race {folder.id}"


def test_races_are_found_by_what_people_type(planned: Planned, tmp_path: Path) -> None:
    plan = planned(name="mine")
    folder = written(plan)
    assert RaceFolder.find(plan.id, plan.runs_dir) == RaceFolder.find(plan.id[:20], plan.runs_dir) == folder
    assert RaceFolder.find(folder.path) == RaceFolder.find(str(folder.path)) == folder
    for wrong, said in (("nope", f"the latest: race {plan.id}"), ("", "no race ''")):
        with pytest.raises(RunError, match=said):
            RaceFolder.find(wrong, plan.runs_dir)
    with pytest.raises(RunError, match=r"has no race\.json"):
        RaceFolder.find(tmp_path)
