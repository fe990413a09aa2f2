"""What LANS and LAMB share: compilation that changes nothing, one graph for every size, states that survive."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from workbench.choices.optimizers.lamb import LAMB
from workbench.choices.optimizers.lans import LANS
from workbench.choices.optimizers.layerwise import LARGE, LayerwiseOptimizer
from workbench.ops import kernels

SHAPES = ([300, 200], [17], [LARGE], [LARGE - 1], [1_100_000], [3, 83, 101])
both = pytest.mark.parametrize("method", [LANS, LAMB])
# The first of them compiles, whichever it is: half a minute where no cache knows the graph yet.
compiles = pytest.mark.slow


@pytest.fixture(autouse=True)
def by_torch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's operations take the steps, unless a test is about the kernel."""
    if "kernel" not in request.fixturenames:
        monkeypatch.setattr(LayerwiseOptimizer, "fused", False)


def parameters(dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator).to(dtype)) for shape in SHAPES]


def walk(optimizer: torch.optim.Optimizer, held: list[nn.Parameter], steps: range) -> None:
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        for parameter in held:
            parameter.grad = torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
        optimizer.step()


@compiles
@both
def test_compiled_and_eager_steps_agree(method: type[LayerwiseOptimizer]) -> None:
    eager, fused = parameters(), parameters()
    first, second = method(eager, lr=0.01), method(fused, lr=0.01, compile=True)  # type: ignore[call-arg]
    for step in range(4):
        walk(first, eager, range(step, step + 1))
        walk(second, fused, range(step, step + 1))
        for one, other in zip(eager, fused, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
            for name in ("trust_ratio", "exp_avg", "exp_avg_sq"):
                torch.testing.assert_close(first.state[one][name], second.state[other][name], rtol=1e-4, atol=1e-7)


@compiles
@both
def test_after_compiling_ahead_nothing_is_compiled_again(method: type[LayerwiseOptimizer]) -> None:
    held = parameters()
    before = [p.detach().clone() for p in held]
    optimizer = method(held, lr=0.01)  # type: ignore[call-arg]
    optimizer.compile_step()
    assert all(torch.equal(p, old) for p, old in zip(held, before, strict=True)), "weights are not touched"
    assert not optimizer.state, "no state is made"
    with torch.compiler.set_stance("fail_on_recompile"):
        for step, (lr, decay) in enumerate(((0.01, 0.0), (0.02, 0.01), (0.005, 0.1))):
            for group in optimizer.param_groups:
                group["lr"], group["weight_decay"] = lr, decay
            walk(optimizer, held, range(step, step + 1))
        # Sizes and shapes that nobody has named before.
        strangers = [nn.Parameter(torch.randn(shape)) for shape in ([257, 1031], [2, 3, 5, 7, 89], [2_000_003])]
        walk(method(strangers, lr=0.1, compile=True), strangers, range(2))  # type: ignore[call-arg]


@compiles
@both
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_compiled_run_resumes_bit_exactly(method: type[LayerwiseOptimizer], dtype: torch.dtype) -> None:
    straight = parameters(dtype)
    optimizer = method(straight, lr=0.01, compile=True)  # type: ignore[call-arg]
    walk(optimizer, straight, range(3))
    saved = copy.deepcopy(optimizer.state_dict())
    resumed = [nn.Parameter(p.detach().clone()) for p in straight]
    again = method(resumed, lr=0.01)  # type: ignore[call-arg]
    again.load_state_dict(saved)
    assert all(group["compile"] for group in again.param_groups), "the saved run's way of stepping comes with it"
    walk(optimizer, straight, range(3, 6))
    walk(again, resumed, range(3, 6))
    for one, other in zip(straight, resumed, strict=True):
        assert torch.equal(one, other)
        assert all(torch.equal(v, again.state[other][k]) for k, v in optimizer.state[one].items())


@compiles
@both
def test_compiled_steps_repeat_bit_for_bit(method: type[LayerwiseOptimizer]) -> None:
    ended = []
    for _ in range(2):
        held = parameters()
        walk(method(held, lr=0.01, compile=True), held, range(4))  # type: ignore[call-arg]
        ended.append(held)
    assert all(torch.equal(one, other) for one, other in zip(*ended, strict=True))


@pytest.fixture
def kernel() -> None:
    """The fused kernel takes the steps of this test."""
    if kernels.layerwise_step(torch.device("cpu")) is None:
        pytest.skip(kernels.layerwise_path(torch.device("cpu")))


@both
def test_a_run_goes_on_with_the_kernel_and_without_it(method: type[LayerwiseOptimizer], kernel: None) -> None:
    held, other = parameters(), parameters()
    first, second = method(held, lr=0.01), method(other, lr=0.01)  # type: ignore[call-arg]
    second.fused = False
    walk(first, held, range(2))
    walk(second, other, range(2))
    # Now the other way round, from the other's state.
    states = [copy.deepcopy(optimizer.state_dict()) for optimizer in (second, first)]
    first.load_state_dict(states[0])
    second.load_state_dict(states[1])
    walk(first, held, range(2, 4))
    walk(second, other, range(2, 4))
    for one, two in zip(held, other, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)
        assert {k: (v.shape, v.dtype) for k, v in first.state[one].items()} == {
            k: (v.shape, v.dtype) for k, v in second.state[two].items()
        }


def test_the_kernel_needs_no_compiler(kernel: None) -> None:
    held = parameters()
    optimizer = LANS(held, lr=0.01, compile=True)
    assert optimizer.path.startswith("fused kernel of workbench-kernels ")
    with torch.compiler.set_stance("fail_on_recompile"):
        optimizer.compile_step()
        walk(optimizer, held, range(1))


@compiles
def test_autograd_notices_a_compiled_step() -> None:
    weight = nn.Parameter(torch.ones(LARGE))
    optimizer = LANS([weight], lr=0.1, compile=True)
    loss = weight.square().sum()
    weight.grad = torch.ones(LARGE)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@compiles
def test_a_deep_copy_goes_on_alike() -> None:
    held = parameters()
    optimizer = LAMB(held, lr=0.01, compile=True, ratio_bounds=(0.1, None))
    walk(optimizer, held, range(2))
    # Together, or the copy would step the original's parameters.
    twins, twin = copy.deepcopy((held, optimizer))
    walk(optimizer, held, range(2, 4))
    walk(twin, twins, range(2, 4))
    assert all(torch.equal(one, other) for one, other in zip(held, twins, strict=True))


WITHOUT_COMPILER = """
import torch, warnings
from torch import nn
from workbench.choices.optimizers.lans import LANS
LANS.fused = False
weights = [nn.Parameter(torch.linspace(-1, 1, 20_000)) for _ in range(2)]
plain, asked = LANS(weights[:1], lr=0.1), LANS(weights[1:], lr=0.1)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    asked.compile_step()
for weight in weights:
    weight.grad = weight.detach().cos()
plain.step(), asked.step()
assert torch.equal(*weights)
print([str(each.message) for each in caught if "LANS" in str(each.message)])
"""


@pytest.mark.process
def test_without_a_compiler_the_eager_step_stays(tmp_path: Path) -> None:
    environment = os.environ | {"CXX": "/bin/false", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_COMPILER], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "LANS: the compiled step is not available, the eager one is used" in done.stdout
