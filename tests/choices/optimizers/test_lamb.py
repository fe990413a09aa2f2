"""LAMB against its formula in float64, torch's AdamW, and the LAMB of pytorch-optimizer."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from workbench.choices.optimizers.lamb import LAMB, Lamb
from workbench.ops.parameter_groups import parameter_groups

SHAPES = ([33, 17], [1], [18011], [3, 5, 7], [150, 270], [])
SETTINGS: dict[str, Any] = {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-6}


class SlowLAMB:
    """The formula as published with every variant, tensor by tensor, float64, no rearrangement."""

    def __init__(self, tensors: list[Tensor], decay: float, **variant: Any) -> None:
        self.x = [tensor.double().clone() for tensor in tensors]
        self.m = [torch.zeros_like(x) for x in self.x]
        self.v = [torch.zeros_like(x) for x in self.x]
        self.t = [0] * len(self.x)
        self.decay, self.variant = decay, variant

    def step(self, grads: list[Tensor | None]) -> None:
        lr, (b1, b2), eps = SETTINGS["lr"], SETTINGS["betas"], SETTINGS["eps"]
        total = math.sqrt(sum(float(grad.double().square().sum()) for grad in grads if grad is not None))
        for i, grad in enumerate(grads):
            if grad is None:
                continue
            self.t[i] += 1
            g = grad.double() / (max(1.0, total) if self.variant.get("pre_normalise") else 1.0)
            self.m[i] = b1 * self.m[i] + (1 - b1) * g
            self.v[i] = b2 * self.v[i] + (1 - b2) * g**2
            corrected = self.variant.get("bias_correction", True)
            mhat = self.m[i] / (1 - b1 ** self.t[i]) if corrected else self.m[i]
            vhat = self.v[i] / (1 - b2 ** self.t[i]) if corrected else self.v[i]
            adapts = self.variant.get("adapt_vectors") or self.x[i].ndim >= 2
            u = mhat / (vhat.sqrt() + eps) + (self.decay if adapts else 0.0) * self.x[i]
            self.x[i] = self.x[i] - lr * (self.ratio(i, u) if adapts else 1.0) * u

    def ratio(self, i: int, u: Tensor) -> float:
        norm_x, norm_u = float(self.x[i].norm()), float(u.norm())
        if not (norm_x and norm_u):
            return 1.0
        lowest, highest = self.variant.get("ratio_bounds") or (0.0, math.inf)
        return min(max(norm_x / norm_u, lowest), highest)


def parameters(dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    made = [nn.Parameter((0.1 * torch.randn(shape, generator=generator)).to(dtype)) for shape in SHAPES]
    made.append(nn.Parameter(torch.zeros(130, 131, dtype=dtype)))
    made.append(nn.Parameter(torch.randn(150, 131, generator=generator).to(dtype).t()))
    return made


def gradients(like: list[nn.Parameter], step: int) -> list[Tensor | None]:
    """Fresh gradients; the second tensor has none at step 3, the third one is all zero at step 0."""
    generator = torch.Generator().manual_seed(100 + step)
    grads: list[Tensor | None] = [torch.randn(p.shape, generator=generator).to(p.dtype) for p in like]
    grads[1] = None if step == 3 else grads[1]
    grads[2] = torch.zeros_like(like[2]) if step == 0 else grads[2]
    return grads


def set_gradients(like: list[nn.Parameter], grads: list[Tensor | None]) -> None:
    for parameter, grad in zip(like, grads, strict=True):
        parameter.grad = grad


VARIANTS: list[dict[str, Any]] = [
    {},
    {"bias_correction": False},
    {"ratio_bounds": (0.01, 0.3)},
    {"pre_normalise": True},
    {"adapt_vectors": True},
    {"bias_correction": False, "pre_normalise": True, "adapt_vectors": True, "ratio_bounds": (0.2, 0.4)},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: "+".join(variant) or "published")
@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
@pytest.mark.usefixtures("either")
def test_seven_steps_equal_the_slow_reference(weight_decay: float, variant: dict[str, Any]) -> None:
    ours = parameters()
    slow = SlowLAMB([p.detach() for p in ours], weight_decay, **variant)
    optimizer = LAMB(ours, weight_decay=weight_decay, **variant, **SETTINGS)
    for step in range(7):
        grads = gradients(ours, step)
        set_gradients(ours, grads)
        optimizer.step()
        slow.step(grads)
        for mine, reference in zip(ours, slow.x, strict=True):
            torch.testing.assert_close(mine.double(), reference, rtol=2e-5, atol=2e-6)
    assert [int(optimizer.state[p]["step"]) for p in ours] == slow.t


@pytest.mark.usefixtures("either")
def test_half_precision_weights_follow_the_reference_within_their_rounding() -> None:
    ours = parameters(torch.bfloat16)
    slow = SlowLAMB([p.detach() for p in ours], 0.01)
    optimizer = LAMB(ours, weight_decay=0.01, **SETTINGS)
    for step in range(7):
        grads = gradients(ours, step)
        set_gradients(ours, grads)
        optimizer.step()
        slow.step(grads)
    for mine, reference in zip(ours, slow.x, strict=True):
        assert mine.dtype == torch.bfloat16
        assert optimizer.state[mine]["exp_avg"].dtype == torch.float32
        # Seven roundings to eight bits.
        torch.testing.assert_close(mine.double(), reference, rtol=7 * 2**-8, atol=7e-4)


@pytest.mark.usefixtures("either")
def test_without_a_ratio_it_is_torchs_adamw() -> None:
    """Vectors take AdamW's step; eps is under the root's correction in both."""
    ours = [nn.Parameter(torch.randn(20_011, generator=torch.Generator().manual_seed(3)))]
    theirs = [nn.Parameter(ours[0].detach().clone())]
    mine = LAMB(ours, weight_decay=0.1, **SETTINGS)
    other = torch.optim.AdamW(theirs, weight_decay=0.0, **SETTINGS)
    for step in range(7):
        grad = torch.randn(20_011, generator=torch.Generator().manual_seed(step))
        for tensors, optimizer in ((ours, mine), (theirs, other)):
            tensors[0].grad = grad.clone()
            optimizer.step()
        torch.testing.assert_close(ours[0], theirs[0], rtol=1e-5, atol=1e-6)
    assert float(mine.state[ours[0]]["trust_ratio"]) == 1.0


@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
@pytest.mark.usefixtures("either")
def test_equals_pytorch_optimizer(weight_decay: float) -> None:
    """Theirs has no correction of v, and that of m in the rate: given to ours step by step. Weights' norms below 10,
    where theirs would cut them, and eps small, as it stands in their quotient, too."""
    theirs_of = pytest.importorskip("pytorch_optimizer").Lamb
    generator = torch.Generator().manual_seed(0)
    ours = [nn.Parameter(0.03 * torch.randn(shape, generator=generator)) for shape in ((33, 17), (150, 271), (3, 5, 7))]
    theirs = [nn.Parameter(p.detach().clone()) for p in ours]
    shared: dict[str, Any] = {"betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": weight_decay}
    mine = LAMB(ours, lr=0.01, bias_correction=False, pre_normalise=True, **shared)
    other = theirs_of(theirs, lr=0.01, weight_decouple=False, pre_norm=True, max_grad_norm=1.0, **shared)
    for step in range(7):
        mine.param_groups[0]["lr"] = 0.01 / (1 - 0.9 ** (step + 1))
        for tensors, optimizer in ((ours, mine), (theirs, other)):
            generator = torch.Generator().manual_seed(step)
            for parameter in tensors:
                parameter.grad = torch.randn(parameter.shape, generator=generator)
            optimizer.step()
        for one, two in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, two, rtol=2e-5, atol=2e-6)


@pytest.mark.usefixtures("either")
def test_a_matrix_moves_by_lr_of_its_norm() -> None:
    ours = [p for p in parameters() if p.ndim >= 2 and p.detach().any()]
    optimizer = LAMB(ours, lr=0.02, weight_decay=0.01)
    for step in range(5):
        before = [p.detach().clone() for p in ours]
        for parameter in ours:
            parameter.grad = torch.randn_like(parameter) * 10.0 ** (step - 2)
        optimizer.step()
        for old, new in zip(before, ours, strict=True):
            assert float((new.detach() - old).norm()) == pytest.approx(0.02 * float(old.norm()), rel=1e-3)


def test_pre_normalising_counts_the_gradients_of_all_groups() -> None:
    first, second = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(2, 2))
    optimizer = LAMB([{"params": [first]}, {"params": [second]}], lr=0.1, pre_normalise=True)
    first.grad, second.grad = torch.full((2, 2), 3.0), torch.full((2, 2), 4.0)
    optimizer.step()
    # The norm of all eight elements is 10.
    torch.testing.assert_close(optimizer.state[first]["exp_avg"], torch.full((2, 2), 0.1 * 3 / 10))
    torch.testing.assert_close(optimizer.state[second]["exp_avg"], torch.full((2, 2), 0.1 * 4 / 10))
    assert float(first.grad[0, 0]) == 3.0, "gradients are not changed"


def test_the_groups_mark_decides_what_is_a_vector() -> None:
    """A matrix that is marked as not decaying has no ratio; a vector marked as decaying has one."""
    plain, scaled = nn.Parameter(torch.full((4, 4), 3.0)), nn.Parameter(torch.full((16,), 3.0))
    groups = [{"params": [plain], "decays": False}, {"params": [scaled], "decays": True}]
    optimizer = LAMB(groups, lr=0.1, weight_decay=0.0)
    plain.grad, scaled.grad = torch.ones(4, 4), torch.ones(16)
    optimizer.step()
    assert float(plain.detach().mean()) == pytest.approx(2.9)
    assert float(scaled.detach().mean()) == pytest.approx(2.7)


def test_choice_hands_its_knobs_on() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    choice = Lamb(bias_correction=False, pre_normalise=False, ratio_min=0.01, ratio_max=0.3, adapt_vectors=True)
    optimizer = choice.build(parameter_groups(model, 0.02), torch.device("cpu"))
    assert isinstance(optimizer, LAMB)
    for group in optimizer.param_groups:
        assert (group["bias_correction"], group["pre_normalise"], group["adapt_vectors"]) == (False, False, True)
        assert group["ratio_bounds"] == (0.01, 0.3)
    assert {group["weight_decay"] for group in optimizer.param_groups} == {0.02, 0.0}


def test_bounds_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match=r"0\.1 is below ratio_min 0\.2; raise ratio_max"):
        Lamb(ratio_min=0.2, ratio_max=0.1)
    with pytest.raises(ValueError, match=r"LAMB: ratio_bounds must be 0 <= least <= greatest, got \(0\.2, 0\.1\)"):
        LAMB([nn.Parameter(torch.ones(2))], lr=0.1, ratio_bounds=(0.2, 0.1))
