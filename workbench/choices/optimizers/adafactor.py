"""Adafactor: Adam's second moment as an outer product of two vectors, steps relative to the weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from workbench.choices.choice import knob
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.optimizers.tensorwise import (
    Group,
    States,
    Tensors,
    TensorwiseOptimizer,
    in_float32,
    no_steps,
    zeros,
)


class AdafactorOptimizer(TensorwiseOptimizer):
    r"""Adafactor with a learning rate of ours; a plain optimizer, usable without the rest of the workbench.

    For every tensor x (..., R, C) with gradient g, step t counted per tensor, b2 = 1 - t^-decay:

        r = b2 r + (1 - b2) mean over C of (g^2 + e1);  c = b2 c + (1 - b2) mean over R of (g^2 + e1)
        u = g / sqrt(r c / mean(r));  u <- u / max(1, rms(u) / clip)
        m = b1 m + (1 - b1) u  (u itself when b1 is 0)
        x <- x - lr (max(e2, rms(x)) m + wd x)   (lr (m + wd x) without ``relative``)

    A vector keeps its whole second moment. rms is the root mean square over the tensor.

    Args:
        lr: learning rate, >= 0: root mean square of a step relative to the tensor's own, or as it is.
        decay: how fast b2 approaches 1, > 0.
        clip: largest root mean square of u, > 0.
        eps: e1, added to squared gradients, and e2, the smallest scale of a tensor, both > 0.
        beta1: decay b1 of the momentum, in [0, 1); 0 keeps none and saves its memory.
        relative: scale steps by the tensor's root mean square.
        weight_decay: wd, >= 0.

    State per parameter: ``step`` (0-d), ``row_var`` (..., R) and ``col_var`` (..., C), or ``variance`` of a vector's
    shape; ``exp_avg`` of the parameter's shape when b1 > 0; all float32.

    Raises:
        ValueError: a setting out of its range.

    Source: Shazeer & Stern 2018 (arXiv 1804.04235), algorithms 4 and 5, with the schedule of the recipe in place of
    min(.01, 1/sqrt(t)). torch.optim.Adafactor and transformers' are the oracles of the tests; neither is used, because
    torch's caps every rate at 1/sqrt(t), both wait for the device once or twice per tensor and step, and torch's keeps
    the state of bf16 weights in bf16.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 0.01,
        decay: float = 0.8,
        clip: float = 1.0,
        eps: tuple[float, float] = (1e-30, 1e-3),
        beta1: float = 0.0,
        relative: bool = True,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {
            "lr": lr, "decay": decay, "clip": clip, "eps": eps, "beta1": beta1, "relative": relative,
            "weight_decay": weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """Return row and column means, (..., R) and (..., C), or a vector's own second moment;
        momentum where there is one.
        """
        state = {"step": no_steps()}
        if parameter.ndim < 2:
            state["variance"] = zeros(parameter)
        else:
            state["row_var"] = zeros(parameter.detach()[..., 0])
            state["col_var"] = zeros(parameter.detach()[..., 0, :])
        if group["beta1"]:
            state["exp_avg"] = zeros(parameter)
        return state

    def update(self, weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
        """One step of float32 tensors of any shapes, in place."""
        lr, beta1, (_, smallest) = group["lr"], group["beta1"], group["eps"]
        for x, g, state in zip(weights, grads, states, strict=True):
            state["step"] += 1
            update = g * _inverse_root(g.square().add_(group["eps"][0]), state, group["decay"])
            # 0-d tensors from here on: reading one would wait for the device, twice per tensor.
            update.div_((_rms(update) / group["clip"]).clamp_(min=1.0))
            if beta1:
                update = state["exp_avg"].lerp_(update, 1 - beta1)
            rate = lr * _rms(x).clamp_(min=smallest) if group["relative"] else lr
            step = update * rate
            if group["weight_decay"]:
                x.mul_(1 - lr * group["weight_decay"])
            x.sub_(step)


def _inverse_root(square: Tensor, state: dict[str, Any], decay: float) -> Tensor:
    """Return 1 / sqrt(estimated second moment) after it has taken in ``square``,
    both of the tensor's shape (..., R, C).
    """
    # 1 at the first step, which makes a bias correction superfluous.
    weight = state["step"].item() ** -decay
    if "variance" in state:
        return state["variance"].lerp_(square, weight).rsqrt()
    row = state["row_var"].lerp_(square.mean(-1), weight)
    column = state["col_var"].lerp_(square.mean(-2), weight)
    # Divided first: the product of two tiny means would vanish in float32.
    return (row / row.mean(-1, keepdim=True)).rsqrt_()[..., None] * column.rsqrt()[..., None, :]


def _rms(x: Tensor) -> Tensor:
    """Return root mean square of a tensor of any shape, 0-d."""
    return torch.linalg.vector_norm(in_float32(x)) / x.numel() ** 0.5


class Adafactor(OptimizerChoice):
    """Adam's idea in almost no memory: row and column means instead of moments.

    See :class:`AdafactorOptimizer`, for a matrix (R, C) with means (R) and (C); the schedule is the recipe's.

    Source: Shazeer & Stern 2018 (arXiv 1804.04235).
    """

    kind: Literal["adafactor"] = "adafactor"
    lr: float = knob(
        0.1, "peak learning rate: root mean square of a step, see relative_step_size", gt=0, le=100, scale="log"
    )
    clip_norm: float | None = knob(None, "global gradient norm is clipped to this; empty means no clipping", gt=0)
    relative_step_size: bool = knob(True, "steps are relative to the root mean square of each tensor")
    beta1: float = knob(0.0, "decay of a momentum; 0 keeps none and saves its memory", ge=0, lt=1)
    decay: float = knob(0.8, "the second moment's decay is 1 - step^-this", gt=0, le=1)
    update_clip: float = knob(1.0, "largest root mean square of an update before the rate", gt=0)

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """Return an :class:`AdafactorOptimizer`; for a matrix (R, C) it keeps R + C numbers, float32."""
        return AdafactorOptimizer(
            groups,
            lr=self.lr,
            decay=self.decay,
            clip=self.update_clip,
            beta1=self.beta1,
            relative=self.relative_step_size,
        )
