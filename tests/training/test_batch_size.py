"""Batches change their shape as scheduled, rounded so that micro-batches stay equal and no larger than allowed."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import presets
from workbench.recipes.recipe import Recipe
from workbench.training.batch_size import BatchSize, cosine_of_halves, step_shape
from workbench.training.batches import StepShape
from workbench.training.evaluate import evaluate
from workbench.training.loop import Training
from workbench.training.warmup import _variants, compile_ahead

Build = Callable[..., Training]
RAMP = {"kind": "linear", "start": 4, "end": 16}
LENGTHS = {"kind": "stages", "values": (16, 32), "until": (0.5,)}


@settings(max_examples=200)
@given(rows=st.floats(1, 300), limit=st.integers(1, 40), length=st.sampled_from([8, 16, 24, 64, 96, 120, 128]))
def test_micro_batches_are_equal_and_never_larger_than_allowed(rows: float, limit: int, length: int) -> None:
    shape = step_shape(rows, length, 128, limit)
    assert shape.rows % shape.part_rows == 0
    assert shape.part_rows * length <= limit * 128
    assert abs(shape.rows - rows) <= max(0.5, limit / 2), "rounded to the nearest whole micro-batch"
    if rows >= limit:
        assert shape.rows % limit == 0


def test_shorter_rows_go_together() -> None:
    assert step_shape(64, 512, 512, 8) == StepShape(64, 512, 8)
    assert step_shape(64, 128, 512, 8) == StepShape(64, 128, 32)
    # Three would fit, but do not divide the eight micro-batches evenly.
    assert step_shape(64, 168, 512, 8) == StepShape(64, 168, 16)
    assert step_shape(4, 128, 512, 8) == StepShape(4, 128, 4)


def test_a_constant_batch_is_what_it_was() -> None:
    assert step_shape(48, 100, 100, 16) == StepShape(48, 100, 16)
    assert step_shape(48, 100, 100, None) == StepShape(48, 100, 48)


def test_evaluation_takes_as_many_tokens_at_once_as_training(tiny: Recipe) -> None:
    phases = {"batch_size": {"kind": "stages", "values": (64, 8), "until": (0.8,)}, "sequence_length": LENGTHS}
    # 64 x 16 until .5, then 64 x 32: held-out rows are 32 long.
    assert tiny.with_(data=phases).engine().rows == 64
    short = {**phases, "sequence_length": {"kind": "stages", "values": (16, 64), "until": (0.8,)}}
    assert tiny.with_(data=short).engine().rows == 16


def test_a_ramp_and_phases_train_and_are_on_record(tiny: Recipe, build: Build) -> None:
    recipe = tiny.with_(
        data={"batch_size": RAMP, "sequence_length": LENGTHS}, execution={"micro_batch_size": 4}, depth="full"
    )
    training = build(recipe)
    shapes, tokens = [], []
    while not training.progress.done:
        shapes.append(training.batch_size.shape(training.progress))
        before = training.progress.tokens
        training.step()
        tokens.append(training.progress.tokens - before)
    assert tokens == [shape.tokens for shape in shapes]
    assert [shape.length for shape in shapes] == [16] * 10 + [32] * 10
    assert [shape.rows for shape in shapes] == sorted(shape.rows for shape in shapes)
    assert {shape.rows for shape in shapes} == {4, 8, 12, 16}
    assert BatchSize(recipe, 4).shape(training.progress) == StepShape(16, 32, 4)
    assert training.model.backbone.sequence_length == recipe.data.longest == 32


def test_gradients_are_the_mean_over_the_batch_at_every_length(tiny: Recipe, build: Build) -> None:
    """Cut into micro-batches or not, a short-row step moves the weights alike."""
    recipe = tiny.with_(data={"sequence_length": LENGTHS}, architecture={"dropout": 0.0}, depth="full")
    whole, parts = build(recipe), build(recipe.with_(execution={"micro_batch_size": 4}))
    assert parts.batch_size.shape(parts.progress) == StepShape(16, 16, 8)
    for training in (whole, parts):
        training.step()
    for one, other in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.allclose(one, other, atol=2e-4), (one - other).abs().max()


def test_heldout_loss_is_read_off_the_longest_rows_at_any_time(tiny: Recipe, build: Build) -> None:
    constant, moving = build(tiny), build(tiny.with_(data={"sequence_length": LENGTHS, "batch_size": RAMP}))
    scores = [
        evaluate(training.recipe, training.assembled, training.assembled.heldout) for training in (constant, moving)
    ]
    assert scores[0].tokens == scores[1].tokens
    assert scores[0].scored == scores[1].scored
    assert scores[0].loss == pytest.approx(scores[1].loss, abs=1e-6)


def test_compiling_ahead_meets_two_sizes_of_everything_that_moves(tiny: Recipe, build: Build) -> None:
    lengths = {"kind": "linear", "start": 8, "end": 32}
    training = build(tiny.with_(data={"batch_size": RAMP, "sequence_length": lengths}))
    shapes = [shape for *_, shape in _variants(training)]
    assert 2 <= len(shapes) <= 3
    assert len({shape.length for shape in shapes}) >= 2
    assert len({shape.rows for shape in shapes}) >= 2
    assert compile_ahead(training) > 0
    # Stages: both lengths, though they come late.
    late = {"kind": "stages", "values": (16, 32), "until": (0.9,)}
    shapes = [shape for *_, shape in _variants(build(tiny.with_(data={"sequence_length": late})))]
    assert [shape.length for shape in shapes] == [16, 32]


# --- rules that look at gradients -----------------------------------------------------------------------------------


def half_gradients(training: Training, samples: range) -> torch.Tensor:
    """Gradient of the mean loss over some samples of the coming step, flat; the slow way, by itself."""
    batch = training.assembled.order.batch(torch.tensor(samples).numpy())
    training.model.zero_grad(set_to_none=True)
    torch.manual_seed(training.recipe.seed << 32)
    training.model(batch, training.plan(), training.progress).parts["loss"].backward()
    flat = [p.grad.flatten() for p in training.model.parameters() if p.grad is not None]
    training.model.zero_grad(set_to_none=True)
    return torch.cat(flat).double()


@pytest.mark.parametrize("micro", [None, 8, 4, 2])
def test_the_cosine_is_that_of_the_two_halves(tiny: Recipe, build: Build, micro: int | None) -> None:
    recipe = tiny.with_(
        data={"batch_rule": {"kind": "simigrad", "every": 1}},
        architecture={"dropout": 0.0},
        execution={"micro_batch_size": micro},
    )
    training = build(recipe)
    one, other = half_gradients(training, range(8)), half_gradients(training, range(8, 16))
    expected = torch.cosine_similarity(one, other, dim=0).item()
    assert 0.05 < expected < 0.999, "gradients that say something"
    training.step()
    state = training.batch_size.state()
    assert state["cosine"] == pytest.approx(expected, abs=1e-4)
    assert state["rows"] == pytest.approx(16 * (1.1 if expected < 0.8 else 0.9))


def test_an_odd_number_of_micro_batches_compares_as_many_before_as_after(tiny: Recipe, build: Build) -> None:
    recipe = tiny.with_(
        data={"batch_size": 10, "batch_rule": {"kind": "simigrad", "every": 1}},
        architecture={"dropout": 0.0},
        execution={"micro_batch_size": 2},
    )
    training = build(recipe)
    one, other = half_gradients(training, range(4)), half_gradients(training, range(4, 8))
    training.step()
    expected = torch.cosine_similarity(one, other, dim=0).item()
    assert training.batch_size.state()["cosine"] == pytest.approx(expected, abs=1e-4)


def test_looking_at_halves_changes_nothing_else(tiny: Recipe, build: Build) -> None:
    """A rule that may not move the batch trains bit for bit like none, where both are cut alike."""
    rule = {"kind": "simigrad", "every": 2, "lowest": 16, "highest": 16}
    cut = tiny.with_(execution={"micro_batch_size": 8})
    plain, watched = build(cut), build(cut.with_(data={"batch_rule": rule}))
    for training in (plain, watched):
        for _ in range(4):
            training.step()
    assert watched.batch_size.state()["cosine"] is not None
    for a, b in zip(plain.model.parameters(), watched.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_layers_that_did_not_run_and_gradients_that_are_not_finite() -> None:
    a, b = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    # First half only in one tensor, second half only in the other: nothing in common.
    assert cosine_of_halves([a, None], [a, b]) == 0.0
    assert cosine_of_halves([a, None], [a + b, None]) == 0.0
    assert cosine_of_halves([2 * a], [a]) == -1.0
    assert math.isnan(cosine_of_halves([None], [None]))
    assert math.isnan(cosine_of_halves([a], [a]))
    assert math.isnan(cosine_of_halves([a * math.inf], [a]))


def test_the_batch_grows_by_accumulation_and_is_on_record(tiny: Recipe, build: Build) -> None:
    rule = {"kind": "simigrad", "every": 1, "target": 0.99, "highest": 24, "grow": 1.5}
    training = build(tiny.with_(data={"batch_size": 4, "batch_rule": rule}, execution={"micro_batch_size": 4}))
    rows = []
    for _ in range(10):
        shape = training.batch_size.shape(training.progress)
        training.step()
        rows.append(shape.rows)
        # Whole micro-batches; the first step's only one is cut in two.
        assert shape.part_rows == (2 if shape.rows == 4 else 4)
    assert rows[0] == 4
    assert rows == sorted(rows)
    assert rows[-1] == 24
    assert training.progress.tokens == sum(rows) * 32
    knobs = training.batch_size.knobs(shape)
    assert knobs["data.batch_size"] == 24
    assert -1 <= knobs["data.batch_rule.cosine"] <= 1


@pytest.mark.parametrize(("scaling", "power"), [("none", 0.0), ("sqrt", 0.5), ("linear", 1.0)])
def test_the_rate_follows_the_rows_that_are_taken(tiny: Recipe, build: Build, scaling: str, power: float) -> None:
    recipe = tiny.with_(data={"batch_size": RAMP, "batch_rule": {"lr_scaling": scaling}})
    training = build(recipe)
    for _ in range(5):
        training.step()
        before = training.progress
    training.step()
    rows = BatchSize(recipe, None).shape(before).rows
    expected = recipe.optimizer.lr_at(before) * (rows / 16) ** power
    assert training.optimizer.param_groups[0]["lr"] == pytest.approx(expected)
    assert rows < 16


def test_compiling_ahead_meets_the_halves_too(tiny: Recipe, build: Build) -> None:
    training = build(tiny.with_(data={"batch_rule": "simigrad"}, budget="60 s"))
    assert {shape.part_rows for *_, shape in _variants(training)} == {16, 8}


@pytest.mark.parametrize(
    "name",
    [
        "simigrad",
        *(pytest.param(each, marks=pytest.mark.extended) for each in ("lans_two_phase", "batch_ramp", "length_warmup")),
    ],
)
def test_presets_of_moving_batches_train_to_their_end(tiny: Recipe, build: Build, name: str) -> None:
    """On the tests' corpus and model, with less text per step's worth of budget."""
    recipe = presets.get(name)
    moving = ("sequence_length", "batch_size", "batch_rule")
    fields = recipe.to_dict()
    small = tiny.with_(
        data={field: fields["data"][field] for field in moving},
        optimizer=fields["optimizer"],
        execution={"micro_batch_size": fields["execution"]["micro_batch_size"]},
        budget="6 steps" if recipe.budget.unit == "steps" else "4_000 tokens",
    )
    training, shapes = build(small), set()
    while not training.progress.done:
        shapes.add(training.batch_size.shape(training.progress))
        training.step()
    assert len(shapes) >= 2, "something moves"
    assert math.isfinite(training.recorder.loss)
