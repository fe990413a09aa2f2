"""A fork goes on as its parent would have: bit for bit when nothing changes, with fresh state where it must."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.training.conftest import LiveRun
from tests.training.test_resume import assert_same, train
from workbench.client.fork import create_fork
from workbench.client.run import Run
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder, read_json, write_json
from workbench.store.state import read_state
from workbench.training import checkpoint
from workbench.training.checkpoint import CheckpointError
from workbench.training.forks import data_identity

Live = Callable[[Recipe], LiveRun]
Forked = Callable[..., LiveRun]


@pytest.fixture
def forked() -> Forked:
    """``forked(run, step, **changes)`` -> the fork, not started."""

    def make(run: LiveRun, step: int | None = None, **changes: Any) -> LiveRun:
        folder, lock = create_fork(run.folder, changes, step)
        os.close(lock)
        return LiveRun(folder)

    return make


@pytest.mark.parametrize("optimizer", ["lans", pytest.param("soap", marks=pytest.mark.extended)])
def test_an_unchanged_fork_repeats_its_parent(tiny: Recipe, live: Live, forked: Forked, optimizer: str) -> None:
    """Of a model in the middle of its growth, with a batch that follows the gradients, and a knob turned before."""
    from workbench.store import control

    recipe = tiny.with_(
        optimizer=optimizer,
        architecture={"layers": 4},
        depth={"kind": "multi_stage", "state": "copy"},
        data={"batch_rule": {"kind": "simigrad", "every": 3, "highest": 24, "grow": 1.5}},
    )
    parent = live(recipe)
    control.send(parent.folder, "set", path="optimizer.lr", value=recipe.optimizer.lr / 2)
    assert train(parent, stop_at=11).step == 11
    fork = forked(parent)
    assert read_json(fork.folder.origin)["diff"] == {"name": ["tiny", "tiny fork 11"]}
    # Before it trains, too: a list of runs does not show it at 0%.
    state = read_state(fork.folder)
    assert (state.step, state.progress) == (11, pytest.approx(11 / 20))
    here, there = train(fork, resume=True), train(parent, resume=True)
    assert_same(there, here)
    assert there.meta["batch"] == here.meta["batch"]
    assert Recipe.load(fork.folder.recipe).optimizer.lr == recipe.optimizer.lr / 2
    assert fork.telemetry.series("loss")[0] == list(range(12, 21))
    assert fork.telemetry.series("loss")[1] == parent.telemetry.series("loss")[1][11:]


def test_a_forks_speed_is_of_its_own_training(tiny: Recipe, live: Live, forked: Forked) -> None:
    """The parent was a hundred times slower, and that is no fault of the fork; also of one that was resumed."""
    parent = live(tiny)
    saved = train(parent, stop_at=10)
    origin = {"seconds": 100.0, "tokens": saved.meta["tokens"], "useful_flops": saved.meta["useful_flops"]}
    shutil.rmtree(saved.path)
    checkpoint.save(parent.folder.checkpoints, 10, saved.tensors, saved.meta | origin)
    fork = forked(parent)
    assert {name: read_json(fork.folder.origin)[name] for name in origin} == origin
    train(fork, resume=True, stop_at=15)
    end = train(fork, resume=True)
    tokens, seconds = (end.meta[name] - origin[name] for name in ("tokens", "seconds"))
    result, state = read_json(fork.folder.evaluations)["result"], read_state(fork.folder)
    assert result["tokens_per_second"] == pytest.approx(tokens / seconds, rel=1e-3)
    flops, before = end.meta["useful_flops"] - origin["useful_flops"], read_json(parent.folder.evaluations)["result"]
    peak = before["useful_flops"] / before["seconds"] / before["mfu"]
    assert result["mfu"] == pytest.approx(flops / seconds / peak, rel=1e-3)
    assert state.tokens_per_second == pytest.approx(result["tokens_per_second"], rel=1e-3)


def test_a_fork_is_stopped_and_resumed_like_any_run(tiny: Recipe, live: Live, forked: Forked) -> None:
    """Also with other knobs, and from its own first checkpoint under the number of its parent's."""
    from workbench.store import control

    parent = live(tiny)
    train(parent, stop_at=6)
    straight, parts = (forked(parent, optimizer={"lr": 1e-3}, seed=7, budget="30 steps") for _ in range(2))
    ends = [train(straight, resume=True)]
    control.send(parts.folder, "pause")
    control.send(parts.folder, "set", path="optimizer.clip_norm", value=0.5)
    control.send(parts.folder, "checkpoint")
    control.send(parts.folder, "set", path="optimizer.clip_norm", value=1.0)
    control.send(parts.folder, "resume")
    assert train(parts, resume=True, stop_at=9).step == 9
    ends.append(train(parts, resume=True))
    assert ends[0].step == 30
    assert_same(*ends)
    (said,) = [event for event in straight.telemetry.events if event["kind"] == "fork"]
    assert "optimizer.lr 0.003 -> 0.001" in said["text"]
    assert said["data"]["run"] == parent.folder.id


