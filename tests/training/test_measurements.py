"""Per-layer statistics against the slow, obvious reference."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from workbench.choices.architectures import PreLN
from workbench.choices.choice import registry
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth import LayerPlan
from workbench.recipes.recipe import Recipe
from workbench.telemetry.quantities import ENTROPY_EVERY
from workbench.telemetry.streams import TelemetryWriter, read_telemetry
from workbench.training.loop import Training
from workbench.training.measurements import PARTS, HostCopy, LayerMeter, StepTimes, forget_peak, held_gib, memory_gib

CPU = torch.device("cpu")


def test_host_copies_keep_names_sizes_and_values() -> None:
    copy = HostCopy({"one": torch.tensor(2.5), "none": torch.empty(0), "three": torch.tensor([1.0, 2.0, 3.0])})
    assert copy.read() == {"one": [2.5], "none": [], "three": [1.0, 2.0, 3.0]}
    assert HostCopy({}).read() == {}
    assert HostCopy({"half": torch.tensor(0.5, dtype=torch.bfloat16, requires_grad=True)}).read() == {"half": [0.5]}


def test_parts_of_a_step_add_up_to_it() -> None:
    times = StepTimes(CPU)
    for part in ("data", "forward", "backward", "forward", "backward", "optimizer"):
        time.sleep(0.002)
        times.mark(part)
    read = times.milliseconds()
    assert set(read) == {f"{part}_ms" for part in PARTS} | {"step_ms"}
    assert read["step_ms"] == pytest.approx(sum(read[f"{part}_ms"] for part in PARTS))
    assert read["data_ms"] >= 2
    assert read["forward_ms"] >= 4, "micro-batches are added up"


@pytest.fixture
def parts() -> tuple[nn.Module, torch.optim.Optimizer, Batch]:
    """Three layers x 16, plain SGD, four rows of 8 tokens."""
    torch.manual_seed(0)
    backbone = PreLN(layers=3, width=16, heads=2).build(
        Vocabulary(64, 60, 2, 3, 4, 0, 1), 8, causal=False, attention="plain"
    )
    zeros = torch.zeros(4, 8, dtype=torch.int64)
    batch = Batch(torch.randint(5, 60, (4, 8)), torch.arange(8).expand(4, 8), zeros.int(), torch.arange(4))
    return backbone, torch.optim.SGD(backbone.parameters(), lr=0.1), batch


def test_norms_and_ratios_are_those_of_the_whole_block(parts: tuple[nn.Module, torch.optim.Optimizer, Batch]) -> None:
    backbone, optimizer, batch = parts
    full = LayerPlan.full(3)
    plan = LayerPlan((True, False, True), full.scale, full.trains, full.keep, total=4)
    meter = LayerMeter(backbone, optimizer)
    meter.saw(full)
    meter.saw(plan)
    meter.before()
    backbone(batch.tokens_BT, batch, plan).square().mean().backward()
    meter.gradients()
    flat = [torch.cat([p.detach().flatten() for p in block.parameters()]) for block in backbone.blocks]
    grads = [torch.cat([p.grad.flatten() for p in block.parameters()]) for block in backbone.blocks[::2]]
    optimizer.step()
    after = [torch.cat([p.detach().flatten() for p in block.parameters()]) for block in backbone.blocks]
    read = meter.after(plan, batch).vectors()
    assert all(len(vector) == 4 for vector in read.values()), "one entry per layer of the finished model"
    assert read["state"] == [0, 1, 0, 3]
    assert read["ran"] == [1.0, 0.5, 1.0, None]
    assert read["grad_norm"][1] is None
    assert read["grad_norm"][0] == pytest.approx(float(grads[0].norm()), rel=1e-4)
    assert read["grad_norm"][2] == pytest.approx(float(grads[1].norm()), rel=1e-4)
    for layer in range(3):
        ratio = float((after[layer] - flat[layer]).norm() / flat[layer].norm())
        assert read["update_ratio"][layer] == pytest.approx(ratio, rel=1e-3, abs=1e-9)
    assert read["activation_rms"][1] is None
    assert read["activation_rms"][2] > 0
    assert "trust_ratio" not in read, "SGD keeps none"
    assert backbone.taps is None, "steps that are not recorded must not collect activations"


def test_entropy_is_read_now_and_then(parts: tuple[nn.Module, torch.optim.Optimizer, Batch]) -> None:
    backbone, optimizer, batch = parts
    meter, plan = LayerMeter(backbone, optimizer), LayerPlan.full(3)
    read = []
    for _ in range(ENTROPY_EVERY + 1):
        meter.saw(plan)
        meter.before()
        backbone(batch.tokens_BT, batch, plan).mean().backward()
        meter.gradients()
        read.append("attention_entropy" in meter.after(plan, batch).vectors())
    assert read == [True, *[False] * (ENTROPY_EVERY - 1), True]


def test_memory_is_that_of_a_process_with_torch() -> None:
    assert 0.05 < memory_gib(CPU) < 1024
    # The kernel counts pages by thread and adds them up late: the peak may lag by some MiB.
    assert 0.05 < held_gib(CPU) <= memory_gib(CPU) + 0.01
    assert held_gib(torch.device("cuda")) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say what of their memory is whose")
def test_neither_free_heap_nor_program_files_are_the_models(tmp_path: Path) -> None:
    held = held_gib(CPU)
    # Smaller than what a heap maps for itself, the last of them kept: 128 MiB are free, and not given back.
    pieces = [np.ones(8 << 10) for _ in range(2 << 10)]
    last = pieces.pop()
    del pieces
    assert held_gib(CPU) == pytest.approx(held, abs=0.03)
    (file := tmp_path / "program").write_bytes(bytes(128 << 20))
    pages = np.memmap(file, np.uint8, mode="r")
    assert pages[::4096].sum() + last[0] == 1
    assert held_gib(CPU) == pytest.approx(held, abs=0.03)
    assert memory_gib(CPU) < held + 0.18, "128 MiB were held"


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="this system's mark cannot be set back")
def test_the_peak_before_the_steps_is_forgotten() -> None:
    large = np.ones(40 << 20)
    with_text = memory_gib(CPU)
    del large
    assert memory_gib(CPU) == pytest.approx(with_text, abs=0.01), "a mark stands where it was"
    assert forget_peak(CPU)
    assert memory_gib(CPU) < with_text - 0.2, "320 MiB were given back before"


def test_a_system_that_cannot_forget_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(self)

    monkeypatch.setattr(Path, "write_text", refused)
    assert not forget_peak(CPU)
    monkeypatch.setattr(Path, "read_text", refused)
    assert 0.05 < memory_gib(CPU) < 1024
    assert 0.05 < held_gib(CPU) < 1024


def test_who_waits_for_a_processor_has_less_of_it() -> None:
    times = StepTimes(CPU)
    time.sleep(0.05)
    times.mark("data")
    waited = times.processor_share
    assert waited is not None
    assert waited < 0.5
    times, began = StepTimes(CPU), time.thread_time()
    while time.thread_time() - began < 0.02:
        pass
    times.mark("data")
    assert (times.processor_share or 0) > waited


@pytest.mark.parametrize("kind", registry("optimizer"))
def test_update_ratios_are_those_of_the_steps_of_any_optimizer(
    kind: str, tiny: Recipe, build: Callable[..., Training], tmp_path: Path
) -> None:
    writer = TelemetryWriter(tmp_path)
    training = build(tiny.with_(optimizer={"kind": kind}), writer=writer)
    for _ in range(6):
        training.step()
    training.settle()
    writer.close()
    ratios = read_telemetry(tmp_path).layers[-1]["update_ratio"]
    assert len(ratios) == 3
    assert all(1e-6 < ratio < 1 for ratio in ratios)


def test_an_entropy_that_cannot_be_measured_is_none_and_said_once(
    tiny: Recipe, build: Callable[..., Training], tmp_path: Path
) -> None:
    writer = TelemetryWriter(tmp_path)
    training = build(tiny.with_(execution={"layers_every": 1}), writer=writer)

    def fails(*_: object) -> None:
        raise TypeError("forward() got multiple values\nfor argument 'output_attentions'")

    training.model.backbone.attention_entropy = fails
    for _ in range(ENTROPY_EVERY + 1):
        training.step()
    training.settle()
    writer.close()
    read = read_telemetry(tmp_path)
    measured = [line["attention_entropy"] for line in read.layers if "attention_entropy" in line]
    assert measured == [[None] * 3] * 2
    warnings = [event["text"] for event in read.events if event["kind"] == "warning"]
    assert warnings == [
        "no attention entropy of this model: TypeError: forward() got multiple values for argument 'output_attentions'"
    ]
