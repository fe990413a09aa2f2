"""torch itself: eager or compiled block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from workbench.choices.choice import Problem, knob
from workbench.choices.execution.engine import Engine
from workbench.choices.execution.execution import Execution
from workbench.choices.objectives.objective import TrainingModel
from workbench.errors import RecipeError
from workbench.ops.attention import ATTENTION


class Native(Execution):
    """PyTorch on one device: autocast precision, per-block compilation, measured choice of attention."""

    kind: Literal["native"] = "native"
    precision: Literal["fp32", "bf16", "fp16"] = knob("bf16", "matmul precision under autocast; weights stay fp32")
    compile: bool = knob(True, "compile each block and the head (torch.compile); skipped layers still cost nothing")
    attention: Literal["auto", "plain", "sdpa"] = knob(
        "auto", "attention implementation; auto measures once per device, precision and length, and remembers"
    )

    def engine(self, recipe: Any) -> NativeEngine:
        """See :class:`NativeEngine`."""
        return NativeEngine(recipe)

    def resolve_device(self) -> torch.device:
        """The device in force.

        Raises:
            RecipeError: ``cuda`` without a CUDA device, or fp16 on a CPU.
        """
        device = super().resolve_device()
        if device.type == "cpu" and self.precision == "fp16":
            raise RecipeError(
                "execution.precision: fp16 needs a CUDA device and this machine has none; use bf16 or fp32"
            )
        return device

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """fp16 on a CPU, and what every engine refuses."""
        if self.precision == "fp16" and self.device == "cpu":
            yield Problem("execution.precision", "fp16 needs a CUDA device; use bf16 or fp32 on a CPU")
        yield from super().problems(recipe)


class NativeEngine(Engine):
    """A recipe under :class:`Native`."""

    def __init__(self, recipe: Any) -> None:
        super().__init__(recipe)
        asked: Native = recipe.execution
        self.precision, self.compiled = asked.precision, asked.compile
        self.attentions = tuple(ATTENTION) if asked.attention == "auto" else (asked.attention,)
        # In force for fp16 only; for other precisions every call passes through.
        self._scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision == "fp16")
        if self._scaler.is_enabled():
            self.overflow_advice = "set execution.precision to 'bf16' or 'fp32', which reach further"

    def compile(self, model: TrainingModel) -> None:
        """Block by block, and the head."""
        if self.compiled:
            model.compile()

    def compile_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Of the optimizers that have something to compile."""
        compile_step = getattr(optimizer, "compile_step", None)
        if self.compiled and compile_step is not None:
            compile_step()

    @property
    def loss_scale(self) -> float | None:
        """Of fp16; waits for the device."""
        return self._scaler.get_scale() if self._scaler.is_enabled() else None

    def backward(self, loss: Tensor, share: float) -> None:
        """See :meth:`Engine.backward`; gradients are scaled until :meth:`finish`."""
        self._scaler.scale(loss * share).backward()

    def finish(self, optimizer: torch.optim.Optimizer) -> None:
        """Unscale: the norm that is limited and reported is that of the true gradients."""
        self._scaler.unscale_(optimizer)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """See :meth:`Engine.step`; under fp16, weights stay what they are if a gradient overflowed."""
        self._scaler.step(optimizer)
        self._scaler.update()
        optimizer.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Any]:
        """Of the loss scale; empty but under fp16."""
        return self._scaler.state_dict()

    def restore(self, state: Mapping[str, Any]) -> None:
        """See :meth:`Engine.restore`; empty unless the precision was fp16, which a fork may have changed."""
        if state:
            self._scaler.load_state_dict(dict(state))
