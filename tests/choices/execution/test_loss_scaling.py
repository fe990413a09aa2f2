"""Loss scaling: overflow undoes a step, whatever the optimizer, and nobody waits for it."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import Tensor, nn

from workbench.choices.choice import registry
from workbench.choices.execution.loss_scaling import DeviceScaler
from workbench.choices.optimizers.optimizer import OptimizerChoice

CPU = torch.device("cpu")
CUDA = pytest.param(
    "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
)


def weights(device: torch.device) -> list[nn.Parameter]:
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(shape).to(device)) for shape in ((8, 4), (4,))]


def optimizer_of(kind: str, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    choice = registry("optimizer")[kind]()
    assert isinstance(choice, OptimizerChoice)
    common = {"names": ["one"], "weight_decay": 0.01, "parts": 1, "transposed": False}
    roles = zip(parameters, ("matrix", "vector"), strict=True)
    groups = [{"params": [parameter], "role": role, "decays": True, **common} for parameter, role in roles]
    return choice.build(groups, parameters[0].device)


def take(scaler: torch.amp.GradScaler, optimizer: torch.optim.Optimizer, size: float) -> None:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    scaler.scale(torch.stack([(p * p).sum() * size for p in parameters]).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)


def everything(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    state = [value for p in parameters for value in optimizer.state[p].values() if isinstance(value, Tensor)]
    return [tensor.detach().cpu().clone() for tensor in (*parameters, *state)]


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("kind", sorted(registry("optimizer")))
def test_an_overflow_changes_nothing_of_any_optimizer(kind: str, device: str) -> None:
    """Whether it comes first, when there is no state yet, or later; the steps around it are as without it."""
    found = {}
    for overflows in (False, True):
        optimizer = optimizer_of(kind, weights(torch.device(device)))
        scaler = DeviceScaler(device, init_scale=8.0)
        for size in (math.inf, 1.0, math.nan, 0.5) if overflows else (1.0, 0.5):
            take(scaler, optimizer, size)
        scaler.settle()
        found[overflows] = everything(optimizer)
        assert scaler.get_scale() == (2.0 if overflows else 8.0)
    for clean, undone in zip(found[False], found[True], strict=True):
        assert torch.equal(clean, undone), kind
        assert torch.isfinite(undone).all()


def test_steps_are_those_of_torchs_own_scaler() -> None:
    for kind in ("adamw", "lion"):
        results = []
        for scaler in (DeviceScaler("cpu", init_scale=4.0), torch.amp.GradScaler("cpu", init_scale=4.0)):
            optimizer = optimizer_of(kind, weights(CPU))
            for size in (1.0, math.inf, 3.0):
                take(scaler, optimizer, size)
            results.append([*everything(optimizer), torch.tensor(scaler.get_scale())])
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(*results, strict=True)), kind


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the calls through which Python reads a number of a tensor: on a GPU, each would wait for it."""
    found: list[str] = []
    for name in ("item", "__bool__", "__float__", "__int__", "tolist"):
        original = getattr(Tensor, name)

        def counted(self: Tensor, *args: object, _name: str = name, _original: object = original) -> object:
            found.append(_name)
            return _original(self, *args)  # type: ignore[operator]

        monkeypatch.setattr(Tensor, name, counted)
    return found


@pytest.mark.parametrize("kind", ["adamw", "lion"])
def test_a_step_reads_nothing(kind: str, reads: list[str]) -> None:
    optimizer = optimizer_of(kind, weights(CPU))
    for ours, scaler in ((False, torch.amp.GradScaler("cpu")), (True, DeviceScaler("cpu"))):
        reads.clear()
        take(scaler, optimizer, 1.0)
        # torch's own reads in every step of an optimizer that is not fused: the check can fail.
        assert bool(reads) == (not ours and kind == "lion"), reads


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", ["adamw", "lion", "lans", "stable_adamw"])
def test_a_step_does_not_wait_for_the_gpu(kind: str) -> None:
    optimizer = optimizer_of(kind, weights(torch.device("cuda")))
    scaler = DeviceScaler("cuda")
    take(scaler, optimizer, 1.0)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            take(scaler, optimizer, 1.0)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_its_state_is_that_of_torch() -> None:
    scaler = DeviceScaler("cpu", init_scale=4.0)
    take(scaler, optimizer_of("adamw", weights(CPU)), math.inf)
    state = copy.deepcopy(scaler.state_dict())
    again = torch.amp.GradScaler("cpu")
    again.load_state_dict(state)
    assert again.get_scale() == 2.0
