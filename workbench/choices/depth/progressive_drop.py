"""Progressive Layer Dropping: skip more layers, and deeper ones more often, as training goes on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

from workbench.choices.choice import Problem, knob
from workbench.choices.depth.plan import Depth, LayerPlan, gates
from workbench.choices.progress import Progress

_STREAM = 0x504C44
"""Word of the counter that keeps these draws apart from any other stream keyed by (seed, step)."""


def theta_at(step: float, theta: float, gamma: float) -> float:
    """Return global keep probability theta(t) = (1 - theta) exp(-gamma t) + theta (Zhang & He 2020, eq. 6).

    Args:
        step: t, in the unit gamma is given for (steps, or the fraction of the budget).
        theta: limit for t -> infinity, in (0, 1].
        gamma: rate per unit of ``step``, >= 0.
    """
    return (1.0 - theta) * math.exp(-gamma * step) + theta


def keep_probability(layer: int, layers: int, theta: float) -> float:
    """Keep probability of one layer, p_l = 1 - (l / L) (1 - theta(t)).

    Args:
        layer: l, 1-based, counted from the input.
        theta: theta(t), as :func:`theta_at` gives it.
    """
    return 1.0 - layer / layers * (1.0 - theta)


def expected_layers(layers: int, theta: float) -> float:
    """Return layers that run on average, sum of p_l = (L (1 + theta) - (1 - theta)) / 2; 8.75 of 12 at theta 0.5.

    Args:
        theta: theta(t); the knob's own value gives the limit.
    """
    return (layers * (1 + theta) - (1 - theta)) / 2


class ProgressiveDrop(Depth):
    """Progressive Layer Dropping: one seeded gate per layer and micro-batch, kept layers scaled by 1/p.

    h_l = x_l + G_l Attn(x_l) / p_l, x_{l+1} = h_l + G_l FFN(h_l) / p_l with G_l ~ Bernoulli(p_l), p_l = 1 - (l / L)
    (1 - theta(t)): both branches share one gate (x has shape (B, T, D), G_l is one number). All layers run at
    evaluation; embeddings and head always do.

    Source: Zhang & He, NeurIPS 2020 (arXiv 2010.13369). We depart from the published reference code, which divides
    by the next layer's p, never drops the first layer and draws unseeded on each rank.
    """

    kind: Literal["progressive_drop"] = "progressive_drop"
    theta: float = knob(0.5, "keep probability of the last layer in the limit", gt=0, le=1)
    gamma: float | None = knob(
        None, "decay rate of theta per step; empty means 100 over the whole budget, as the paper uses", ge=0
    )
    rescale: bool = knob(True, "divide a kept layer's residual branches by its keep probability")
    dropped: Literal["rests", "momentum"] = knob(
        "rests", "what the optimizer does with a layer that never ran in a step: skip it, or step with zero gradients"
    )

    def plan(self, layers: int, progress: Progress, seed: int, micro_step: int = 0) -> LayerPlan:
        """Return one gate per layer for this micro-batch: runs, scale and keep of shape (layers,)."""
        theta = self.theta_now(progress)
        # l is 1-based: the last layer has p = theta(t), and the first one can be dropped as well.
        keep = tuple(keep_probability(layer, layers, theta) for layer in range(1, layers + 1))
        # u < 1 always, so a layer with p = 1 is never dropped.
        runs = tuple(u < p for u, p in zip(gates(_STREAM, seed, progress.step, micro_step, layers), keep, strict=True))
        # 1/p makes the expected output that of the whole model, which is what an evaluation runs.
        scale = tuple(1.0 / p if self.rescale else 1.0 for p in keep)
        return LayerPlan(runs, scale, (True,) * layers, keep, layers)

    def theta_now(self, progress: Progress) -> float:
        """Return theta(t) at ``progress``; gamma counts steps, or is 100 per budget of steps,
        tokens or seconds when empty.
        """
        # The paper's gamma is 100 / T for a run of T steps; over the budget, runs of any length see one curve.
        if self.gamma is None:
            return theta_at(progress.fraction, self.theta, 100.0)
        return theta_at(progress.step, self.theta, self.gamma)

    def scheduled_values(self, progress: Progress) -> dict[str, float]:
        """Return ``{"theta": theta(t)}``: the probability with which the last layer runs."""
        return {"theta": self.theta_now(progress)}

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse a theta under which fewer than one layer would run on average, once it has reached its limit."""
        layers = recipe.architecture.layers
        if expected_layers(layers, self.theta) < 1 and self.theta < 1:
            # Where the mean above is 1, solved for theta; rounded up below, or the advice itself would be refused.
            least = (3 - layers) / (layers + 1)
            yield Problem(
                "depth.theta",
                f"{self.theta:g} drops more layers than exist: of {layers}, {expected_layers(layers, self.theta):.2g} "
                f"would run on average; use theta >= {math.ceil(least * 1000) / 1000:g} or architecture.layers >= 3",
            )
