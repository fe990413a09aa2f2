"""Presets: every one is a recipe that can be trained, and each differs from its parent only where it says so."""

from __future__ import annotations

import pytest

from workbench import presets
from workbench.base.errors import RecipeError
from workbench.choices.progress import Progress
from workbench.recipes.recipe import Recipe


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_is_whole_and_survives_json(name: str) -> None:
    recipe = presets.get(name)
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert recipe.problems() == []
    assert recipe.name == name
    assert (getattr(presets, name).__doc__ or "").strip(), "the CLI lists it with its docstring"


def test_the_list_is_in_the_order_of_the_file_and_holds_no_helper() -> None:
    names = presets.names()
    assert names[0] == "bert_tiny"
    assert {"names", "get", "unknown"}.isdisjoint(names)
    assert not any(name.startswith("_") for name in names)


def test_an_unknown_preset_is_answered_with_the_nearest() -> None:
    with pytest.raises(RecipeError, match=r"preset: unknown value 'bert_tinny'; did you mean 'bert_tiny'\?"):
        presets.get("bert_tinny")
    with pytest.raises(AttributeError, match=r"unknown preset 'fst'; did you mean 'fast'\?"):
        presets.fst()
    assert not hasattr(presets, "fst")


def test_the_two_demo_runs_get_the_same_text_threads_and_time() -> None:
    slow, fast = presets.demo_baseline(12.0), presets.demo_fast(12.0)
    assert slow.data == fast.data
    assert slow.execution.threads == fast.execution.threads == 1
    assert slow.budget == fast.budget
    assert str(slow.budget) == "12 seconds"


def test_sizes_compared_with_one_another_are_equal() -> None:
    tiny, baseline, gpt = presets.bert_tiny(), presets.baseline(), presets.gpt_tiny()
    for other in (baseline, gpt):
        for knob in ("layers", "width", "heads", "inner_width"):
            assert getattr(other.architecture, knob) == getattr(tiny.architecture, knob), knob
    assert list(presets.fast().diff(presets.pld())) == [
        "architecture.heads", "architecture.layers", "architecture.width", "depth.dropped", "depth.kind",
        "depth.rescale", "depth.theta", "name", "optimizer.lr", "optimizer.schedule.warmup",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["raptr", "stacking", "mslt", "freeze", "grow_width"])
def test_depth_methods_differ_in_the_method_and_the_rate_tuned_for_it_alone(name: str) -> None:
    differences = presets.pld().diff(presets.get(name))
    tuned = {"optimizer.lr", "optimizer.schedule.warmup"}
    assert {path for path in differences if not path.startswith("depth.")} - tuned == {"name"}


def test_two_phases_of_lans_have_the_published_shares_shapes_and_ratio_of_rates() -> None:
    recipe = presets.lans_two_phase()
    data, optimizer = recipe.data, recipe.optimizer
    steps = recipe.budget.amount
    at = [Progress(round(share * steps), 0, 0.0, recipe.budget) for share in (0.0, 0.81, 0.83, 1.0)]
    assert [(data.rows_at(p), data.length_at(p)) for p in at] == [(32, 128), (32, 128), (8, 512), (8, 512)]
    shape = optimizer.schedule
    assert shape.until == data.sequence_length.until == data.batch_size.until == (pytest.approx(3519 / 4301, abs=1e-4),)
    # By the square root from 96K and 33K rows, relative to one another: (5 / 6.75) sqrt(8 / 33792 * 98304 / 32).
    assert shape.peaks == (1.0, pytest.approx(5 / 6.75 * (8 / 33_792 * 98_304 / 32) ** 0.5, rel=1e-3))
    ends = shape.until[0]
    # Each peak is reached at the end of its phase's warm-up and kept over its plateau.
    for begin, length, warmup, hold, peak in (
        (0.0, ends, 0.4265, 0.2735, 1.35e-2),
        (ends, 1 - ends, 0.192, 0.108, 1.35e-2 * shape.peaks[1]),
    ):
        for share in (warmup + 1e-6, warmup + hold / 2, warmup + hold - 1e-6):
            assert optimizer.lr * shape.value(begin + share * length) == pytest.approx(peak, rel=1e-4)
        assert shape.value(begin + 0.5 * warmup * length) * optimizer.lr == pytest.approx(peak / 2)
        assert shape.value(begin + 0.999999 * length) < 1e-4


def test_moving_batches_are_compared_over_equal_tokens() -> None:
    plain = presets.fast()
    tokens = plain.budget.amount * plain.data.longest * plain.data.most_rows
    for recipe in (presets.batch_ramp(), presets.length_warmup(), presets.simigrad()):
        assert (recipe.budget.unit, recipe.budget.amount) == ("tokens", tokens)
        assert recipe.data.longest == plain.data.longest, "held-out losses compare"
