"""Training on a GPU, or on one in name only: nothing in a step waits for it, and losses are the CPU's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.costs import quick_ones
from tests.labelled_gpu import LabelledGpu, MixedDevices, Waited, labelled_gpu
from tests.training.conftest import LiveRun
from tests.training.test_resume import assert_same, train
from workbench.choices.choice import registry
from workbench.choices.execution.attention_probe import attention_benchmark
from workbench.recipes.recipe import Recipe
from workbench.telemetry.quantities import ENTROPY_EVERY
from workbench.telemetry.streams import Telemetry, TelemetryWriter, read_telemetry
from workbench.training import machine, profiling
from workbench.training.loop import Training
from workbench.training.measurements import PARTS, forget_peak, memory_gib
from workbench.training.profiling import profiled
from workbench.training.warmup import compile_ahead

Build = Callable[..., Training]
CUDA = torch.device("cuda")
on_gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
only_gpu = pytest.mark.parametrize("gpu", [pytest.param("cuda", marks=on_gpu)], indirect=True)


class RealGpu:
    """A GPU whose waiting can be made an error."""

    @property
    def free(self) -> bool:
        return torch.cuda.get_sync_debug_mode() == 0

    @free.setter
    def free(self, free: bool) -> None:
        torch.cuda.set_sync_debug_mode("default" if free else "error")


Gpu = RealGpu | LabelledGpu


@pytest.fixture(params=["labelled", pytest.param("cuda", marks=on_gpu)])
def gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpu]:
    if request.param == "labelled":
        with labelled_gpu(monkeypatch) as labelled:
            yield labelled
        return
    real = RealGpu()
    yield real
    real.free = True


def losses(training: Training, steps: int = 4) -> torch.Tensor:
    """Training losses and gradient norms of so many steps, (2, steps)."""
    found = []
    for _ in range(steps):
        training.step()
        training.settle()
        assert training.norm is not None
        found.append([training.recorder.loss, float(training.norm)])
    return torch.tensor(found).T


def recorded(recipe: Recipe, build: Build, folder: Path, gpu: Gpu, steps: int, first: int = 2) -> Telemetry:
    """Telemetry of ``steps`` steps, of which all but the ``first`` must wait for nothing."""
    writer = TelemetryWriter(folder)
    training = build(recipe, writer=writer)
    for step in range(steps):
        # The first ones make state, workspaces and kernels.
        gpu.free = step < first
        training.step()
    gpu.free = True
    assert len(training.recorder.recent) == steps - 1, "one record late"
    training.settle()
    writer.close()
    return read_telemetry(folder)


@pytest.mark.parametrize("optimizer", quick_ones(sorted(registry("optimizer")), "adamw", "lans"))
def test_no_step_waits_and_no_record_is_lost(
    optimizer: str, tiny: Recipe, build: Build, tmp_path: Path, gpu: Gpu
) -> None:
    recipe = tiny.with_(optimizer=optimizer, execution={"device": "cuda", "layers_every": 1})
    found = recorded(recipe, build, tmp_path, gpu, steps=ENTROPY_EVERY + 2)
    assert [each["step"] for each in found.scalars] == list(range(1, ENTROPY_EVERY + 3))
    assert [len(each["attention_entropy"]) for each in found.layers if "attention_entropy" in each] == [3, 3]
    last = found.scalars[-1]
    assert all(last[f"{part}_ms"] > 0 for part in PARTS), "by the device's own events"
    assert last["step_ms"] == pytest.approx(sum(last[f"{part}_ms"] for part in PARTS), rel=1e-4)
    assert last["memory_gib"] > 0


def test_micro_batches_and_recomputation_wait_for_nothing(tiny: Recipe, build: Build, tmp_path: Path, gpu: Gpu) -> None:
    recipe = tiny.with_(execution={"device": "cuda", "micro_batch_size": 4, "recompute": "operations"})
    assert recorded(recipe, build, tmp_path, gpu, steps=5).scalars[-1]["step"] == 5


def test_a_gpu_in_name_notices_what_waits_and_what_mixes(monkeypatch: pytest.MonkeyPatch) -> None:
    with labelled_gpu(monkeypatch) as labelled:
        there = torch.ones(3).to("cuda")
        assert (there + 1).device.type == "cuda"
        with pytest.raises(MixedDevices):
            torch.cat([there, torch.empty(0)])
        labelled.free = False
        assert torch.ones(3).pin_memory().to("cuda", non_blocking=True).is_cuda
        waits: list[Callable[[], Any]] = [
            lambda: float(there.sum()), lambda: there[there > 0], lambda: there.cpu(), lambda: bool(there.any()),
            lambda: torch.ones(3).to("cuda"), lambda: torch.tensor([1.0], device="cuda"),
        ]  # fmt: skip
        for wait in waits:
            with pytest.raises(Waited):
                wait()


@pytest.mark.parametrize("attention", ["plain", "sdpa"])
def test_losses_are_those_of_the_cpu(attention: str, tiny: Recipe, build: Build, gpu: Gpu) -> None:
    recipe = tiny.with_(architecture={"dropout": 0.0}, execution={"attention": attention})
    expected = losses(build(recipe))
    found = losses(build(recipe.with_(execution={"device": "cuda"})))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@only_gpu
@pytest.mark.parametrize(
    ("attention", "changes", "tolerance"),
    [("flex", {"compile": True}, 1e-3), ("varlen", {"precision": "bf16"}, 3e-2), ("sdpa", {"precision": "bf16"}, 3e-2)],
)
def test_attention_by_documents_gives_the_losses_of_plain(
    attention: str, changes: dict[str, Any], tolerance: float, tiny: Recipe, build: Build, gpu: Gpu
) -> None:
    recipe = tiny.with_(architecture={"dropout": 0.0, "heads": 1})
    expected = losses(build(recipe))[0]
    training = build(recipe.with_(execution={"device": "cuda", "attention": attention, **changes}))
    torch.testing.assert_close(losses(training)[0], expected, rtol=tolerance, atol=0)


@only_gpu
def test_the_probe_times_every_implementation(tiny: Recipe, gpu: Gpu) -> None:
    benchmark = attention_benchmark(
        tiny.architecture, CUDA, "bf16", torch.bfloat16, 16, 128, causal=False, compiled=False
    )
    seconds = {name: sample() for name, sample in benchmark.samples().items()}
    assert seconds.keys() == {"plain", "sdpa"}
    assert all(0 < value < 1 for (value,) in seconds.values())


@pytest.mark.parametrize("recompute", ["layers", "operations"])
def test_what_is_computed_again_draws_the_same_dropout(recompute: str, tiny: Recipe, build: Build, gpu: Gpu) -> None:
    recipe = tiny.with_(architecture={"dropout": 0.3}, execution={"device": "cuda"})
    expected = losses(build(recipe))
    assert not torch.allclose(expected, losses(build(recipe.with_(seed=1)))), "the check can fail"
    found = losses(build(recipe.with_(execution={"recompute": recompute})))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_batches_are_pinned(tiny: Recipe, build: Build, gpu: Gpu) -> None:
    training = build(tiny.with_(execution={"device": "cuda"}))
    batch = training.batches.next(0, training.batch_size.shape(training.progress))
    assert all(tensor.is_pinned() for part in batch.parts for tensor in part)


def test_the_peak_is_that_of_steps(tiny: Recipe, build: Build, gpu: Gpu) -> None:
    training = build(tiny.with_(execution={"device": "cuda"}))
    if isinstance(gpu, LabelledGpu):
        compile_ahead(training)
        assert gpu.peaks_forgotten == 1
        return
    waste = torch.empty(1 << 28, device=CUDA)
    assert memory_gib(CUDA) >= 1
    del waste
    compile_ahead(training)
    training.step()
    assert 0 < memory_gib(CUDA) < 1
    forget_peak(CUDA)


def test_a_resumed_run_repeats_the_whole_one(
    tiny: Recipe, live: Callable[[Recipe], LiveRun], monkeypatch: pytest.MonkeyPatch, gpu: Gpu
) -> None:
    if isinstance(gpu, LabelledGpu):
        monkeypatch.setitem(machine.PRODUCT_SIDE, "cuda", 64)
    recipe = tiny.with_(execution={"device": "cuda"}, budget={"amount": 6, "evaluations": 1})
    run = live(recipe)
    train(run, stop_at=3)
    assert_same(train(run, resume=True), train(live(recipe)))


@only_gpu
def test_parts_of_a_profile_make_a_whole(tiny: Recipe, build: Build, monkeypatch: pytest.MonkeyPatch, gpu: Gpu) -> None:
    monkeypatch.setattr(profiling, "STEPS", 3)
    found = profiled(build(tiny.with_(execution={"device": "cuda"})))
    assert sum(found["parts"].values()) == pytest.approx(1.0)
    assert all(0 < found["parts"][part] < 1 for part in ("products", "pointwise regions", "optimizer"))
    assert 0 < found["mfu"] < 1


@only_gpu
@pytest.mark.parametrize(
    "execution",
    [
        {"precision": "bf16", "weights": "bf16"}, {"precision": "fp16"}, {"precision": "tf32"},
        {"compile": True, "compile_scope": "step"}, {"compile": True, "compile_scope": "graphs"},
        {"precision": "bf16", "optimizer_states": "8bit"}, {"optimizer_states": "host"},
    ],
    ids=str,
)  # fmt: skip
def test_every_way_to_train_gives_eager_losses(execution: dict[str, Any], tiny: Recipe, build: Build, gpu: Gpu) -> None:
    recipe = tiny.with_(architecture={"dropout": 0.0})
    expected = losses(build(recipe), 6)[0]
    training = build(recipe.with_(execution={"device": "cuda", **execution}))
    compile_ahead(training)
    torch.testing.assert_close(losses(training, 6)[0], expected, rtol=3e-2, atol=0)
    assert {p.dtype for p in training.model.parameters()} == {torch.float32}, "the master weights"


@only_gpu
@pytest.mark.parametrize("execution", [{"precision": "fp16"}, {"compile": True, "compile_scope": "graphs"}], ids=str)
def test_scaled_and_captured_steps_wait_for_nothing(
    execution: dict[str, Any], tiny: Recipe, build: Build, tmp_path: Path, gpu: Gpu
) -> None:
    recipe = tiny.with_(execution={"device": "cuda", "layers_every": 100, **execution})
    recorded(recipe, build, tmp_path, gpu, steps=8, first=4)
