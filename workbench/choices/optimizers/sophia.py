"""Sophia-G: momentum divided by an estimate of the curvature, clipped element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from workbench.choices.choice import Problem, knob
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.causal import Causal
from workbench.choices.objectives.draws import draw_tokens, uniforms
from workbench.choices.objectives.masked import Masked
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.optimizers.optimizer import OptimizerChoice, weight_decay_knob
from workbench.choices.optimizers.tensorwise import (
    Group,
    States,
    Tensors,
    TensorwiseOptimizer,
    descend,
    in_float32,
    pieces,
    zeros,
)
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import Scheduled

# Shape legend: B rows, T positions of a row, N labelled slots, R of them at a time, D width, V vocabulary rows.

LABELS = 4
"""Purpose of the draws of labels: a stream of its own beside the three that decide about masks."""
_DRAWN_ROWS = 1024
"""Slots that labels are drawn for at a time: bounds the float32 probabilities to 1024 x V."""


class SophiaOptimizer(TensorwiseOptimizer):
    r"""Sophia-G; a plain optimizer, usable without the rest of the workbench.

    Every ``k`` steps :meth:`curvature` takes the gradient q of the mean loss over B labels that were sampled from the
    model's own prediction (Gauss-Newton-Bartlett), and for every step g is the ordinary gradient, element by element:

        h = b2 h + (1 - b2) B q^2
        m = b1 m + (1 - b1) g
        x <- x - lr (clip(m / max(gamma h, eps), -1, 1) + wd x)

    While h is 0, before the first estimate, every element that has a direction moves by lr.

    Args:
        lr: learning rate, >= 0: the most that an element moves in one step.
        betas: decay rates b1, b2, in [0, 1).
        gamma: scales the curvature, > 0: the smaller it is, the more elements are clipped.
        eps: smallest denominator, > 0.
        weight_decay: wd, >= 0.

    State per parameter: ``exp_avg`` and ``hessian``, float32 in its shape.

    Raises:
        ValueError: a setting out of its range.

    Source: Liu et al. 2023 (arXiv 2305.14342), algorithms 2 and 3. pytorch-optimizer has the Hutchinson variant alone,
    which needs second derivatives of every operation; fed with our h it is the oracle of the tests.

    Example:
        >>> weight = torch.nn.Parameter(torch.zeros(2))
        >>> optimizer = SophiaOptimizer([weight], lr=0.1, betas=(0.0, 0.0), gamma=1.0, weight_decay=0.0)
        >>> weight.grad = torch.tensor([1.0, 2.0])
        >>> optimizer.curvature(labels=1)  # h = q^2
        >>> weight.grad = torch.tensor([0.5, 8.0])
        >>> optimizer.step()
        >>> [round(x, 4) for x in weight.tolist()]  # -.1 (.5 / 1) and -.1 clip(8 / 4)
        [-0.05, -0.1]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor,
        betas: tuple[float, float] = (0.965, 0.99),
        gamma: float = 0.05,
        eps: float = 1e-12,
        weight_decay: float = 0.1,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "gamma": gamma, "eps": eps, "weight_decay": weight_decay})

    def start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """Return momentum and curvature, in the parameter's shape."""
        return {"exp_avg": zeros(parameter), "hessian": zeros(parameter)}

    @torch.no_grad()
    def curvature(self, labels: int) -> None:
        """Take in the gradients that stand in ``grad`` (any shapes) as those of sampled labels; weights stay.

        Args:
            labels: how many labels the mean loss was taken over, B.
        """
        for group in self.param_groups:
            beta2 = group["betas"][1]
            held = [parameter for parameter in group["params"] if parameter.grad is not None]
            if not held:
                continue
            hessians = [self.state_of(parameter, group)["hessian"] for parameter in held]
            for h, q in pieces(hessians, [in_float32(parameter.grad) for parameter in held]):
                torch._foreach_mul_(h, beta2)
                torch._foreach_addcmul_(h, q, q, (1 - beta2) * labels)

    def update(self, weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
        """One step of float32 tensors of any shapes, in place."""
        beta1, lr, decay = group["betas"][0], group["lr"], group["weight_decay"]
        moments, hessians = [state["exp_avg"] for state in states], [state["hessian"] for state in states]
        for x, g, m, h in pieces(weights, grads, moments, hessians):
            torch._foreach_lerp_(m, g, 1 - beta1)
            denominator = torch._foreach_mul(h, group["gamma"])
            torch._foreach_clamp_min_(denominator, group["eps"])
            update = list(torch._foreach_div(m, denominator))
            torch._foreach_clamp_min_(update, -1.0)
            torch._foreach_clamp_max_(update, 1.0)
            if decay:
                torch._foreach_mul_(x, 1 - lr * decay)
            descend(x, update, lr)


class Sophia(OptimizerChoice):
    """Momentum over an estimated diagonal of the curvature, every element's step clipped to the learning rate.

    See :class:`SophiaOptimizer`: momentum m and curvature h of the parameter's shape, h from a second backward pass.

    Source: Liu et al. 2023 (arXiv 2305.14342), Sophia-G.
    """

    kind: Literal["sophia"] = "sophia"
    lr: float = knob(1e-3, "peak learning rate: the most that a weight moves per step", gt=0, le=100, scale="log")
    weight_decay: Scheduled = weight_decay_knob(0.1)
    beta1: float = knob(0.965, "decay of the momentum", ge=0, lt=1)
    beta2: float = knob(0.99, "decay of the curvature, per estimate", ge=0, lt=1)
    gamma: float = knob(0.05, "scale of the curvature: the smaller, the more weights move by lr", gt=0, scale="log")
    eps: float = knob(1e-12, "smallest denominator", gt=0, scale="log")
    curvature_every: int = knob(
        10,
        "steps between curvature estimates, each a forward and backward pass on sampled labels",
        ge=1,
        unit="steps",
        scale="log",
    )

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """Return a :class:`SophiaOptimizer`; momentum and curvature have their parameter's shape, in float32."""
        return SophiaOptimizer(groups, lr=self.lr, betas=(self.beta1, self.beta2), gamma=self.gamma, eps=self.eps)

    @property
    def passes(self) -> float:
        """One pass per step, and one more every ``curvature_every`` steps."""
        return 1 + 1 / self.curvature_every

    def before_step(
        self, made: Any, parts: Sequence[Batch], plan: Callable[[int], LayerPlan], progress: Progress, seed: int
    ) -> bool:
        """Estimate the curvature on rows (B, T) at step 0 and every ``curvature_every`` steps from there."""
        due = progress.step % self.curvature_every == 0
        if due:
            take_curvature(made, parts, [plan(index) for index in range(len(parts))], progress, seed)
        return due

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse an objective whose labels are not drawn from a softmax of shape (N, V): there is nothing to sample."""
        yield from super().problems(recipe)
        if not isinstance(recipe.objective, (Masked, Causal)):
            yield Problem(
                "optimizer.kind",
                f"sophia samples labels of masked and causal models, not of objective '{recipe.objective.kind}'; "
                "choose another optimizer, such as adamw",
            )
        elif recipe.objective.added_parts:
            added = " and ".join(recipe.objective.added_parts)
            yield Problem(
                "optimizer.kind",
                f"sophia samples the labels of one head, and the objective adds {added}; choose another optimizer",
            )


def take_curvature(
    made: Any, parts: Sequence[Batch], plans: Sequence[LayerPlan], progress: Progress, seed: int
) -> None:
    """Hand the optimizer the gradients of labels that the model draws for itself.

    For a softmax with cross-entropy the Gauss-Newton matrix equals the Fisher matrix. With q the gradient of the mean
    loss over B labels drawn from the prediction, B q^2 is an unbiased estimate of its diagonal (algorithm 2).

    Layers that are dropped or frozen in this step get no gradient, and their curvature stays what it was. Labels are a
    function of the seed and the sample, so a resumed run, or another cut into micro-batches, draws the same. The pass
    costs about as much as a step's own; it is charged to the budget and shown as optimizer time.

    Args:
        made: has ``model``, ``optimizer`` (left without gradients) and ``engine``.
        parts: rows of tokens, (B, T), by micro-batch.
        plans: one per micro-batch.
        progress: where the run stands.
        seed: of the recipe.
    """
    engine = made.engine
    labels = max(1, sum(made.model.counts(part, progress)["loss"] for part in parts))
    for part, plan in zip(parts, plans, strict=True):
        with engine.autocast():
            nats = sampled_loss(made.model, part.to(engine.device), plan, progress, seed)
        engine.backward(nats / labels, len(parts))
    gradients = [p.grad for group in made.optimizer.param_groups for p in group["params"] if p.grad is not None]
    # Divided here and not by the engine, which may allow one unscaling per step.
    scale = engine.loss_scale
    if scale:
        torch._foreach_mul_(gradients, 1 / scale)
    # Only float16 overflows; elsewhere nothing is read, and a loss that is not finite ends the run anyway.
    if scale is None or all(bool(torch.isfinite(norm)) for norm in torch._foreach_norm(gradients)):
        made.optimizer.curvature(labels)
    made.optimizer.zero_grad(set_to_none=True)


def sampled_loss(model: TokenPrediction, batch: Batch, plan: LayerPlan, progress: Progress, seed: int) -> Tensor:
    """Return the summed nats of labels drawn from the model's prediction, 0-d.

    Args:
        model: predicts tokens.
        batch: rows of tokens, (B, T); the labelled slots and their weights are those of the ordinary pass.
        plan: which layers run.
        progress: where the run stands.
        seed: decides, with the sample, one draw per position, whatever the micro-batch.
    """
    seen = model.labelled(batch, progress)
    x_ND = model.states(seen, batch, plan)
    uniform_N = uniforms(seed, LABELS, batch.samples_B, batch.tokens_BT.shape[1]).flatten()
    if seen.index_N is not None:
        uniform_N = uniform_N[seen.index_N]
    with torch.no_grad():
        pairs = zip(x_ND.split(_DRAWN_ROWS), uniform_N.split(_DRAWN_ROWS), strict=True)
        draws = [draw_tokens(model.head(x_RD).float(), uniform_R[:, None])[:, 0] for x_RD, uniform_R in pairs]
        labels_N = torch.cat(draws)
    nats_N = F.cross_entropy(model.head(x_ND).float(), labels_N, reduction="none")
    return (nats_N * seen.weight_N).sum()
