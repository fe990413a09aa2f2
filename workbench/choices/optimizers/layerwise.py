"""The optimizers that scale every tensor's step to its own norm: the base of LANS and LAMB."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from workbench.choices.optimizers.tensorwise import (
    Group,
    States,
    Tensors,
    TensorwiseOptimizer,
    in_float32,
    no_steps,
    zeros,
)


class Constants(NamedTuple):
    """The numbers of one step that all elements of a tensor share.

    With k = sqrt(1 - b2^t), or 1 without bias correction:

    Attributes:
        beta1, beta2: decay rates of the moments.
        norm_eps: added to the gradient's norm where every tensor's gradient is normalised.
        scale: factor on the gradient where it is not normalised (a tensor on an accelerator).
        eps: k eps; with it the bias correction of the second moment leaves the tensors.
        momentum: k / (1 - b1^t), the factor of m / (sqrt(v) + k eps).
        gradient: k, the factor of ghat / (sqrt(v) + k eps).
        decay: weight decay, not multiplied by lr.
        rate_momentum, rate_gradient: learning rate of either direction (a tensor where the group's lr is one).
        lowest, highest: bounds of the trust ratio.
        adapts: whether there is a trust ratio; else it is 1.
    """

    beta1: float
    beta2: float
    norm_eps: float
    scale: Any
    eps: float
    momentum: float
    gradient: float
    decay: float
    rate_momentum: Any
    rate_gradient: Any
    lowest: float = 0.0
    highest: float = math.inf
    adapts: bool = True


class LayerwiseOptimizer(TensorwiseOptimizer):
    r"""Base of the optimizers that scale every tensor's step to the tensor's own norm.

    For every parameter tensor x with gradient g, step t counted per tensor, s a factor on its gradient:

        m = b1 m + (1 - b1) s g;  v = b2 v + (1 - b2) (s g)^2;  den = sqrt(v / (1 - b2^t)) + eps
        r = (m / (1 - b1^t)) / den + wd x;  c = s g / den + wd x;  R(u) = ||x|| / ||u||, 1 if either norm is 0
        x <- x - lr (share R(r) r + (1 - share) R(c) c)

    A subclass says what s, the share and the bounds of R are. A tensor without a gradient keeps its moments and its
    own t.

    Two implementations share one state: the fused kernel of the package ``workbench-kernels`` where it covers the
    device, else torch's multi-tensor operations, which never wait for an accelerator. They agree within rounding, and
    each repeats bit for bit with the same number of threads. :attr:`path` names the one in use.

    State per parameter: ``step`` (0-d float32 on the CPU), ``exp_avg`` and ``exp_avg_sq`` (the parameter's shape,
    float32 whatever its type), ``trust_ratio`` (0-d float32 on the device: R(r) of the last step, never synchronised).

    Args:
        params: parameters or parameter groups, of any shape and real floating type.
        defaults: settings of a group; must hold ``lr, betas, eps, weight_decay``.

    Raises:
        ValueError: a setting out of its range.
        RuntimeError: a sparse or complex gradient (at the step).
    """

    # True: s = 1 / (||g|| + eps) for every tensor, and there is the second direction c. False: c has no share.
    normalised: ClassVar[bool] = False
    # False keeps to torch's operations, to compare the kernel with them.
    fused: bool = True

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Take one step; returns what ``closure`` (which recomputes the loss) returns, or None."""
        # Of this step's gradients, and worked out only if a group asks for it.
        self._norm = functools.cache(self._global_norm)
        return super().step(closure)

    def start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """Return two moments of the parameter's shape, a step count and a trust ratio of 1."""
        ratio = torch.ones((), dtype=torch.float32, device=parameter.device)
        moments = {"exp_avg": zeros(parameter), "exp_avg_sq": zeros(parameter)}
        return {"step": no_steps(), **moments, "trust_ratio": ratio}

    def update(self, weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
        """Count the step and move ``weights`` of any shapes, those that adapt apart from those that do not."""
        scale = self._gradient_scale(group, functools.partial(self._norm, weights[0].device))
        for state in states:
            state["step"] += 1
        adapt = [self._adapts(group, weight) for weight in weights]
        step = self._step_fused if self.kernel(weights[0].device) else self._step_by_torch
        for adapts in dict.fromkeys(adapt):
            alike = [i for i, other in enumerate(adapt) if other == adapts]
            chosen = [weights[i] for i in alike], [grads[i] for i in alike], [states[i] for i in alike]
            step(group, adapts, *chosen, scale)

    @property
    def path(self) -> str:
        """The implementation that takes the steps, in words: the fused kernel, or torch's operations and why."""
        return layerwise_path(next(p.device for group in self.param_groups for p in group["params"]))

    def kernel(self, device: torch.device) -> Callable[..., None] | None:
        """Return the fused step of tensors on ``device``; None where torch's operations take it."""
        return layerwise_kernel(device) if self.fused else None

    # --- what a subclass decides ---

    def _adapts(self, group: dict[str, Any], parameter: Tensor) -> bool:
        """Return True where this tensor's step is scaled to its norm."""
        return True

    def _gradient_scale(self, group: dict[str, Any], norm: Callable[[], Tensor]) -> Any:
        """Return factor on a group's gradients, a number on a CPU, a 0-d tensor elsewhere;
        ``norm`` is that of all groups.
        """
        return 1.0

    def _constants(self, group: dict[str, Any], lr: Any, step: float, adapts: bool) -> Constants:
        """Return the numbers of step ``step`` of a tensor of this group, at a gradient scale of 1."""
        raise NotImplementedError

    # --- one step ---

    def _global_norm(self, device: torch.device) -> Tensor:
        """Return norm of all gradients of all groups, 0-d float32 on ``device`` (float64 from the fused kernel)."""
        gradients = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        if self.kernel(device) and all(gradient.device == device for gradient in gradients):
            from workbench_kernels.layerwise import norm

            # Backwards: what the norm has read last, the step finds in the cache.
            found: Tensor = norm([in_float32(gradient) for gradient in reversed(gradients)])
            return found
        norms = torch._foreach_norm(gradients, 2, dtype=torch.float32)
        return torch.linalg.vector_norm(torch.stack([norm.to(device) for norm in norms]))

    def _step_fused(
        self, group: Group, adapts: bool, weights: Tensors, grads: Tensors, states: States, scale: Any
    ) -> None:
        kernel = self.kernel(weights[0].device)
        assert kernel is not None
        names = ("exp_avg", "exp_avg_sq", "trust_ratio", "step")
        kernel(
            weights, grads, *([state[name] for state in states] for name in names), lr=group["lr"],
            betas=group["betas"], eps=group["eps"], weight_decay=group["weight_decay"] if adapts else 0.0,
            normalised=self.normalised, grad_scale=scale, bias_correction=group.get("bias_correction", True),
            adapts=adapts, ratio_bounds=group.get("ratio_bounds"),
        )  # fmt: skip

    def _step_by_torch(
        self, group: Group, adapts: bool, weights: Tensors, grads: Tensors, states: States, scale: Any
    ) -> None:
        on_cpu = weights[0].device.type == "cpu"
        # A number on a CPU; elsewhere a tensor stays one, and nothing waits for the device.
        lr = float(group["lr"]) if on_cpu else group["lr"]
        # CPU tensors, so reading them is no wait for the device; mostly one number for all.
        steps = [state["step"].item() for state in states]
        constants = {t: self._constants(group, lr, t, adapts)._replace(scale=scale) for t in dict.fromkeys(steps)}
        of_each = [constants[step] for step in steps]
        if not on_cpu:
            step_together(weights, grads, states, of_each, self.normalised)
            return
        # One at a time: launches cost nothing here, and the temporaries of one tensor fit where those of all do not.
        for weight, grad, state, numbers in zip(weights, grads, states, of_each, strict=True):
            step_together([weight], [grad], [state], [numbers], self.normalised)


def bias_corrections(betas: tuple[float, float], step: float) -> tuple[float, float]:
    """Return ``(1 - b1^t, sqrt(1 - b2^t))`` of step t >= 1: what the moments' zero start is divided out by."""
    return 1 - betas[0] ** step, math.sqrt(1 - betas[1] ** step)


def step_together(
    weights: Tensors, grads: Tensors, states: States, constants: list[Constants], normalised: bool
) -> None:
    """Move tensors of any shapes on one device by one step, in few launches and without a wait.

    R(u) u does not change when u is scaled. So with decay wd both directions are kept divided by wd, which saves
    operations over all elements; the scale is needed only where R falls back to 1.

    Args:
        weights, grads: float32; the weights are changed in place.
        states: their ``exp_avg, exp_avg_sq, trust_ratio``, changed in place.
        constants: by tensor; they may differ in what depends on the tensor's number of steps.
        normalised: every gradient is divided by its norm, and there is the second direction.
    """
    moments = [state["exp_avg"] for state in states]
    squares = [state["exp_avg_sq"] for state in states]
    shared = constants[0]
    if normalised:
        norms = torch._foreach_norm(grads)
        torch._foreach_add_(norms, shared.norm_eps)
        grads = list(torch._foreach_div(grads, norms))
    elif isinstance(shared.scale, Tensor) or shared.scale != 1.0:
        grads = list(torch._foreach_mul(grads, shared.scale))
    torch._foreach_lerp_(moments, grads, 1 - shared.beta1)
    torch._foreach_mul_(squares, shared.beta2)
    torch._foreach_addcmul_(squares, grads, grads, 1 - shared.beta2)
    den = torch._foreach_sqrt(squares)
    torch._foreach_add_(den, [each.eps for each in constants])
    weight_norms = torch.stack(torch._foreach_norm(weights)) if shared.adapts else None

    # The directions first: both belong to the weights before the step.
    chosen = [(moments, [each.momentum for each in constants], shared.rate_momentum)]
    if normalised:
        chosen.append((grads, [each.gradient for each in constants], shared.rate_gradient))
    directions = []
    for moving, factors, rate in chosen:
        if shared.decay:
            u = torch._foreach_addcdiv(weights, moving, den, [factor / shared.decay for factor in factors])
        else:
            u = torch._foreach_div(moving, den)
            torch._foreach_mul_(u, factors)
        directions.append((u, rate))
    for index, (u, rate) in enumerate(directions):
        if weight_norms is None:
            torch._foreach_add_(weights, torch._foreach_mul(u, -rate * (shared.decay or 1.0)))
            continue
        factor = _factors(weight_norms, torch.stack(torch._foreach_norm(u)), shared)
        torch._foreach_addcmul_(weights, u, list((factor * -rate).unbind()))
        if index == 0:
            for state, ratio in zip(states, (factor / (shared.decay or 1.0)).unbind(), strict=True):
                state["trust_ratio"].copy_(ratio)


def _factors(weight_norms: Tensor, norms: Tensor, constants: Constants) -> Tensor:
    """Return r(u) times the scale (decay, or 1) by which the directions with these ``norms`` were divided."""
    scale = constants.decay or 1.0
    ratios = (weight_norms / norms).clamp(constants.lowest * scale, constants.highest * scale)
    return torch.where((weight_norms > 0) & (norms > 0), ratios, scale)


@functools.cache
def _kernel(device_type: str) -> tuple[Callable[..., None] | None, str]:
    try:
        import workbench_kernels
        from workbench_kernels.layerwise import layerwise_step, why_not
    except ImportError as error:
        # As for a missing package: a damaged one must not end a run that torch alone can train.
        return None, f"workbench-kernels is not installed ({error})"
    reason = why_not(device_type)
    return (layerwise_step, workbench_kernels.__version__) if reason is None else (None, reason)


def layerwise_kernel(device: torch.device) -> Callable[..., None] | None:
    """Return the fused LANS/LAMB step of many tensors of any shapes on ``device``; None where there is none."""
    return _kernel(device.type)[0]


def layerwise_path(device: torch.device) -> str:
    """Name the implementation of the step on ``device``: the kernel and its version, or torch and why."""
    kernel, detail = _kernel(device.type)
    return f"fused kernel of workbench-kernels {detail}" if kernel else f"torch operations: {detail}"
