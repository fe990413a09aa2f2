"""A recipe in the making: every kind of change can be walked back and forth, and is checked each time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from workbench import presets
from workbench.base.fields import put
from workbench.jupyter.compose.composition import Composition


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def made(clock: list[float]) -> Composition:
    return Composition(presets.get("fast"), "fast", lambda: clock[0])


def turn(made: Composition, path: str, value: object) -> None:
    made.change(put(made.state.fields, path, value))


def test_knobs_choices_presets_and_texts_are_walked_back_in_order(made: Composition, clock: list[float]) -> None:
    seen = [made.state]
    lans = presets.get("fast").with_(optimizer="lans").to_dict()["optimizer"]
    steps = [
        lambda: turn(made, "optimizer.lr", 0.001),
        lambda: turn(made, "optimizer", lans),
        lambda: turn(made, "optimizer.lr", "many"),
        lambda: made.begin(presets.get("pld"), "pld"),
        lambda: made.begin(presets.get("fast"), "run:20260131-081500-mine-0a1b2c-3d4e", seen[0].fields),
        lambda: made.change(presets.get("gpt_tiny").to_dict()),
    ]
    for step in steps:
        clock[0] += 10
        step()
        seen.append(made.state)
    assert made.undoes.startswith("8 knobs: name, ")
    told = []
    for before in reversed(seen[:-1]):
        told.append(made.undoes)
        made.undo()
        assert made.state == before
    assert told[1:] == [
        "preset pld → run mine", "preset fast → preset pld", "optimizer.lr 0.00675 → many", "optimizer adamw → lans",
        "optimizer.lr 0.0015 → 0.001",
    ]  # fmt: skip
    assert made.undoes == ""
    for after in seen[1:]:
        made.redo()
        assert made.state == after
    assert made.redoes == ""


def drag(made: Composition, **values: float) -> None:
    """One move of a handle of the learning rate's curve."""
    schedule = {**made.state.fields["optimizer"]["schedule"], **values}
    turn(made, "optimizer.schedule", schedule)


def test_a_drag_of_a_curve_is_one_step(made: Composition, clock: list[float]) -> None:
    before = made.state
    for step in ({"warmup": 0.2}, {"warmup": 0.21, "peak": 0.9}, {"warmup": 0.22, "peak": 0.8}, {"peak": 0.7}):
        clock[0] += 0.3
        drag(made, **step)
    assert made.undoes == "2 knobs: optimizer.schedule.peak, optimizer.schedule.warmup"
    made.undo()
    assert (made.state, made.undoes) == (before, "")


def test_one_knob_of_a_schedule_and_then_another_are_two_steps(made: Composition) -> None:
    drag(made, warmup=0.2)
    drag(made, peak=0.9)
    assert made.undo() == ["optimizer.schedule.peak"]
    assert made.undo() == ["optimizer.schedule.warmup"]


def test_several_knobs_of_no_schedule_are_a_step_each_time(made: Composition) -> None:
    for value in (0.001, 0.002):
        turn(made, "optimizer", {**made.state.fields["optimizer"], "lr": value, "weight_decay": value})
    made.undo()
    assert made.state.fields["optimizer"]["lr"] == 0.001


def test_it_is_checked_at_every_step(made: Composition) -> None:
    assert made.recipe == presets.get("fast")
    turn(made, "architecture.heads", 3)
    assert made.recipe is None
    assert [problem.path for problem in made.problems] == ["architecture.heads"]
    assert made.undo() == ["architecture.heads"]
    assert made.recipe == presets.get("fast")
    assert made.problems == []
    made.redo()
    assert made.recipe is None


def test_paths_that_are_not_here_are_told_at_their_knob(made: Composition, tmp_path: Path) -> None:
    data = {"kind": "files", "paths": [str(tmp_path / "txet.txt")]}
    turn(made, "data", presets.get("fast").with_(data=data).to_dict()["data"])
    (problem,) = made.problems
    assert made.recipe is None
    assert problem == ("data.paths", f"no such file or folder '{tmp_path / 'txet.txt'}'")
    (tmp_path / "text.txt").write_text("words")
    turn(made, "data.heldout_paths", [str(tmp_path / "none")])
    assert [problem.path for problem in made.problems] == ["data.paths", "data.heldout_paths"]
    assert made.problems[0].message.endswith(f"did you mean '{tmp_path / 'text.txt'}'?")
    turn(made, "data.paths", [str(tmp_path / "text.txt")])
    turn(made, "data.heldout_paths", [])
    assert made.recipe is not None


def test_what_cannot_be_read_hides_no_other_problem(made: Composition) -> None:
    turn(made, "architecture.width", 64)
    turn(made, "optimizer.lr", "banana")
    turn(made, "architecture.heads", 7)
    turn(made, "data.batch_size", "many")
    found = {problem.path: problem.message for problem in made.problems}
    assert set(found) == {"optimizer.lr", "architecture.heads", "data.batch_size"}
    assert found["optimizer.lr"] == "must be a number > 0 and <= 100, got 'banana'"
    assert "7 heads do not divide width 64" in found["architecture.heads"]
    # Of a choice that the last recipe did not have, the default stands in.
    turn(made, "depth", {"kind": "progressive_drop", "theta": "half"})
    assert {problem.path for problem in made.problems} == {*found, "depth.theta"}
    turn(made, "optimizer", {"kind": "nope", "lr": 1})
    assert {problem.path for problem in made.problems} == {"optimizer.kind", "depth.theta", *found} - {"optimizer.lr"}
    turn(made, "architecture", "none")
    assert "depth.theta" in {problem.path for problem in made.problems}


def test_what_this_machine_cannot_carry_out_is_a_problem_of_its_knob(made: Composition) -> None:
    turn(made, "execution.threads", 1000)
    assert made.recipe is None
    assert [problem.path for problem in made.problems] == ["execution.threads"]
    made.undo()
    assert made.recipe == presets.get("fast")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a CUDA device")
@pytest.mark.parametrize(
    ("path", "value"), [("precision", "fp8"), ("attention", "flex"), ("optimizer_states", "host"), ("device", "cuda")]
)
def test_what_needs_a_gpu_is_a_problem_of_its_knob(made: Composition, path: str, value: str) -> None:
    turn(made, f"execution.{path}", value)
    assert made.recipe is None
    assert f"execution.{path}" in [problem.path for problem in made.problems]
    made.undo()
    assert made.recipe is not None


def test_a_slider_and_a_walk_through_the_presets_are_one_change(made: Composition, clock: list[float]) -> None:
    for rate in (0.002, 0.0021, 0.0022):
        clock[0] += 0.1
        turn(made, "optimizer.lr", rate)
    assert made.undoes == "optimizer.lr 0.0015 → 0.0022"
    clock[0] += 5
    for name in ("pld", "raptr", "stacking"):
        clock[0] += 0.2
        made.begin(presets.get(name), name)
    assert made.undoes == "preset fast → preset stacking"
    made.undo()
    assert made.undo() == ["optimizer.lr"]
    assert made.undoes == ""
    assert made.undo() == []


def test_a_given_recipe_is_called_so(clock: list[float]) -> None:
    made = Composition(presets.get("fast"), None, lambda: clock[0])
    assert made.state.began == "the given recipe"
    clock[0] += 5
    made.begin(presets.get("pld"), "pld")
    assert made.undoes == "the given recipe → preset pld"
