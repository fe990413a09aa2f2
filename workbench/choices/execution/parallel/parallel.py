"""Define the contract of parallel training: how processes that take the same steps share gradients and states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from workbench.choices.choice import Choice
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.ranks import Ranks

Groups = list[dict[str, Any]]
"""Parameter groups, as torch has them."""


class Exchange:
    """What the processes of a run exchange in every step; as it stands nothing, which is right for one process.

    A step calls :meth:`last` before its last backward pass, :meth:`launch` after it, and :meth:`finish` before the
    norm of the gradients is taken.
    """

    shares_norm = False
    """True: a process has a part of the gradients, and :meth:`norm` needs all processes in every step."""

    measures_layers = True
    """False: the first process has no layer whole, whose statistics could be recorded."""

    def module(self, model: Any, plan: LayerPlan) -> Any:
        """Return what takes the place of ``model`` in a pass that trains, under ``plan``."""
        return model

    def forget(self) -> None:
        """Drop the gradients of passes that belong to no step."""

    def watch(self, model: nn.Module, optimizer: Optimizer) -> None:
        """Exchange the gradients of ``model`` from now on: at the beginning, and after growth made another one."""

    def last(self, model: Any, plan: LayerPlan, whole: bool = False) -> None:
        """Begin to exchange gradients as the coming backward pass, the step's last, completes them.

        Args:
            model: has ``stacks()``. plan: of the micro-batch whose forward pass is done.
            whole: every process needs all gradients of this step, since they are measured.
        """

    def launch(self) -> None:
        """After every backward pass: send what is not sent yet, if it was the step's last."""

    def finish(self) -> None:
        """Wait until all gradients, of any shapes, are the sums over all processes."""

    def norm(self, gradients: Sequence[Tensor]) -> Tensor:
        """Return the norm of all gradients, 0-d; those here have any shapes."""
        # A process that keeps a part of them may have none.
        norms = torch._foreach_norm(list(gradients)) if gradients else [torch.zeros(())]
        return torch.linalg.vector_norm(torch.stack(norms))

    def settle(self, everywhere: bool) -> None:
        """Have the first process hold the optimizer's whole state until the next step.

        Args:
            everywhere: all others, too.
        """

    def told(self) -> dict[str, float]:
        """Return telemetry of the step that is over, by quantity, and begin to count anew."""
        return {}


class Parallel(Choice):
    """Base of the ways in which several processes train one model. How many there are is for the launcher to say.

    A step's result depends neither on the way nor on the number, but for rounding, unless a card says otherwise.
    """

    axis: ClassVar[str] = "parallel"
    provides: ClassVar[tuple[str, ...]] = ("exchange",)

    def exchange(self, ranks: Ranks) -> Exchange:
        """Return what this process does in every step; ``ranks`` are more than one."""
        raise NotImplementedError

    def optimizer(self, build: Callable[[Groups], Optimizer], groups: Groups, ranks: Ranks) -> Optimizer:
        """Return the optimizer of this process, whose groups are those of all parameters.

        Args:
            build: makes the recipe's optimizer over some groups.
            groups: of all parameters, as ``parameter_groups`` gives them. ranks: more than one.
        """
        return build(groups)
