"""Where a step's time goes: every part is found, parts make a whole, and the run goes on as if nobody had looked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import DeviceType
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function

from workbench.base.errors import WorkbenchError
from workbench.recipes.recipe import Recipe
from workbench.training import profiling
from workbench.training.loop import Training
from workbench.training.profiling import PARTS, UPDATE, profiled, shares

Build = Callable[..., Training]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "STEPS", 3)
    monkeypatch.setattr(profiling, "gemm_flops", lambda mode: 1e11)


def test_parts_of_a_step_make_a_whole_and_the_run_is_the_same(tiny: Recipe, build: Build) -> None:
    plain, looked_into = build(tiny), build(tiny)
    found = profiled(looked_into)
    for _ in range(6):
        plain.step()
    assert looked_into.progress.step == 6
    for ours, theirs in zip(looked_into.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert found["steps"] == 3
    assert list(found["parts"]) == [*PARTS, "rest"]
    assert sum(found["parts"].values()) == pytest.approx(1.0)
    assert all(share > 0 for share in found["parts"].values()), found["parts"]
    # The batches differ in how long their documents are, and so by a little.
    flops = looked_into.recorder.useful_flops / 6
    assert found["mfu"] == pytest.approx(flops / found["step_seconds"] / 1e11, rel=0.02)
    assert found["tokens_per_second"] * found["step_seconds"] == pytest.approx(tiny.data.batch_size * 32)
    assert "next" not in vars(looked_into.batches), "the marks are gone"
    assert found["engine"] == looked_into.engine.described()


def test_work_counts_where_it_is_called_from() -> None:
    a = torch.randn(64, 64)
    with profile(activities=[ProfilerActivity.CPU]) as recorded, record_function("all"):
        a @ a
        torch.bmm(a[None], a[None])
        with record_function(UPDATE):
            a @ a
    events: list[Any] = list(recorded.events())
    total = next(event.cpu_time_total for event in events if event.name == "all")
    parts, operations = shares(events, total, device=False)
    counted = {event.name: event.self_cpu_time_total / total for event in events}
    assert parts["batched products"] == pytest.approx(counted["aten::bmm"])
    products = [event.self_cpu_time_total / total for event in events if event.name == "aten::mm"]
    assert parts["products"] == pytest.approx(products[0])
    assert parts["optimizer"] >= products[1], "the product of an update is part of it"
    assert dict(operations)["aten::mm"] == pytest.approx(sum(products))


def test_a_gpus_kernels_count_once_and_where_they_were_launched() -> None:
    """The profiler lists kernels and marks beside the operations that hold their time already."""

    def event(name: str, device: DeviceType, microseconds: float) -> FunctionEvent:
        return FunctionEvent(0, name, 1, 0.0, microseconds, use_device="cuda", device_type=device)

    product, fused, mark = (event(name, DeviceType.CPU, 5) for name in ("aten::mm", "triton_poi_fused", UPDATE))
    step = event("aten::_fused_adamw_", DeviceType.CPU, 5)
    step.set_cpu_parent(mark)
    mark.append_cpu_child(step)
    events = [product, fused, mark, step]
    for launched, kernel, microseconds in (
        (product, "sm90_gemm", 40),
        (fused, "triton_poi_fused", 20),
        (step, "k", 10),
    ):
        launched.append_kernel(kernel, 0, microseconds)
        events.append(event(kernel, DeviceType.CUDA, microseconds))
    events.append(event(UPDATE, DeviceType.CUDA, 10))
    parts, operations = shares(events, 100, device=True)
    assert {name: share for name, share in parts.items() if share} == pytest.approx(
        {"products": 0.4, "pointwise regions": 0.2, "optimizer": 0.1, "rest": 0.3}
    )
    assert dict(operations)["triton_poi_fused"] == pytest.approx(0.2)


def test_a_run_that_is_over_says_so(tiny: Recipe, build: Build) -> None:
    with pytest.raises(WorkbenchError, match="over before enough steps could be looked into; give it a larger budget"):
        profiled(build(tiny.with_(budget="2 steps")))
