"""LANS against the formula written out element by element in float64."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from workbench.choices.optimizers.lans import LANS, Lans
from workbench.choices.progress import Budget, Progress

SHAPES = ([33, 17], [1], [18011], [3, 5, 7], [40_000], [])
SETTINGS = {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-6}


class SlowLANS:
    """The formula as published, tensor by tensor, float64, no rearrangement."""

    def __init__(self, tensors: list[Tensor], weight_decay: float) -> None:
        self.x = [tensor.double().clone() for tensor in tensors]
        self.m = [torch.zeros_like(x) for x in self.x]
        self.v = [torch.zeros_like(x) for x in self.x]
        self.t = [0] * len(self.x)
        self.decay = weight_decay

    def step(self, grads: list[Tensor | None]) -> None:
        lr, (b1, b2), eps = SETTINGS["lr"], SETTINGS["betas"], SETTINGS["eps"]
        for i, grad in enumerate(grads):
            if grad is None:
                continue
            self.t[i] += 1
            g = grad.double()
            ghat = g / (g.norm() + eps)
            self.m[i] = b1 * self.m[i] + (1 - b1) * ghat
            self.v[i] = b2 * self.v[i] + (1 - b2) * ghat**2
            den = (self.v[i] / (1 - b2 ** self.t[i])).sqrt() + eps
            r = (self.m[i] / (1 - b1 ** self.t[i])) / den + self.decay * self.x[i]
            c = ghat / den + self.decay * self.x[i]
            self.x[i] = self.x[i] - lr * (b1 * self.ratio(i, r) * r + (1 - b1) * self.ratio(i, c) * c)

    def ratio(self, i: int, u: Tensor) -> float:
        norm_x, norm_u = float(self.x[i].norm()), float(u.norm())
        return norm_x / norm_u if norm_x and norm_u else 1.0


def parameters(seed: int = 0, dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    made = [nn.Parameter(torch.randn(shape, generator=generator).to(dtype)) for shape in SHAPES]
    made.append(nn.Parameter(torch.zeros(6, dtype=dtype)))
    made.append(nn.Parameter(torch.randn(9, 4, generator=generator).to(dtype).t()))
    made.append(nn.Parameter(torch.randn(150, 131, generator=generator).to(dtype).t()))
    return made


def gradients(like: list[nn.Parameter], step: int, scale: float = 1.0) -> list[Tensor | None]:
    """Fresh gradients; the second tensor has none at step 3, the third one is all zero at step 0."""
    generator = torch.Generator().manual_seed(100 + step)
    grads: list[Tensor | None] = [scale * torch.randn(p.shape, generator=generator) for p in like]
    grads[1] = None if step == 3 else grads[1]
    grads[2] = torch.zeros(like[2].shape) if step == 0 else grads[2]
    return grads


def set_gradients(like: list[nn.Parameter], grads: list[Tensor | None]) -> None:
    for parameter, grad in zip(like, grads, strict=True):
        parameter.grad = None if grad is None else grad.to(parameter.dtype)


@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
@pytest.mark.usefixtures("either")
def test_seven_steps_equal_the_slow_reference(weight_decay: float) -> None:
    ours = parameters()
    slow = SlowLANS([p.detach() for p in ours], weight_decay)
    optimizer = LANS(ours, weight_decay=weight_decay, **SETTINGS)
    for step in range(7):
        grads = gradients(ours, step)
        set_gradients(ours, grads)
        optimizer.step()
        slow.step(grads)
        for mine, reference in zip(ours, slow.x, strict=True):
            assert torch.isfinite(mine).all()
            torch.testing.assert_close(mine.double(), reference, rtol=2e-5, atol=2e-6)
    assert [int(optimizer.state[p]["step"]) for p in ours] == slow.t


@pytest.mark.parametrize("scale", [1e3, 1e-3])
@pytest.mark.usefixtures("either")
def test_the_gradients_scale_does_not_matter(scale: float) -> None:
    plain, scaled = parameters(), parameters()
    optimizers = LANS(plain, **SETTINGS), LANS(scaled, **SETTINGS)
    for step in range(5):
        set_gradients(plain, gradients(plain, step))
        set_gradients(scaled, gradients(scaled, step, scale))
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(plain, scaled, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
@pytest.mark.usefixtures("either")
def test_no_tensor_moves_by_more_than_lr_of_its_norm(weight_decay: float) -> None:
    ours = [p for p in parameters() if p.detach().norm() > 0]
    optimizer = LANS(ours, lr=0.02, weight_decay=weight_decay)
    for step in range(5):
        before = [p.detach().clone() for p in ours]
        for parameter in ours:
            parameter.grad = torch.randn_like(parameter) * 10.0 ** (step - 2)
        optimizer.step()
        for old, new in zip(before, ours, strict=True):
            assert float((new.detach() - old).norm()) <= 0.02 * float(old.norm()) * (1 + 1e-4)


@pytest.mark.parametrize(("setting", "value"), [("eps", 0.0), ("betas", (1.0, 0.9)), ("betas", (0.9, 1.5))])
def test_settings_out_of_range_are_refused(setting: str, value: object) -> None:
    settings = {"lr": 0.1, setting: value}
    with pytest.raises(ValueError, match=f"LANS: {setting}.* must be .* got"):
        LANS([nn.Parameter(torch.ones(2))], **settings)  # type: ignore[arg-type]


def test_choice_defaults_are_the_published_first_phase() -> None:
    choice = Lans()
    steps = 3519
    rates = [choice.lr_at(Progress(step, 0, 0.0, Budget(amount=steps))) for step in range(steps + 1)]
    assert max(rates) == pytest.approx(0.00675)
    held = [step for step, rate in enumerate(rates) if rate == pytest.approx(0.00675, rel=1e-9)]
    assert held[0] == math.ceil(0.4265 * steps)
    assert held[-1] == math.floor(0.70 * steps)
    assert rates[0] == 0.0
    assert rates[-1] == pytest.approx(0.0, abs=1e-12)
    assert choice.clip_norm is None
