"""The C++ kernels against the slow reference: formula, types, memory they may touch, bits that do not change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("workbench_kernels", reason="workbench-kernels is not installed: `make kernels` builds it")

from workbench_kernels.layerwise import layerwise_step, norm, reference, why_not

pytestmark = pytest.mark.skipif(why_not("cpu") is not None, reason=str(why_not("cpu")))

SHAPES = ([33, 17], [1], [18011], [3, 5, 7], [], [0], [4096], [300, 400])
SETTINGS: dict[str, Any] = {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-6}
NAN = float("nan")


class Held:
    """Weights and state, each in the middle of a larger buffer of NaN that must stay NaN."""

    def __init__(self, weights: list[Tensor], copied: bool = False) -> None:
        self.buffers: list[Tensor] = []
        self.weights = [self._embed(weight) for weight in weights]
        self.moments = [self._embed(torch.zeros(w.shape)) for w in weights]
        self.squares = [self._embed(torch.zeros(w.shape)) for w in weights]
        self.ratios = [self._embed(torch.tensor(NAN)) for _ in weights]
        self.copies = [self._embed(torch.full(w.shape, NAN, dtype=torch.bfloat16)) for w in weights] if copied else []
        self.steps = [torch.zeros(()) for _ in weights]

    def _embed(self, tensor: Tensor) -> Tensor:
        buffer = torch.full((tensor.numel() + 34,), NAN, dtype=tensor.dtype)
        self.buffers.append(buffer)
        inner = buffer[17 : 17 + tensor.numel()].view(tensor.shape)
        return inner.copy_(tensor)

    def step(self, grads: list[Tensor], **settings: Any) -> None:
        """One step of the kernel."""
        for count in self.steps:
            count += 1
        state = (self.moments, self.squares, self.ratios, self.steps)
        layerwise_step(self.weights, grads, *state, copies=self.copies, **SETTINGS | settings)
        assert all(buffer[:17].isnan().all() and buffer[-17:].isnan().all() for buffer in self.buffers)


def tensors(seed: int, shapes: Any = SHAPES, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def assert_follows(weights: list[Tensor], steps: int, dtype: torch.dtype = torch.float32, **settings: Any) -> None:
    held = Held(weights)
    slow = [weight.double() for weight in weights]
    state = [[torch.zeros_like(x) for x in slow] for _ in range(2)]
    ratios = [torch.ones((), dtype=torch.float64) for _ in slow]
    for step in range(steps):
        grads = tensors(100 + step, [w.shape for w in weights], dtype)
        if step == 0 and len(grads) > 1:
            grads[0].zero_()
        held.step(grads, **settings)
        reference.layerwise_step(slow, grads, *state, ratios, held.steps, **SETTINGS | settings)
        for i, expected in enumerate(slow):
            torch.testing.assert_close(held.weights[i].double(), expected, rtol=2e-5, atol=2e-6)
            torch.testing.assert_close(held.moments[i].double(), state[0][i], rtol=2e-5, atol=1e-7)
            torch.testing.assert_close(held.squares[i].double(), state[1][i], rtol=2e-5, atol=1e-9)
            if expected.numel():
                torch.testing.assert_close(held.ratios[i].double(), ratios[i], rtol=2e-5, atol=0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
@pytest.mark.parametrize("normalised", [True, False], ids=["lans", "lamb"])
def test_seven_steps_equal_the_slow_reference(normalised: bool, weight_decay: float, dtype: torch.dtype) -> None:
    weights = [*tensors(0), torch.zeros(6)]
    assert_follows(weights, 7, dtype, normalised=normalised, weight_decay=weight_decay)


@pytest.mark.parametrize(
    "variant",
    [
        {"bias_correction": False}, {"ratio_bounds": (0.01, 0.3)}, {"ratio_bounds": (3.0, None)}, {"adapts": False},
        {"grad_scale": 1e-3}, {"grad_scale": torch.tensor(2.0)}, {"lr": torch.tensor(0.02)},
        {"lr": torch.tensor(0.02, dtype=torch.float64)},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("normalised", [True, False], ids=["lans", "lamb"])
def test_every_setting_enters_as_in_the_reference(normalised: bool, variant: dict[str, Any]) -> None:
    assert_follows(tensors(0), 3, normalised=normalised, weight_decay=0.01, **variant)


@pytest.mark.extended
# Both sum their norms alike, and the slow reference takes seconds for more elements than float32 can count, 2^24.
@pytest.mark.parametrize(("normalised", "width"), [(True, 520), (False, 128)], ids=["lans", "lamb"])
def test_a_table_of_a_large_model(normalised: bool, width: int) -> None:
    table = 0.02 * torch.randn(32320, width, generator=torch.Generator().manual_seed(0))
    assert_follows([table], 1, normalised=normalised, weight_decay=0.01)


def test_masters_are_copied_to_bfloat16_rounded_to_nearest() -> None:
    held = Held([*tensors(0), torch.tensor([NAN, float("inf"), 3.3e38, -1.0])], copied=True)
    for step in range(3):
        held.step(tensors(step, [w.shape for w in held.weights], torch.bfloat16), normalised=False, weight_decay=0.01)
    for master, copied in zip(held.weights, held.copies, strict=True):
        torch.testing.assert_close(copied, master.bfloat16(), rtol=0.0, atol=0.0, equal_nan=True)


@pytest.mark.parametrize("normalised", [True, False], ids=["lans", "lamb"])
def test_steps_repeat_bit_for_bit_with_any_number_of_threads(normalised: bool) -> None:
    shapes = [[1_500_001], [700, 811], *SHAPES]
    before, ended = torch.get_num_threads(), []
    try:
        for threads in (1, 1, 2, 3):
            torch.set_num_threads(threads)
            held = Held(tensors(0, shapes))
            for step in range(3):
                grads = tensors(100 + step, shapes)
                held.step(grads, normalised=normalised, weight_decay=0.01, grad_scale=1 / norm(grads))
            ended.append([*held.weights, *held.moments, *held.squares])
    finally:
        torch.set_num_threads(before)
    for others in ended[1:]:
        assert all(torch.equal(one, other) for one, other in zip(ended[0], others, strict=True))


@pytest.mark.extended
@pytest.mark.process
@pytest.mark.parametrize("capability", ["avx2", "default"])
def test_narrower_instruction_sets_give_the_same_within_rounding(capability: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    command += ["-k", "slow_reference and 0.01 or masters or any_number"]
    environment = os.environ | {"ATEN_CPU_CAPABILITY": capability}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " skipped" not in done.stdout


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_norm_counts_every_element_of_every_tensor(dtype: torch.dtype) -> None:
    held = tensors(0, dtype=dtype)
    expected = torch.cat([tensor.double().flatten() for tensor in held]).norm()
    torch.testing.assert_close(norm(held), expected, rtol=1e-6, atol=0.0)


def arguments() -> dict[str, Any]:
    held = Held(tensors(0), copied=True)
    for count in held.steps:
        count += 1
    return {
        "weights": held.weights, "grads": tensors(1), "exp_avgs": held.moments, "exp_avg_sqs": held.squares,
        "trust_ratios": held.ratios, "steps": held.steps, "copies": held.copies,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["weights", "grads", "exp_avgs", "exp_avg_sqs", "copies", "trust_ratios"])
def test_tensors_that_do_not_fit_are_refused(name: str) -> None:
    for change in (lambda t: t[:-1], lambda t: t.double(), lambda t: t.expand(2, *t.shape)):
        given = arguments()
        given[name] = [*given[name][:-1], change(given[name][-1].reshape(-1))]
        with pytest.raises((RuntimeError, NotImplementedError)):
            layerwise_step(**given, **SETTINGS, weight_decay=0.0, normalised=True)
    given = arguments()
    given[name] = given[name][:-1]
    with pytest.raises(RuntimeError):
        layerwise_step(**given, **SETTINGS, weight_decay=0.0, normalised=True)


def test_torch_accepts_the_ops() -> None:
    """Schema, fake tensors, and what autograd and the compiler make of them."""
    given = arguments()
    numbers = (torch.tensor(0.01), torch.tensor(1.0), 0.9, 0.999, 1e-6, 0.0, 0.0, 10.0, True, True, True)
    order = ("weights", "grads", "exp_avgs", "exp_avg_sqs", "trust_ratios", "copies", "steps")
    checks = ("test_schema", "test_faketensor", "test_autograd_registration")
    step = torch.ops.workbench_kernels.layerwise_step.default
    torch.library.opcheck(step, (*(given[name] for name in order), *numbers), test_utils=checks)
    out = torch.empty((), dtype=torch.float64)
    torch.library.opcheck(torch.ops.workbench_kernels.norm.default, (given["grads"], out), test_utils=checks)


def test_autograd_notices_a_step() -> None:
    weight = torch.ones(4, requires_grad=True)
    loss = weight.square().sum()
    held = Held([weight.detach()])
    held.weights = [weight.detach()]
    held.step([torch.ones(4)], normalised=True, weight_decay=0.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_other_devices_are_refused_with_the_reason() -> None:
    meta = [torch.ones(2, device="meta")]
    with pytest.raises(NotImplementedError, match="kernels for cpu and cuda, not for meta"):
        layerwise_step(meta, meta, meta, meta, meta, meta, **SETTINGS, weight_decay=0.0, normalised=True)


def test_the_library_is_not_of_this_python() -> None:
    """Against torch's stable ABI and without Python: one wheel for every version."""
    library = Path(reference.__file__).with_name("_cpu.so").read_bytes()
    assert b"PyInit_" not in library
    assert b"PyObject" not in library
