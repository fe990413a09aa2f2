"""Define the contract of parallel training: how processes that take the same steps share gradients and states."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from workbench.choices.choice import Choice, Problem, registry
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.ranks import Ranks, together

Groups = list[dict[str, Any]]
"""Parameter groups, as torch has them."""


@dataclass
class Traffic:
    """Bytes that a process has sent, and seconds that it has waited for others, since the last step."""

    sent_bytes: float = 0.0
    waited: float = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time inside, which needs all processes.

        Raises:
            ProcessEnded: another one is no longer there.
        """
        began = time.perf_counter()
        with together():
            yield
        self.waited += time.perf_counter() - began


class Exchange:
    """Exchange between the processes of a run in every step; as it stands none, which is right for one process.

    A step calls :meth:`last` before its last backward pass, :meth:`launch` after it, and :meth:`finish` before the
    norm of the gradients is taken.

    Args:
        ranks: that exchange.
    """

    shares_norm = False
    """True: a process has a part of the gradients, and :meth:`norm` needs all processes in every step."""

    layers_measured_by: Literal["first", "all", "nobody"] = "first"
    """Processes that together have every layer whole, so that its statistics can be recorded."""

    def __init__(self, ranks: Ranks = Ranks()) -> None:  # noqa: B008
        self.ranks, self.traffic = ranks, Traffic()

    def passing(self) -> AbstractContextManager[None]:
        """Return the context of a forward or a backward pass, in which processes may wait for each other."""
        return nullcontext()

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

    def norms(self, weights: Sequence[Tensor], tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the norm of each tensor, 0-d.

        Args:
            weights, tensors: as many, of any shapes; each tensor has the form of its weight.
        """
        return list(torch._foreach_norm(list(tensors))) if tensors else []

    def norm(self, weights: Sequence[Tensor]) -> Tensor:
        """Return the norm of all gradients, 0-d, of which the weights here, of any shapes, have theirs."""
        # A process that keeps a part of them may have none.
        norms = self.norms(weights, [weight.grad for weight in weights])  # type: ignore[misc]
        norm = torch.linalg.vector_norm(torch.stack(norms or [torch.zeros(())]))
        return self.added(norm.square()).sqrt() if self.shares_norm else norm

    def added(self, value: Tensor) -> Tensor:
        """Return the sum of float32 ``value``, of any shape, over all processes; it is that sum afterwards."""
        with self.traffic.waiting():
            self.ranks.reduce([value])
        return value

    def entropy(self, stack: Any, tokens_BT: Tensor, batch: Batch) -> Sequence[Tensor | None]:
        """Return the entropy of the attention of each layer, nats, 0-d; see :meth:`Backbone.attention_entropy`."""
        found: Sequence[Tensor | None] = stack.attention_entropy(tokens_BT, batch)
        return found

    def settle(self, everywhere: bool) -> None:
        """Have the first process hold the optimizer's whole state until the next step.

        Args:
            everywhere: all others, too.
        """

    def told(self) -> dict[str, float]:
        """Return telemetry of the step that is over, by quantity, and begin to count anew.

        ``sent_mib``: of this process, as a ring of all sends. ``waited_ms``: outside the passes.
        """
        if self.ranks.size == 1:
            return {}
        told = {"sent_mib": self.traffic.sent_bytes / 2**20, "waited_ms": 1e3 * self.traffic.waited}
        self.traffic.sent_bytes = self.traffic.waited = 0.0
        return told


class Parallel(Choice):
    """Base of the ways in which several processes train one model. How many there are is for the launcher to say.

    A step's result depends neither on the way nor on the number, but for rounding, unless a card says otherwise.
    """

    axis: ClassVar[str] = "parallel"
    provides: ClassVar[tuple[str, ...]] = ("exchange",)
    # False: every process goes through all rows of a step.
    shares_rows: ClassVar[bool] = True

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


def uncut(recipe: Any, path: str, what: str, instead: str) -> Iterator[Problem]:
    """Yield what goes with whole weights alone.

    Args:
        path, what: of the knob that cuts them, and its value. instead: a value that does not.
    """
    execution, optimizer = recipe.execution, recipe.optimizer
    if not optimizer.elementwise:
        able = [kind for kind, choice in registry("optimizer").items() if getattr(choice, "elementwise", False)]
        yield Problem(
            path,
            f"{what} cuts tensors, and '{optimizer.kind}' steps whole ones; use {instead}, or optimizer "
            f"{', '.join(able)}",
        )
    plain = {"compile": False, "weights": "fp32", "optimizer_states": "fp32"}
    for name, value in plain.items():
        if (got := getattr(execution, name)) != value:
            yield Problem(f"execution.{name}", f"{got!r} is not for {path} {what}; use {value!r}, or {instead}")
    if execution.micro_batch_size == "auto" or execution.recompute == "budget":
        yield Problem(
            path,
            f"{what} cannot measure what fits, since only the first process would; give the rows, and recompute "
            "'layers'",
        )
    if optimizer.average:
        yield Problem("optimizer.average", "an average is kept of whole weights in every process; use 0, or 'data'")
