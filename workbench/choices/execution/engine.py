"""Define the contract of an engine: everything between a recipe's mathematics and the device that carries it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.foreseen import Foreseen
from workbench.choices.execution.parallel.parallel import Exchange
from workbench.choices.objectives.objective import Loss, TrainingModel
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.progress import Progress
from workbench.ops.remembered import device_name


class Engine(Foreseen):
    """A recipe's execution at work: as it stands, torch on one device, eager and in float32.

    The only thing that loop, assembly, warm-up, evaluation, forecast and benchmarks ask about execution. Its three
    parts: what it computes on (:class:`Hardware`), what a forecast needs to know (:class:`Foreseen`), and, here, the
    model's beginning and a step.

    Attributes:
        overflow_advice: what helps against gradients that overflow, beside a lower learning rate.
        exchange: what it does with the other processes in every step.
    """

    overflow_advice: str = ""
    exchange: Exchange = Exchange()

    # --- before the first step ------------------------------------------------------------------------------------

    def calibrated(self, say: Callable[[str], None]) -> Engine:
        """Return the engine of a run: itself, unless its execution leaves knobs to be found by measuring.

        Args:
            say: called with a line before something takes long.
        """
        return self

    def resume(self, begun: Mapping[str, Any]) -> Engine:
        """Return the engine that carries on as a run began, so that it repeats bit for bit whatever was measured since.

        Args:
            begun: ``environment.json`` of the run.
        """
        same = begun.get("device") == device_name(self.device)
        self._attention = next((name for name in self.attentions if same and name == begun.get("attention")), "")
        return self

    def place(self, model: TrainingModel) -> TrainingModel:
        """Return the model on the device, ready to train; its ``state_dict`` keeps its names,
        since checkpoints hold them.
        """
        model.lay_out(self.head, self.padding)
        return model.to(self.device)

    def optimizer(self, choice: OptimizerChoice, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """Return the optimizer over the parameters of a placed model, without any state; its groups keep their names.

        Args:
            choice: which.
            groups: as :meth:`TrainingModel.parameter_groups` gives them.
        """
        optimizer = choice.build(groups, self.device)
        for group in optimizer.param_groups:
            # Of optimizers that have a compiled step. Here, so that one that is built at a later stage takes it, too.
            if "compile" in group:
                group["compile"] = self.compiled
        return optimizer

    def fit(self, model: TrainingModel, optimizer: torch.optim.Optimizer, rehearse: Callable[[int], Tensor]) -> None:
        """Settle what depends on the memory there is, before anything is compiled; called once.

        Args:
            model: as :meth:`place` gave it.
            optimizer: as :meth:`optimizer` gave it; of a run that goes on from a checkpoint, with the state of that.
            rehearse: the loss of a forward pass over so many rows of the longest length.

        Raises:
            RecipeError: it does not fit; says what is missing.
        """

    def compile(self, model: TrainingModel) -> None:
        """Make ``model`` compile at its next passes, which are a rehearsal; not called again for the same model."""

    def save_graphs(self, folder: Path) -> None:
        """Write what was made of the model, where that is a file to look into, into ``folder``, made for it."""

    # --- a step ---------------------------------------------------------------------------------------------------

    def forward(self, model: TrainingModel, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """Return loss of a micro-batch, to be trained on.

        Args:
            model: as :meth:`place` gave it.
            batch: rows of tokens, (B, T), on the device.
            plan, progress: as for :class:`TrainingModel`.
        """
        with self.exchange.passing(), self.autocast():
            loss: Loss = self.exchange.module(model, plan)(batch, plan, progress)
        return loss

    @property
    def loss_scale(self) -> float | None:
        """Factor on the gradients until :meth:`finish`; None where nothing is scaled. Waits for the device."""
        return None

    def backward(self, loss: Tensor, parts: int = 1) -> None:
        """Add the gradients of a micro-batch to those that are there.

        Args:
            loss: its share of the step's loss, 0-d.
            parts: micro-batches of the step.
        """
        with self.exchange.passing():
            loss.backward()
        self.exchange.launch()

    def last(self, model: TrainingModel, plan: LayerPlan, whole: bool) -> None:
        """Before the backward pass of a step's last micro-batch: begin to sum gradients over the processes in it.

        Args:
            whole: see :meth:`Exchange.last`.
        """
        self.exchange.last(model, plan, whole)

    def finish(self, optimizer: torch.optim.Optimizer) -> None:
        """After the last micro-batch: make the gradients those of the whole step and all processes, unscaled."""
        self.exchange.finish()

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Update the weights, and leave no gradients."""
        optimizer.step()
        # None, not zeros: a dropped layer must look untouched; whether it rests is for the depth method to say.
        optimizer.zero_grad(set_to_none=True)

    def settle(self, everywhere: bool = False) -> None:
        """Finish what the last step left pending on the host, before anybody reads the optimizer's state.

        Args:
            everywhere: in every process, not in the first alone.
        """
        self.exchange.settle(everywhere)

    def state(self) -> dict[str, Any]:
        """Return its part of a checkpoint, JSON-able."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Inverse of :meth:`state`; a checkpoint of this kind of engine, perhaps with other knobs."""
