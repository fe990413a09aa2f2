"""What an engine does about memory, in whole runs: resumed, forked, measured."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.costs import quick_ones
from tests.training.conftest import LiveRun
from tests.training.test_resume import assert_same, staged, train
from workbench.base.errors import RecipeError
from workbench.choices.execution import memory_saving
from workbench.choices.execution.memory_fit import Kept
from workbench.client.fork import create_fork
from workbench.ops.recompute import KeptBytes
from workbench.recipes.recipe import Recipe
from workbench.store.folder import read_json, write_json
from workbench.training.loop import Training

Build = Callable[..., Training]
Live = Callable[[Recipe], LiveRun]


@pytest.mark.parametrize("optimizer", ["lans", pytest.param("adamw", marks=pytest.mark.extended)])
def test_states_in_8_bits_resume_bit_for_bit(tiny: Recipe, live: Live, optimizer: str) -> None:
    """With layers that appear and take over codes and scales, rest and thaw."""
    depth = {"kind": "multi_stage", "state": "copy"}
    recipe = staged(tiny, optimizer=optimizer, depth=depth, **{"execution.optimizer_states": "8bit"})
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    assert train(parts, stop_at=10).step == 10
    assert_same(straight, train(parts, resume=True))
    moments = {name: t for name, t in straight.tensors["optimizer"].items() if name.endswith("/exp_avg")}
    # 96 x 32 numbers are too few to be worth a code; the feed-forward part's 128 x 32 are not.
    assert {t.dtype for name, t in moments.items() if "qkv" in name} == {torch.float32}
    assert {t.dtype for name, t in moments.items() if "up" in name} == {torch.int8}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("fp32", "8bit"),
        pytest.param("8bit", "fp32", marks=pytest.mark.extended),
        pytest.param("8bit", "8bit", marks=pytest.mark.extended),
    ],
)
def test_a_fork_reads_states_of_another_form(tiny: Recipe, live: Live, before: str, after: str) -> None:
    recipe = tiny.with_(**{"execution.optimizer_states": before})
    whole, parent, forked = live(recipe), live(recipe), live(recipe)
    straight = train(whole)
    train(parent, stop_at=10)
    forked.folder, lock = create_fork(parent.folder, {"execution.optimizer_states": after, "name": "fork"})
    os.close(lock)
    ended = train(forked, resume=True)
    assert ended.step == straight.step == 20
    for name, weight in straight.tensors["model"].items():
        if before == after:
            assert torch.equal(ended.tensors["model"][name], weight), name
        else:
            torch.testing.assert_close(ended.tensors["model"][name], weight, atol=0.02, rtol=0.2)


@pytest.mark.parametrize("change", quick_ones([{}, {"execution.micro_batch_size": 4}, {"optimizer": "lans"}], {}))
def test_losses_with_bf16_weights_follow_those_with_float32(tiny: Recipe, build: Build, change: dict[str, Any]) -> None:
    recipe = tiny.with_(**change).with_(**{"execution.precision": "bf16"})
    losses = []
    for weights in ("fp32", "bf16"):
        training = build(recipe.with_(**{"execution.weights": weights}))
        for _ in range(20):
            training.step()
        training.settle()
        losses.append(torch.tensor(list(training.recorder.recent)))
        assert {p.dtype for p in training.model.parameters()} == {torch.float32}
    assert losses[0][-1] < losses[0][0] - 0.1
    torch.testing.assert_close(losses[1], losses[0], rtol=0.01, atol=0.02)


def test_bf16_weights_resume_bit_for_bit_and_are_saved_in_float32(tiny: Recipe, live: Live) -> None:
    """With layers that appear, rest and thaw, recomputed layers and two micro-batches."""
    knobs = {"execution.weights": "bf16", "execution.precision": "bf16", "execution.recompute": "layers"}
    recipe = staged(tiny, depth={"kind": "multi_stage", "state": "copy"}, **knobs)
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    assert train(parts, stop_at=10).step == 10
    assert_same(straight, train(parts, resume=True))
    weights = straight.tensors["model"].values()
    assert {weight.dtype for weight in weights} == {torch.float32}
    # Not copies that were rounded: they have digits below bf16's.
    assert any(not torch.equal(weight, weight.bfloat16().float()) for weight in weights if weight.ndim == 2)
    said = read_json(whole.folder.environment)["memory"]
    assert (said["weights"], said["recompute"]) == ("bf16", "layers")


def held(training: Training, rows: int) -> int:
    """Bytes of weights, gradients, states and what a pass of so many rows keeps, as they are."""
    count, model = KeptBytes(), training.model
    with count.counting(model, list(model.backbone.blocks)):
        training.rehearse(rows)
    numbers = sum(p.numel() for p in model.parameters())
    return count.total + 4 * 4 * numbers


def test_the_largest_micro_batch_is_that_which_fits(tiny: Recipe, build: Build) -> None:
    """Between what eight rows take and what sixteen would, and the sums are the same."""
    plain = build(tiny)
    between = (held(plain, 8) * 1.35 + held(plain, 16)) / 2 / 2**30
    auto = {"execution.micro_batch_size": "auto"}
    fitted, free = build(tiny.with_(**auto, **{"execution.memory_gib": between})), build(tiny.with_(**auto))
    assert fitted.engine.micro_batch_size == 8
    assert free.engine.micro_batch_size == 16
    assert fitted.engine.described()["micro_batch_size"] == 8
    assert fitted.engine.settled == f"8 of 16 rows per micro-batch: the most that fit {between:.3g} GiB"
    assert plain.engine.settled == ""
    for training in (plain, fitted, free):
        for _ in range(3):
            training.step()
        training.settle()
    assert list(free.recorder.recent) == list(plain.recorder.recent)
    # Dropout draws by micro-batch.
    assert list(fitted.recorder.recent) == pytest.approx(list(plain.recorder.recent), rel=0.02)
    with pytest.raises(RecipeError, match=r"a pass of 1 row takes [\d.]+ GiB.* and [\d.]+ GiB are left for it; set"):
        build(tiny.with_(**auto, **{"execution.memory_gib": 4.4 * 4 * fitted.assembled.parameters / 2**30}))


def test_a_budget_decides_how_many_layers_are_computed_again(tiny: Recipe, build: Build) -> None:
    plain = build(tiny)
    whole = held(plain, 16)
    firsts = []
    for share in (1.3, 0.9, 0.75):
        training = build(tiny.with_(**{"execution.recompute": "budget", "execution.memory_gib": share * whole / 2**30}))
        first = training.engine.memory.first
        firsts.append(first)
        assert training.model.backbone.recomputes == frozenset(range(first))
        assert training.engine.settled.startswith(f"recomputing {first} of 3 layers to fit ")
        # What it gave: within the budget.
        assert held(training, 16) <= share * whole
        training.step()
    assert firsts[0] == 0 < firsts[1] <= firsts[2]
    with pytest.raises(RecipeError, match=r"with every layer computed again.* raise it by [\d.]+"):
        build(tiny.with_(**{"execution.recompute": "budget", "execution.memory_gib": 0.3 * whole / 2**30}))


@pytest.mark.parametrize("depth", ["stacking", "multi_stage"])
def test_layers_that_appear_later_count_from_the_beginning(tiny: Recipe, build: Build, depth: str) -> None:
    tall = tiny.with_(architecture={"layers": 4})
    plain = build(tall)
    between = (held(plain, 8) * 1.35 + held(plain, 16)) / 2 / 2**30
    auto = {"micro_batch_size": "auto", "memory_gib": between}
    grows = build(tall.with_(depth=depth, execution=auto))
    assert grows.engine.micro_batch_size == 8
    grows.step()
    assert [block.attention.out.weight.requires_grad for block in grows.model.backbone.blocks] == [True] * 4
    budget = {"recompute": "budget", "memory_gib": 0.75 * held(plain, 16) / 2**30}
    whole, again = (build(tall.with_(depth=kind, execution=budget)) for kind in ("full", depth))
    assert again.engine.memory.first == whole.engine.memory.first > 0


def test_copies_of_the_weights_are_nothing_that_a_row_keeps(
    tiny: Recipe, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Kept] = []

    def seen(legal: Any, room: float, kept: Kept, *passes: Any) -> int:
        found.append(kept)
        return 16

    monkeypatch.setattr(memory_saving, "largest_rows", seen)
    for weights in ("fp32", "bf16"):
        build(tiny.with_(execution={"micro_batch_size": "auto", "precision": "bf16", "weights": weights}))
    whole, low = found
    assert low.per_row == pytest.approx(whole.per_row, rel=0.05)
    assert low.blocks == pytest.approx(whole.blocks, rel=0.05)
    assert low.fixed <= whole.fixed


def test_a_fork_counts_the_states_that_it_has_read_once(
    tiny: Recipe, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms: list[float] = []
    free = [2**30]

    def seen(legal: Any, room: float, kept: Kept, *passes: Any) -> int:
        rooms.append(room)
        return 16

    monkeypatch.setattr(memory_saving, "largest_rows", seen)
    monkeypatch.setattr(memory_saving, "free_bytes", lambda device: free[-1])
    parent, forked = (live(tiny.with_(**{"execution.micro_batch_size": "auto"})) for _ in range(2))
    states = train(parent, stop_at=3).tensors["optimizer"].values()
    free.append(free[0] - sum(state.numel() * state.element_size() for state in states))
    forked.folder, lock = create_fork(parent.folder, {"name": "fork"})
    os.close(lock)
    train(forked, resume=True)
    assert rooms == [rooms[0], pytest.approx(rooms[0], rel=1e-6)]


@pytest.mark.parametrize(
    ("execution", "why"),
    [
        ({"micro_batch_size": "auto"}, r"micro_batch_size: 'auto' fits the model that a run begins with, and grow_wi"),
        ({"recompute": "budget", "memory_gib": 1.0}, r"recompute: 'budget' fits the model .* grow_width makes it larg"),
    ],
)
def test_a_model_that_widens_is_not_fitted(tiny: Recipe, execution: dict[str, Any], why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        tiny.with_(depth="grow_width", execution=execution)


def test_what_was_settled_stays_when_a_run_is_resumed(tiny: Recipe, live: Live) -> None:
    run = live(tiny.with_(**{"execution.micro_batch_size": "auto"}))
    train(run, stop_at=3)
    (event,) = [event for event in run.telemetry.events if event["kind"] == "memory"]
    assert event["text"].startswith("16 of 16 rows per micro-batch: the most that fit ")
    begun = read_json(run.folder.environment)
    assert begun["micro_batch_size"] == 16
    write_json(run.folder.environment, begun | {"micro_batch_size": 4})
    train(run, resume=True)
    assert read_json(run.folder.environment)["micro_batch_size"] == 4


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"memory_gib": 1e-5, "recompute": "budget"},
            r"memory_gib: 1e-05 GiB are less than the model takes.*weights [\d.]+, gradients [\d.]+, optimizer states",
        ),
        ({"recompute": "budget"}, r"memory_gib: recompute 'budget' needs one; give GiB, or use"),
        ({"memory_gib": 2.0}, r"memory_gib: a limit of 2 GiB does nothing by itself; set recompute to 'budget'"),
        ({"memory_gib": 2.0, "recompute": "budget", "micro_batch_size": "auto"}, r"would each wait for the other"),
        ({"micro_batch_size": "most"}, r"micro_batch_size: must be a whole number of rows >= 1, 'auto'.*got 'most'"),
        ({"micro_batch_size": 0}, r"micro_batch_size: must be a whole number of rows >= 1, 'auto'.*got 0"),
    ],
)
def test_a_budget_that_cannot_be_is_refused_before_the_launch(tiny: Recipe, change: dict[str, Any], why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        tiny.with_(execution=change)
