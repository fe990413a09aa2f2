"""The oracle of parallel training: the steps of several processes are those of one, whatever is trained and how."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.process_group import ProcessGroup, assert_same_training, trained
from workbench.base.errors import RecipeError
from workbench.choices.choice import registry
from workbench.choices.execution.parallel.sharding import largest_share
from workbench.choices.execution.ranks import Ranks
from workbench.choices.progress import progress_at
from workbench.recipes.recipe import Recipe

Fields = dict[str, Any]
Alone = Callable[[Recipe], Any]


@pytest.fixture(scope="module")
def pair() -> Iterator[ProcessGroup]:
    with ProcessGroup(2) as group:
        yield group


@pytest.fixture(scope="module")
def base(tiny: Recipe) -> Recipe:
    """Four layers without dropout, whose draws differ between processes; 16 rows in 2 micro-batches; 10 steps."""
    return tiny.with_(
        architecture={"dropout": 0.0, "layers": 4},
        execution={"micro_batch_size": 8, "parallel": {"kind": "data", "bucket_mib": 0.02}},
        budget={"amount": 10, "unit": "steps"},
        # Where Adam forgets its moments, a gradient near 0 is rounding, and makes a whole step.
        optimizer={"eps": 1e-5},
    )


def fields(recipe: Recipe) -> Fields:
    return json.loads(recipe.to_json())  # type: ignore[no-any-return]


@functools.cache
def _alone(text: str, steps: int) -> Any:
    return trained(Ranks(), json.loads(text), steps)


def alone(recipe: Recipe, steps: int = 10, cut: int = 4) -> Any:
    """One process through four micro-batches of 4 rows, as many as two processes go through in two.

    Of methods that draw layers for every micro-batch, or rows for a whole one, it goes through as many as each of them.
    """
    plans = {recipe.depth.plan(4, progress_at(recipe.budget, 0.6), recipe.seed, part) for part in range(8)}
    cut = cut if len(plans) == 1 and isinstance(recipe.data.batch_size, int) else recipe.execution.micro_batch_size
    four = recipe.with_(execution={"micro_batch_size": cut, "parallel": "data"})
    return _alone(json.dumps(fields(four)), steps)


def largest_gap(ours: Any, theirs: Any) -> float:
    """The largest difference of a loss or a weight."""
    pairs = [(ours["losses"], theirs["losses"]), *((each, theirs["weights"][n]) for n, each in ours["weights"].items())]
    return max(float(abs(np.subtract(*pair)).max()) for pair in pairs)


QUICK: list[Fields] = [{}, {"depth": "progressive_drop"}, {"depth": "stacking"}, {"objective": "replaced_token"}]
LONGER: list[Fields] = [
    *({"depth": kind} for kind in registry("depth")),
    *({"objective": kind} for kind in registry("objective")),
    {"objective": {"kind": "causal", "further_tokens": 2}},
    {"objective": {"kind": "phases", "optimizer_state": "fresh"}},
    {"execution": {"precision": "bf16", "weights": "bf16"}, "most": 2e-2},
    {"data": {"batch_size": {"kind": "linear", "start": 8, "end": 16}}},
    {"data": {"order": "curriculum"}},
    {"data": {"order": {"kind": "sharded", "shards": 4}}},
    {"execution": {"padding": "kept"}},
]
extended = pytest.mark.extended


@pytest.mark.process
@pytest.mark.parametrize("changes", [*QUICK, *(pytest.param(each, marks=extended) for each in LONGER)], ids=str)
def test_two_processes_take_the_steps_of_one(pair: ProcessGroup, base: Recipe, changes: Fields) -> None:
    most = changes.get("most", 1e-5)
    recipe = base.with_(**{axis: value for axis, value in changes.items() if axis != "most"})
    first, second = pair(trained, fields(recipe))
    assert_same_training(first, alone(recipe), most)
    assert_same_training(second, first, 0.0)


@pytest.mark.process
@extended
@pytest.mark.parametrize("kind", registry("optimizer"))
def test_with_every_optimizer(pair: ProcessGroup, base: Recipe, kind: str) -> None:
    knobs = {"eps": 1e-5} if "eps" in registry("optimizer")[kind].model_fields else {}
    recipe = base.with_(optimizer={"kind": kind, "lr": 1e-3, **knobs})
    if list(recipe.optimizer.problems_together(recipe, 2)):
        pytest.skip("refused before launch")
    # SOAP turns with the least rounding: as much as from one cut of a batch to another in one process.
    by_cut = largest_gap(alone(recipe), alone(recipe, cut=8))
    assert largest_gap(pair(trained, fields(recipe))[0], alone(recipe)) <= (1e-5 if by_cut < 1e-5 else 5 * by_cut)


@pytest.mark.process
@extended
@pytest.mark.parametrize("changes", [{}, {"depth": "raptr"}, {"depth": "grow_width"}, {"objective": "hybrid"}], ids=str)
def test_four_processes_take_the_steps_of_one(base: Recipe, changes: Fields) -> None:
    recipe = base.with_(**changes)
    with ProcessGroup(4) as four:
        assert_same_training(four(trained, fields(recipe))[0], alone(recipe))


@pytest.mark.process
def test_a_run_goes_on_in_another_number_of_processes(pair: ProcessGroup, base: Recipe) -> None:
    recipe = base.with_(depth="stacking")
    half = pair(trained, fields(recipe), 5)[0]
    on = trained(Ranks(), fields(recipe), 5, half)
    assert_same_training({"losses": half["losses"] + on["losses"], "weights": on["weights"]}, alone(recipe))


@pytest.mark.process
def test_processes_that_begin_with_equal_seeds_drop_out_differently(pair: ProcessGroup, base: Recipe) -> None:
    first, second = pair(trained, fields(base.with_(architecture={"dropout": 0.1})), 4)
    seeds = [seed for each in (first, second) for seed in each["seeds"]]
    assert len(set(seeds)) == 8, "of every step and process its own"
    assert_same_training(first, second, 0.0)


@pytest.mark.process
@extended
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_processes_that_divide_neither_batch_nor_weights(base: Recipe, stage: int) -> None:
    recipe = base.with_(execution={"parallel": {"kind": "zero", "stage": stage} if stage else {"kind": "data"}})
    with ProcessGroup(3) as three:
        assert_same_training(three(trained, fields(recipe))[0], alone(base))


@pytest.mark.process
@extended
@pytest.mark.parametrize("combine", [{"kind": "mean"}, {"kind": "adasum", "workers": 2}], ids=str)
def test_the_average_of_the_weights_is_that_of_one(pair: ProcessGroup, base: Recipe, combine: Fields) -> None:
    recipe = base.with_(optimizer={"average": 0.9, "combine": combine})
    one = trained(Ranks(), fields(recipe))["average"]
    first, second = (each["average"] for each in pair(trained, fields(recipe)))
    assert first.keys() == one.keys()
    for name, weight in one.items():
        np.testing.assert_allclose(first[name], weight, atol=1e-5, rtol=0, err_msg=name)
        np.testing.assert_array_equal(second[name], first[name])


ZERO: list[Fields] = [
    {"kind": "zero", "stage": 1, "bucket_mib": 0.02},
    {"kind": "zero", "stage": 2, "bucket_mib": 0.02},
]
THREE = {"kind": "zero", "stage": 3}
TENSOR = {"kind": "tensor"}


@pytest.mark.process
@pytest.mark.parametrize("parallel", ZERO, ids=lambda parallel: f"stage {parallel['stage']}")
@pytest.mark.parametrize("changes", [*QUICK, *(pytest.param(each, marks=extended) for each in LONGER)], ids=str)
def test_with_states_shared_out(pair: ProcessGroup, base: Recipe, changes: Fields, parallel: Fields) -> None:
    most = changes.get("most", 1e-5)
    recipe = base.with_(**{axis: value for axis, value in changes.items() if axis != "most"})
    recipe = recipe.with_(execution={"parallel": parallel})
    first, second = pair(trained, fields(recipe))
    one = alone(recipe)
    assert_same_training(first, one, most)
    assert_same_training(second, first, 0.0)
    assert first["optimizer"].keys() == one["optimizer"].keys(), "whole in the first process"
    assert first["held"] + second["held"] == one["held"]


@pytest.mark.process
@extended
@pytest.mark.parametrize("parallel", [*ZERO, THREE, TENSOR], ids=str)
@pytest.mark.parametrize("kind", registry("optimizer"))
def test_every_optimizer_that_can_be_shared_out(pair: ProcessGroup, base: Recipe, kind: str, parallel: Fields) -> None:
    knobs = {"eps": 1e-5} if "eps" in registry("optimizer")[kind].model_fields else {}
    recipe = base.with_(optimizer={"kind": kind, "lr": 1e-3, **knobs})
    if recipe.optimizer.needs_all_tensors:
        recipe = recipe.with_(optimizer={"pre_normalise": False, "clip_norm": 1.0})
    shared = recipe.with_(execution={"parallel": parallel})
    try:
        shared.check_together(2)
    except RecipeError as error:
        pytest.skip(f"refused before launch: {error}")
    by_cut = largest_gap(alone(recipe), alone(recipe, cut=8))
    assert largest_gap(pair(trained, fields(shared))[0], alone(recipe)) <= (1e-5 if by_cut < 1e-5 else 5 * by_cut)


@pytest.mark.process
@pytest.mark.parametrize("parallel", ZERO, ids=lambda parallel: f"stage {parallel['stage']}")
def test_shared_states_go_on_in_one_process_and_back(pair: ProcessGroup, base: Recipe, parallel: Fields) -> None:
    recipe = base.with_(depth="stacking", execution={"parallel": parallel})
    parts = [pair(trained, fields(recipe), 4)[0]]
    parts.append(trained(Ranks(), fields(recipe), 3, parts[-1]))
    parts.append(pair(trained, fields(recipe), 3, parts[-1])[0])
    losses = [loss for part in parts for loss in part["losses"]]
    assert_same_training({"losses": losses, "weights": parts[-1]["weights"]}, alone(recipe))


@pytest.mark.process
def test_the_memory_of_shared_states_is_as_computed(pair: ProcessGroup, base: Recipe) -> None:
    recipe = base.with_(execution={"parallel": ZERO[0]})
    one = alone(recipe)
    shares = [each["held"] for each in pair(trained, fields(recipe))]
    computed = 8 * largest_share([weight.size for weight in one["weights"].values()], 2)
    assert max(shares) == pytest.approx(computed, rel=0.1)
    assert max(shares) == pytest.approx(one["held"] / 2, rel=0.1)


CUT: list[Fields] = [each for each in LONGER if "most" not in each and each.get("objective") != "selective"]


@pytest.mark.process
@pytest.mark.parametrize("changes", [*QUICK, *(pytest.param(each, marks=extended) for each in CUT)], ids=str)
def test_with_weights_cut_into_rows(pair: ProcessGroup, base: Recipe, changes: Fields) -> None:
    recipe = base.with_(**changes)
    first, second = pair(trained, fields(recipe.with_(execution={"parallel": THREE})))
    one = alone(recipe)
    assert_same_training(first, one)
    assert first["optimizer"].keys() == one["optimizer"].keys(), "whole in the first process"
    assert first["held"] == pytest.approx(one["held"] / 2, rel=0.1)
    assert second["held"] == pytest.approx(one["held"] / 2, rel=0.1)


@pytest.mark.process
def test_weights_cut_into_rows_go_on_in_one_process_and_back(pair: ProcessGroup, base: Recipe) -> None:
    recipe = base.with_(depth="stacking")
    parts = [pair(trained, fields(recipe.with_(execution={"parallel": THREE})), 4)[0]]
    parts.append(trained(Ranks(), fields(recipe), 3, parts[-1]))
    parts.append(pair(trained, fields(recipe.with_(execution={"parallel": THREE})), 3, parts[-1])[0])
    losses = [loss for part in parts for loss in part["losses"]]
    assert_same_training({"losses": losses, "weights": parts[-1]["weights"]}, alone(recipe))


SHARED_OUT: list[Fields] = [
    *CUT,
    {"optimizer": {"kind": "lion", "lr": 1e-4}},
    {"architecture": {"kind": "post_ln", "dropout": 0.0, "layers": 4, "ffn": "swiglu", "ffn_width": 48}},
    {"architecture": {"local_window": 8, "positions": "learned", "bias": True}},
    {"execution": {"recompute": "layers", "attention": "sdpa"}},
]


def tensor_steps(group: ProcessGroup, recipe: Recipe) -> None:
    """All processes go through the rows of one, in the same micro-batches."""
    every = group(trained, fields(recipe.with_(execution={"parallel": TENSOR})))
    one = alone(recipe, cut=recipe.execution.micro_batch_size)
    assert_same_training(every[0], one)
    assert every[0]["optimizer"].keys() == one["optimizer"].keys(), "whole in the first process"
    assert {tuple(each["seeds"]) for each in every} == {tuple(one["seeds"])}, "one draw for all"


@pytest.mark.process
def test_with_projections_shared_out_and_on_in_one_process_and_back(pair: ProcessGroup, base: Recipe) -> None:
    recipe = base.with_(depth="stacking", architecture={"dropout": 0.1})
    cut = recipe.with_(execution={"parallel": TENSOR})
    parts = [pair(trained, fields(cut), 4)]
    parts.append([trained(Ranks(), fields(recipe), 3, parts[-1][0])])
    parts.append(pair(trained, fields(cut), 3, parts[-1][0]))
    losses = [loss for part in parts for loss in part[0]["losses"]]
    one = alone(recipe, cut=8)
    assert_same_training({"losses": losses, "weights": parts[-1][0]["weights"]}, one)
    matrices = sum(w.nbytes for n, w in one["weights"].items() if ".attention." in n or ".feed_forward." in n)
    for each in parts[-1]:
        assert each["weigh"] == pytest.approx(one["weigh"] - matrices / 2, rel=0.01)
        assert each["held"] == pytest.approx(one["held"] - matrices, rel=0.01), "two moments"


@pytest.mark.process
@extended
@pytest.mark.parametrize("changes", SHARED_OUT, ids=str)
def test_projections_shared_out(pair: ProcessGroup, base: Recipe, changes: Fields) -> None:
    tensor_steps(pair, base.with_(**changes))


@pytest.mark.process
@extended
@pytest.mark.parametrize("changes", [{}, {"depth": "raptr"}, {"objective": "hybrid"}], ids=str)
def test_projections_shared_out_to_four(base: Recipe, changes: Fields) -> None:
    with ProcessGroup(4) as four:
        tensor_steps(four, base.with_(architecture={"heads": 4, "dropout": 0.1}).with_(**changes))
