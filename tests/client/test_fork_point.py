"""A checkpoint as the beginning of a fork: what is in force there, what may change (whole forks: test_fork)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.tiny_runs import tiny_recipe
from workbench.base.errors import RunError
from workbench.client.fork_point import ForkPoint, own_part, steps_of
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder, write_json
from workbench.telemetry.streams import add_event


@pytest.fixture
def parent(folder: RunFolder, tmp_path: Path) -> RunFolder:
    """A run with checkpoints at steps 7 and 30, and a rate that was turned between them."""
    tiny_recipe(tmp_path, steps=40).save(folder.recipe)
    for step, overrides in ((7, {}), (30, {"optimizer.lr": 0.25})):
        checkpoint = folder.checkpoints / f"step-{step}"
        checkpoint.mkdir(parents=True)
        write_json(checkpoint / "state.json", {"step": step, "tokens": 1, "seconds": 1.0, "overrides": overrides})
    return folder


def test_what_is_in_force_at_a_checkpoint_is_what_an_edit_starts_from(parent: RunFolder) -> None:
    assert steps_of(parent) == [30, 7]
    newest, older = ForkPoint.of(parent), ForkPoint.of(parent, 7)
    assert (newest.step, newest.recipe.optimizer.lr) == (30, 0.25)
    assert older.recipe == Recipe.load(parent.recipe)
    edited = newest.recipe.with_(**{"optimizer.lr": 0.5})
    assert list(newest.changes(edited)) == ["optimizer"]
    assert newest.recipe.with_(**newest.changes(edited)) == edited
    assert newest.changes(newest.recipe) == {}


def test_what_was_turned_after_a_checkpoint_no_fork_of_it_turns(parent: RunFolder) -> None:
    newest, older = ForkPoint.of(parent), ForkPoint.of(parent, 7)
    assert older.turned_since() == []
    for step, path, value in ((7, "optimizer.lr", 0.5), (30, "optimizer.lr", 0.25)):
        add_event(parent.telemetry, step, "knob", "turned", path=path, value=value)
    assert older.turned_since() == ["optimizer.lr"], "the checkpoint of that step was saved before"
    assert newest.turned_since() == [], "the checkpoint of that step was saved after"
    add_event(parent.telemetry, 30, "knob", "turned", path="optimizer.clip_norm", value=0.5)
    add_event(parent.telemetry, 35, "knob", "turned", path="optimizer.lr", value=0.1)
    assert newest.turned_since() == ["optimizer.lr", "optimizer.clip_norm"]


def test_what_a_fork_cannot_do_is_said_before_it_is_tried(parent: RunFolder) -> None:
    point = ForkPoint.of(parent)
    assert point.problem(point.recipe) == ""
    assert point.problem(point.recipe.with_(budget="90 steps")) == ""
    assert point.longer() == point.recipe
    recipe = point.recipe.with_(budget="30 steps")
    spent = dataclasses.replace(point, launched=recipe, recipe=recipe)
    assert "spent already" in spent.problem(spent.recipe)
    assert (spent.longer().budget.amount, spent.problem(spent.longer())) == (60, "")
    assert point.budget_text(point.recipe) == "10 of 40 steps are left"
    assert spent.budget_text(spent.longer()) == "30 of 60 steps are left (budget 30 steps \u2192 60 steps)"
    assert (
        spent.budget_text(recipe.with_(budget="8 s")) == "7.0 of 8 seconds are left (budget 30 steps \u2192 8 seconds)"
    )
    assert "spent already" in point.problem(point.recipe.with_(budget="20 steps"))
    assert "cannot change architecture.layers" in point.problem(point.recipe.with_(architecture={"layers": 3}))


@pytest.mark.parametrize(("budget", "left"), [("40 steps", 10), ("90 s", 60), ("1000 tokens", 250)])
def test_a_fork_itself_trains_what_was_left(folder: RunFolder, tmp_path: Path, budget: str, left: float) -> None:
    recipe = tiny_recipe(tmp_path, steps=40).with_(budget=budget)
    assert own_part(folder, recipe) == (recipe, {}), "of no fork"
    write_json(folder.origin, {"run": "run-0", "step": 30, "seconds": 30.0, "tokens": 750})
    own, after = own_part(folder, recipe)
    assert (own.budget.amount, own.with_(budget={"amount": recipe.budget.amount}), after) == (
        left, recipe, {"after_step": 30},
    )  # fmt: skip
    # A fork of an earlier version does not say what it was given.
    write_json(folder.origin, {"run": "run-0", "step": 30})
    assert own_part(folder, recipe)[0].budget.amount == (left if "steps" in budget else recipe.budget.amount)


def test_next_to_nothing_of_a_budget_is_told_and_less_than_a_step_is_refused(parent: RunFolder) -> None:
    point = dataclasses.replace(ForkPoint.of(parent), saved={"step": 40, "tokens": 1, "seconds": 29.9})
    recipe = point.recipe.with_(budget="30.8 s")
    assert point.problem(recipe) == ""
    assert point.scarce(recipe) == "0.9 of 30.8 seconds are left: raise the budget"
    assert point.rest(recipe).budget.amount == pytest.approx(0.9)
    assert point.rest(recipe.with_(budget="20 s")).budget.amount == 20, "nothing is left to forecast"
    assert point.scarce(point.recipe.with_(budget="60 s")) == ""
    assert "0.1 of 30 seconds are left at step 40, and a step takes 0.75" in point.problem(recipe.with_(budget="30 s"))


def test_what_is_not_there_is_said_with_the_way_out(parent: RunFolder) -> None:
    with pytest.raises(RunError, match=r"no checkpoint of step 8 to fork from \(it has those of 7, 30\)"):
        ForkPoint.of(parent, 8)
    (parent.checkpoints / "step-30" / "state.json").write_text("[")
    with pytest.raises(RunError, match=r"step-30 of run .* cannot be read"):
        ForkPoint.of(parent)
    empty = RunFolder(parent.path.parent / "empty")
    with pytest.raises(RunError, match=r"no checkpoint to fork from .*'Checkpoint' saves one"):
        ForkPoint.of(empty)
