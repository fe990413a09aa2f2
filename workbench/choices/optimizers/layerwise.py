"""The optimizers that scale every tensor's step to its own norm: what LANS and LAMB share."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from workbench.base.errors import typed_line
from workbench.choices.optimizers.layerwise_step import LARGE, Constants, compiled_step, step_in_blocks, step_together
from workbench.choices.optimizers.tensorwise import (
    Group,
    States,
    Tensors,
    TensorwiseOptimizer,
    in_float32,
    no_steps,
    zeros,
)
from workbench.ops import kernels

_TYPICAL = 2**20
"""Elements of the tensor that the compiled step is first met with."""

_MET: set[tuple[bool, int]] = set()
"""Compiled steps of this process: normalised or not, and the number of threads they were compiled for."""


class LayerwiseOptimizer(TensorwiseOptimizer):
    r"""Base of the optimizers that scale every tensor's step to the tensor's own norm.

    For every parameter tensor x with gradient g, step t counted per tensor, s a factor on its gradient:

        m = b1 m + (1 - b1) s g;  v = b2 v + (1 - b2) (s g)^2;  den = sqrt(v / (1 - b2^t)) + eps
        r = (m / (1 - b1^t)) / den + wd x;  c = s g / den + wd x;  R(u) = ||x|| / ||u||, 1 if either norm is 0
        x <- x - lr (share R(r) r + (1 - share) R(c) c)

    A subclass says what s, the share and the bounds of R are. A tensor without a gradient keeps its moments and its
    own t.

    Where the package ``workbench-kernels`` covers the device, its fused kernel takes the step. Elsewhere there are
    three implementations: multi-tensor operations that never wait for the device, for all tensors of an accelerator and
    small ones of a CPU; cache-sized blocks for large ones of a CPU, or after :meth:`compile_step` one compiled pass
    over each. All four share one state, so that a run goes on with any of them; they agree within rounding, and each
    repeats bit for bit with the same number of threads. :attr:`path` says whether the kernel is in use.

    State per parameter: ``step`` (0-d float32 on the CPU), ``exp_avg`` and ``exp_avg_sq`` (the parameter's shape,
    float32 whatever its type), ``trust_ratio`` (0-d float32 on the device: R(r) of the last step, never synchronised).

    Args:
        params: parameters or parameter groups, of any shape and real floating type.
        defaults: settings of a group; must hold ``lr, betas, eps, weight_decay, compile``.

    Raises:
        ValueError: a setting out of its range.
        RuntimeError: a sparse or complex gradient (at the step).
    """

    normalised: ClassVar[bool] = False
    """Whether s = 1 / (||g|| + eps) for every tensor, and with it the second direction c; else c has no share."""
    fused: bool = True
    """Whether the fused kernel may take the step; False compares torch's operations with it."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Take one step; returns what ``closure`` (which recomputes the loss) returns, or None."""
        # Of this step's gradients, and worked out only if a group asks for it.
        self._norm = functools.cache(self._global_norm)
        return super().step(closure)

    def start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """Two moments of the parameter's shape, a step count and a trust ratio of 1."""
        ratio = torch.ones((), dtype=torch.float32, device=parameter.device)
        moments = {"exp_avg": zeros(parameter), "exp_avg_sq": zeros(parameter)}
        return {"step": no_steps(), **moments, "trust_ratio": ratio}

    def update(self, weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
        """Count the step and move ``weights`` of any shapes, those that adapt apart from those that do not."""
        scale = self._gradient_scale(group, functools.partial(self._norm, weights[0].device))
        for state in states:
            state["step"] += 1
        adapt = [self._adapts(group, weight) for weight in weights]
        for adapts in dict.fromkeys(adapt):
            alike = [i for i, other in enumerate(adapt) if other == adapts]
            self._step_alike(group, adapts, *_picked(alike, weights, grads, states), scale)

    @property
    def path(self) -> str:
        """What takes the steps, in words: the fused kernel, or torch's operations and why."""
        return kernels.layerwise_path(self.param_groups[0]["params"][0].device)

    def kernel(self, device: torch.device) -> Callable[..., None] | None:
        """The fused step of tensors on ``device``; None where torch's operations take it."""
        return kernels.layerwise_step(device) if self.fused else None

    def compile_step(self) -> None:
        """Compile the step of CPU tensors, now rather than in the first step; no weight and no state is touched.

        Every graph that the parameters' sizes need is met on scratch tensors, in a fixed order, so that what a run
        computes does not depend on which tensor came first. Without a working compiler: a warning, and the eager
        step stays. Does nothing for parameters on other devices, or where the fused kernel takes the step.
        """
        if not self._cpu_sizes() or self.kernel(torch.device("cpu")):
            return
        try:
            self._meet_graphs()
        # What torch raises when there is no compiler, or none that works.
        except RuntimeError as error:
            warnings.warn(
                f"{type(self).__name__}: the compiled step is not available, the eager one is used "
                f"({typed_line(error)})",
                stacklevel=2,
            )
            for group in self.param_groups:
                group["compile"] = False
            return
        for group in self.param_groups:
            group["compile"] = True

    # --- what a subclass decides ---

    def _adapts(self, group: dict[str, Any], parameter: Tensor) -> bool:
        """Whether this tensor's step is scaled to its norm."""
        return True

    def _gradient_scale(self, group: dict[str, Any], norm: Callable[[], Tensor]) -> Any:
        """Factor on a group's gradients, a number on a CPU, a 0-d tensor elsewhere; ``norm`` is that of all groups."""
        return 1.0

    def _constants(self, group: dict[str, Any], lr: Any, step: float, adapts: bool) -> Constants:
        """The numbers of step ``step`` of a tensor of this group, at a gradient scale of 1."""
        raise NotImplementedError

    # --- one step ---

    def _global_norm(self, device: torch.device) -> Tensor:
        """Norm of all gradients of all groups, 0-d float32 on ``device`` (float64 from the fused kernel)."""
        gradients = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        if self.kernel(device) and all(gradient.device == device for gradient in gradients):
            # Backwards: what the norm has read last, the step finds in the cache.
            return kernels.norm([in_float32(gradient) for gradient in reversed(gradients)])
        norms = torch._foreach_norm(gradients, 2, dtype=torch.float32)
        return torch.linalg.vector_norm(torch.stack([norm.to(device) for norm in norms]))

    def _step_alike(
        self, group: Group, adapts: bool, weights: Tensors, grads: Tensors, states: States, scale: Any
    ) -> None:
        """One step of tensors of one group and one device that adapt, or do not, all alike."""
        if kernel := self.kernel(weights[0].device):
            names = ("exp_avg", "exp_avg_sq", "trust_ratio", "step")
            kernel(
                weights, grads, *([state[name] for state in states] for name in names), lr=group["lr"],
                betas=group["betas"], eps=group["eps"], weight_decay=group["weight_decay"] if adapts else 0.0,
                normalised=self.normalised, grad_scale=scale, bias_correction=group.get("bias_correction", True),
                adapts=adapts, ratio_bounds=group.get("ratio_bounds"),
            )  # fmt: skip
            return
        on_cpu = weights[0].device.type == "cpu"
        # A number on a CPU; elsewhere a tensor stays one, and nothing waits for the device.
        lr = float(group["lr"]) if on_cpu else group["lr"]
        # CPU tensors, so reading them is no wait for the device; mostly one number for all.
        steps = [state["step"].item() for state in states]
        constants = {t: self._constants(group, lr, t, adapts)._replace(scale=scale) for t in dict.fromkeys(steps)}
        large = [on_cpu and weight.numel() >= LARGE for weight in weights]
        together = [i for i, alone in enumerate(large) if not alone]
        if together:
            chosen = _picked(together, weights, grads, states)
            step_together(*chosen, [constants[steps[i]] for i in together], self.normalised)
        if any(large):
            compiled = group["compile"] and self._is_ready()
            vectors = {t: torch.tensor(numbers, dtype=torch.float64) for t, numbers in constants.items()}
            for i in (i for i, alone in enumerate(large) if alone):
                if compiled:
                    self._step_compiled(weights[i], grads[i], states[i], vectors[steps[i]])
                else:
                    step_in_blocks(weights[i], grads[i], states[i], constants[steps[i]], self.normalised)

    def _step_compiled(self, weight: Tensor, grad: Tensor, state: dict[str, Any], constants: Tensor) -> None:
        tensors = (weight.view(-1), grad.view(-1), state["exp_avg"].view(-1), state["exp_avg_sq"].view(-1))
        # Without their base: views of matrices, vectors and square matrices would each ask for a graph of their own.
        compiled_step(self.normalised)(*(tensor.data for tensor in tensors), state["trust_ratio"], constants)
        # Autograd must still notice that the weights have changed.
        torch.autograd.graph.increment_version(weight)

    # --- compilation ---

    def _is_ready(self) -> bool:
        """Whether the compiled step can be used; compiles it if nobody has."""
        key = (self.normalised, torch.get_num_threads())
        if key not in _MET:
            self.compile_step()
        return key in _MET

    def _cpu_sizes(self) -> set[int]:
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        return {parameter.numel() for parameter in parameters if parameter.device.type == "cpu"}

    @torch.no_grad()
    def _meet_graphs(self) -> None:
        constants = torch.tensor(self._constants(self.param_groups[0], 1e-3, 1.0, True), dtype=torch.float64)
        # Down from a fixed size: graphs are made for ranges of sizes, and the first one covers the most.
        sizes = {_TYPICAL} | {size for size in self._cpu_sizes() if LARGE <= size < _TYPICAL}
        for size in sorted(sizes, reverse=True):
            tensors = (torch.zeros(size, dtype=torch.float32, device="cpu") for _ in range(4))
            ratio = torch.ones((), dtype=torch.float32, device="cpu")
            compiled_step(self.normalised)(*tensors, ratio, constants)
        _MET.add((self.normalised, torch.get_num_threads()))


def _picked(places: list[int], weights: Tensors, grads: Tensors, states: States) -> tuple[Tensors, Tensors, States]:
    """The entries at these places."""
    return [weights[i] for i in places], [grads[i] for i in places], [states[i] for i in places]
