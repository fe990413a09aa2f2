"""Data parallel: buckets that overlap, are compressed, and leave out what has no gradient, beside a plain sum."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.process_group import ProcessGroup
from tests.tiny_runs import tiny_recipe
from workbench.base.errors import RecipeError
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.parallel import DataParallel
from workbench.choices.execution.ranks import Ranks
from workbench.recipes.recipe_hash import recipe_hash

LAYER_NUMBERS, HEAD_NUMBERS = 24 * 24 + 24, 24 * 7 + 7


@pytest.fixture(scope="module")
def pair() -> Iterator[ProcessGroup]:
    with ProcessGroup(2) as group:
        yield group


class Stacked(nn.Module):
    """Four layers, of which a plan lets some rest or stay frozen."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.blocks = nn.ModuleList(nn.Linear(24, 24) for _ in range(4))
        self.head = nn.Linear(24, 7)

    def stacks(self) -> dict[str, Any]:
        return {"main": self}

    def forward(self, rank: int, part: int, plan: LayerPlan) -> torch.Tensor:
        torch.manual_seed(10 * part + rank)
        x_BD = torch.randn(5, 24)
        for block, runs, trains in zip(self.blocks, plan.runs, plan.trains, strict=True):
            block.requires_grad_(trains)
            x_BD = block(x_BD).tanh() + x_BD if runs else x_BD
        return self.head(x_BD).square().sum()

    def gradients(self) -> dict[str, np.ndarray]:
        """By name; and none is left."""
        found = {name: w.grad.clone().numpy() for name, w in self.named_parameters() if w.grad is not None}
        self.zero_grad(set_to_none=True)
        return found


def summed(ranks: Ranks, knobs: dict[str, Any], plans: list[LayerPlan], steps: int = 1) -> dict[str, Any]:
    """Gradients as exchanged, and as one process has them that goes through the rows of all."""
    model, exchange = Stacked(), DataParallel(**knobs).exchange(ranks)
    exchange.watch(model, torch.optim.SGD(model.parameters()))
    early, last = [], len(plans) - 1
    for _ in range(steps):
        model.zero_grad(set_to_none=True)
        exchange.told()
        early.clear()
        for part, plan in enumerate(plans):
            loss = model(ranks.rank, part, plan)
            if part == last:
                exchange.last(model, plan)
            loss.backward()
            early.append(len(exchange._sent))
            exchange.launch()
        exchange.finish()
    ours = model.gradients()
    for rank in range(ranks.size):
        for part, plan in enumerate(plans):
            model(rank, part, plan).backward()
    return {"ours": ours, "alone": model.gradients(), "told": exchange.told(), "early": early}


def plan(runs: str = "1111", trains: str = "1111") -> LayerPlan:
    as_flags = [tuple(letter == "1" for letter in each) for each in (runs, trains)]
    return LayerPlan.full(4, runs=as_flags[0], trains=as_flags[1])


def assert_equal_sums(found: list[dict[str, Any]], most: float = 1e-5) -> None:
    for each in found:
        assert each["ours"].keys() == each["alone"].keys()
        for name, gradient in each["alone"].items():
            np.testing.assert_allclose(each["ours"][name], gradient, atol=most * abs(gradient).max(), err_msg=name)
            np.testing.assert_array_equal(each["ours"][name], found[0]["ours"][name], "all processes have one sum")


@pytest.mark.process
@pytest.mark.parametrize(
    ("plans", "layers_sent"),
    [
        ([plan(), plan()], 4),
        # Dropped throughout, and frozen: not sent.
        ([plan("1010"), plan("1010")], 2),
        ([plan(trains="0011"), plan(trains="0011")], 2),
        # Ran in the first micro-batch alone.
        ([plan("1111"), plan("0110")], 4),
    ],
    ids=["full", "dropped", "frozen", "dropped in the last"],
)
def test_buckets_sum_what_has_a_gradient_in_the_last_backward_pass(
    pair: ProcessGroup, plans: list[LayerPlan], layers_sent: int
) -> None:
    # A bucket for about every tensor.
    found = pair(summed, {"bucket_mib": 1e-4}, plans)
    assert_equal_sums(found)
    for each in found:
        assert each["early"][:-1] == [0] * (len(plans) - 1), "nothing is sent before the last micro-batch"
        assert each["early"][-1] >= 2 * layers_sent, "the rest leaves while the backward pass computes"
        numbers = layers_sent * LAYER_NUMBERS + HEAD_NUMBERS
        assert each["told"]["sent_mib"] == pytest.approx(4 * numbers / 2**20), "half of it, twice"
        assert each["told"]["waited_ms"] >= 0


@pytest.mark.process
@pytest.mark.parametrize(("compression", "most", "share"), [("fp16", 1e-3, 0.5), ("bf16", 1e-2, 0.5)])
def test_sixteen_bits_are_half_the_bytes(pair: ProcessGroup, compression: str, most: float, share: float) -> None:
    found = pair(summed, {"compression": compression}, [plan(), plan("0111")])
    assert_equal_sums(found, most)
    numbers = 4 * LAYER_NUMBERS + HEAD_NUMBERS
    assert found[0]["told"]["sent_mib"] == pytest.approx(share * 4 * numbers / 2**20)


@pytest.mark.process
def test_low_rank_products_stand_for_matrices_once_the_first_steps_are_over(pair: ProcessGroup) -> None:
    knobs = {"compression": "powersgd", "rank": 2, "bucket_mib": 3e-3}
    plainly = pair(summed, knobs, [plan()], 10)
    assert_equal_sums(plainly)
    found = pair(summed, knobs, [plan()], 14)
    assert found[0]["told"]["sent_mib"] < 0.3 * plainly[0]["told"]["sent_mib"]
    for name, gradient in found[0]["alone"].items():
        ours, theirs = (each["ours"][name] for each in found)
        np.testing.assert_array_equal(ours, theirs)
        cosine = (ours * gradient).sum() / np.linalg.norm(ours) / np.linalg.norm(gradient)
        assert cosine > 0.7, name
        assert not name.startswith("blocks") or gradient.ndim < 2 or np.linalg.matrix_rank(ours, tol=1e-4) == 2


def test_powersgd_is_refused_where_buckets_change(corpus: Path) -> None:
    recipe = tiny_recipe(corpus).with_(execution={"parallel": {"kind": "data", "compression": "powersgd"}})
    with pytest.raises(RecipeError, match=r"execution\.parallel\.compression: 'powersgd' remembers .* 'bf16' or"):
        recipe.with_(depth="progressive_drop")


def test_recipes_of_before_keep_their_hash(corpus: Path) -> None:
    recipe = tiny_recipe(corpus)
    fields = json.loads(recipe.to_json())
    assert fields["execution"].pop("parallel")["kind"] == "data"
    assert recipe_hash(fields) == recipe.hash
    assert recipe.with_(execution={"parallel": {"kind": "data", "bucket_mib": 1}}).hash != recipe.hash
