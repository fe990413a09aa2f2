"""The benchmark of optimizer steps, on a model of a few thousand parameters."""

from __future__ import annotations

import pytest
import torch

from workbench import presets
from workbench.base.errors import WorkbenchError
from workbench.bench.harness import run
from workbench.bench.optimizer_steps import BASELINE, FOREACH, contenders, measure
from workbench.choices.optimizers.layerwise import layerwise_kernel
from workbench.recipes.recipe import Recipe


@pytest.fixture
def small(learnable: list[str]) -> Recipe:
    return presets.get("fast").with_assignments([each for each in learnable if not each.startswith("execution")])


@pytest.mark.process
def test_all_step_the_same_parameters_and_leave_nothing_out(small: Recipe) -> None:
    made = contenders(small, ["adamw", "lans"])
    kernel = ["lans"] if layerwise_kernel(torch.device("cpu")) else []
    assert list(made) == [BASELINE, FOREACH, *kernel, "lans (multi-tensor)"]
    baseline = made[BASELINE]
    assert all(group["fused"] for group in baseline.param_groups), "what training would use instead"
    assert all(group["foreach"] and not group["fused"] for group in made[FOREACH].param_groups)
    everything = {id(p) for group in baseline.param_groups for p in group["params"]}
    for optimizer in made.values():
        assert {id(p) for group in optimizer.param_groups for p in group["params"]} == everything
    assert all(p.grad is not None for group in baseline.param_groups for p in group["params"])


@pytest.mark.process
def test_every_reading_is_kept_and_ratios_are_of_one_round(small: Recipe) -> None:
    threads = torch.get_num_threads()
    result = measure(small, ["adamw", "lamb"], rounds=4, threads=1)
    assert torch.get_num_threads() == threads
    figures = result["optimizers"]["lamb (multi-tensor)"]
    ours, theirs = (result["optimizers"][name]["readings_ms"]["cpu"] for name in ("lamb (multi-tensor)", BASELINE))
    assert len(ours) == 4
    paired = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    assert figures["ratio"]["cpu"]["median"] == pytest.approx((paired[1] + paired[2]) / 2)
    assert result["optimizers"][BASELINE]["ratio"]["wall"] == {"median": 1.0, "min": 1.0, "max": 1.0, "quiet": 1.0}


def test_an_unknown_optimizer_is_named() -> None:
    with pytest.raises(WorkbenchError, match=r"'lamp'.*did you mean 'lamb'"):
        run("optimizer_steps", ["--optimizers", "lamp"])