def test_another_optimizer_begins_without_state(tiny: Recipe, live: Live, forked: Forked) -> None:
    parent = live(tiny)
    before = train(parent, stop_at=5)
    fork = forked(parent, optimizer="lans", budget="6 steps")
    after = train(fork, resume=True)
    assert Recipe.load(fork.folder.recipe).optimizer.kind == "lans"
    counts = {float(value) for name, value in after.tensors["optimizer"].items() if name.endswith("/step")}
    counts |= {value for name, value in after.meta["optimizer"]["scalars"].items() if name.endswith("/step")}
    assert counts <= {1.0}, "state that counts six steps is the parent's"
    (said,) = [event["text"] for event in fork.telemetry.events if event["kind"] == "fork"]
    assert "begins without state, since optimizer.kind" in said
    moved = [torch.equal(tensor, after.tensors["model"][name]) for name, tensor in before.tensors["model"].items()]
    assert not all(moved)


def test_precision_and_layer_dropping_may_begin_in_the_middle(tiny: Recipe, live: Live, forked: Forked) -> None:
    parent = live(tiny)
    train(parent, stop_at=5)
    fork = forked(parent, execution={"precision": "bf16"}, depth={"kind": "progressive_drop", "theta": 0.5})
    assert train(fork, resume=True).step == 20
    assert min(fork.telemetry.series("layers_run")[1]) < 3


def test_rows_become_shorter_for_the_same_model(tiny: Recipe, live: Live, forked: Forked) -> None:
    """Positions are learned for 32 tokens: the fork's model keeps them, also when it is resumed."""
    parent = live(tiny)
    train(parent, stop_at=5)
    fork = forked(parent, data={"sequence_length": 16, "batch_size": 32})
    train(fork, resume=True, stop_at=12)
    end = train(fork, resume=True)
    assert end.step == 20
    assert set(fork.telemetry.series("data.sequence_length")[1]) == {16}
    assert end.meta["tokens"] == 20 * 16 * 32
    assert Recipe.load(fork.folder.recipe).data.longest == 32


def test_a_parent_that_is_deleted_takes_nothing_along(tiny: Recipe, live: Live, forked: Forked) -> None:
    parent = live(tiny)
    saved = train(parent, stop_at=5)
    fork = forked(parent)
    for file in saved.path.iterdir():
        file.unlink()
    assert train(fork, resume=True).step == 20


def test_data_that_changed_since_are_refused(tiny: Recipe, live: Live, forked: Forked) -> None:
    parent = live(tiny)
    train(parent, stop_at=3)
    environment = read_json(parent.folder.environment)
    assert None not in data_identity(environment["data"]).values()
    environment["data"]["train"]["sha256"] = "other"
    write_json(parent.folder.environment, environment)
    with pytest.raises(CheckpointError, match=r"data have changed since .*\(train differ\)"):
        train(forked(parent), resume=True)


def test_a_damaged_origin_is_refused(tiny: Recipe, live: Live, forked: Forked) -> None:
    parent = live(tiny)
    train(parent, stop_at=3)
    fork = forked(parent)
    origin = read_json(fork.folder.origin)
    for damage in ({"diff": None}, {"diff": {"seed": 3}}, {"fresh": "x"}, {"overrides": []}):
        write_json(fork.folder.origin, origin | damage)
        with pytest.raises(CheckpointError, match=r"origin\.json' is damaged: .* fork the run again"):
            train(fork, resume=True)


def test_a_run_that_is_no_fork_still_refuses_other_recipes(tiny: Recipe, live: Live, forked: Forked) -> None:
    parent = live(tiny)
    train(parent, stop_at=3)
    fork = forked(parent, seed=3)
    tiny.with_(seed=4).save(fork.folder.recipe)
    train(fork, resume=True, stop_at=5)
    tiny.with_(seed=5).save(fork.folder.recipe)
    with pytest.raises(CheckpointError, match="was made by recipe"):
        train(fork, resume=True)


@pytest.mark.extended
def test_forks_of_forks(tiny: Recipe, live: Live, forked: Forked) -> None:
    first = live(tiny)
    train(first, stop_at=4)
    Run(first.folder).name = "renamed"
    second = forked(first)
    train(second, resume=True, stop_at=8)
    third = forked(second, name="third")
    assert_same(train(first, resume=True), train(third, resume=True))
    origin = Run(RunFolder(third.folder.path)).origin
    assert origin is not None
    assert (origin.run, origin.step, origin.name) == (second.folder.id, 8, "renamed fork 4")
    assert checkpoint.load_latest(third.folder.checkpoints) is not None
