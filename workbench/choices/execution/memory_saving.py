"""The memory plan of an engine of torch: knobs that trade time or rounding for memory, and what carries them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from workbench.choices.architectures.feed_forward import FeedForward
from workbench.choices.architectures.modular import Modular
from workbench.choices.architectures.self_attention import SelfAttention
from workbench.choices.architectures.stack import Block
from workbench.choices.choice import Problem, knob, registry
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.engine import Engine
from workbench.choices.execution.execution import Execution
from workbench.choices.execution.low_weights import FEW, LowWeights, look_up_in_float32
from workbench.choices.execution.memory_fit import (
    SHARE,
    counted_rows,
    fewest_layers,
    largest_rows,
    measured,
    state_bytes,
    step_bytes,
)
from workbench.choices.execution.memory_plan import MemoryPlan
from workbench.choices.execution.micro_batches import divisors
from workbench.choices.execution.optimizer_states import STORAGES, StoredMoments
from workbench.choices.objectives.objective import Loss, TrainingModel
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.progress import Progress
from workbench.ops.free_memory import free_bytes

_REMEDIES = (
    ("recompute", "operations", "a bit more than half of the activations for a sixth more time"),
    ("recompute", "layers", "nine tenths of the activations for a third more time"),
    ("optimizer_states", "8bit", "three quarters of the optimizer's states, rounded"),
)
"""Knob, value, and what it saves at which price, as measured (native.md); cheapest first."""


class SavesMemory(Execution):
    """Base of execution choices whose engine is a :class:`MemorySavingEngine`."""

    weights: Literal["fp32", "bf16"] = knob(
        "fp32", "weights in both passes; bf16 keeps copies of the float32 weights, which are still stepped and saved"
    )
    recompute: Literal["off", "layers", "attention", "activation", "dropout", "operations", "budget"] = knob(
        "off",
        "what the backward pass recomputes: whole layers, one operation or all three, or what memory_gib requires",
    )
    recompute_every: int = knob(1, "with recompute 'layers': every n-th layer, the first included", ge=1, le=256)
    memory_gib: float | None = knob(
        None,
        "limit for weights, gradients, states and activations, for recompute 'budget' and micro_batch_size 'auto'",
        unit="GiB", gt=0, le=1 << 20,
    )  # fmt: skip
    optimizer_states: Literal["fp32", "8bit", "host"] = knob(
        "fp32", "how moments are kept between steps: float32, 8 bits with a scale per 256, or off the GPU"
    )

    def device_problems(self, device: str) -> Iterator[Problem]:
        """Refuse states on the host of a CPU."""
        yield from super().device_problems(device)
        if device == "cpu" and self.optimizer_states == "host":
            yield Problem(
                "execution.optimizer_states",
                "'host' moves states out of a GPU's memory, and a CPU's states are there already; use '8bit' or 'fp32'",
            )

    def memory_remedies(self, recipe: Any) -> list[str]:
        """See :meth:`Execution.memory_remedies`; each only where a recipe with it can be made."""
        found = super().memory_remedies(recipe)
        for knob_name, value, what in _REMEDIES:
            if getattr(self, knob_name) == type(self).model_fields[knob_name].default:
                tried = self.model_copy(update={knob_name: value})
                # Of the remedy's own: what else is wrong with a recipe is no reason here.
                if not any(problem.path == f"execution.{knob_name}" for problem in tried.problems(recipe)):
                    found.append(f"execution.{knob_name} '{value}' ({what})")
        return found

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse states that the optimizer does not let go of, or that cannot grow; and what every engine refuses."""
        yield from self._budget_problems(recipe)
        yield from self._recompute_problems(recipe)
        yield from self._states_problems(recipe)
        yield from super().problems(recipe)

    def _budget_problems(self, recipe: Any) -> Iterator[Problem]:
        path, largest = "execution.memory_gib", self.micro_batch_size == "auto"
        yield from self._widening_problems(recipe)
        if largest and self.recompute == "budget":
            yield Problem(
                "execution.micro_batch_size",
                "'auto' and recompute 'budget' would each wait for the other; give the rows, or recompute 'layers'",
            )
        if self.memory_gib is None:
            if self.recompute == "budget":
                yield Problem(path, "recompute 'budget' needs one; give GiB, or use recompute 'layers' or 'operations'")
            return
        if not largest and self.recompute != "budget":
            yield Problem(
                path,
                f"a limit of {self.memory_gib:g} GiB does nothing by itself; set recompute to 'budget' or "
                "micro_batch_size to 'auto', or leave it empty",
            )
        least = least_bytes(recipe, self._plan())
        if self.memory_gib * 2**30 < least["all"]:
            parts = ", ".join(f"{name} {size / 2**30:.3f}" for name, size in least.items() if name != "all")
            yield Problem(
                path,
                f"{self.memory_gib:g} GiB are less than the model takes without any activation, "
                f"{least['all'] / 2**30:.3f} ({parts}); raise it, make the model smaller, or set states to '8bit'",
            )

    def _widening_problems(self, recipe: Any) -> Iterator[Problem]:
        if recipe.depth.architecture_at(recipe.architecture, 0) == recipe.architecture:
            return
        for name, value in (("micro_batch_size", "auto"), ("recompute", "budget")):
            if getattr(self, name) == value:
                yield Problem(
                    f"execution.{name}",
                    f"'{value}' fits the model that a run begins with, and {recipe.depth.kind} makes it larger; give "
                    "the rows, and recompute 'layers' or 'operations' to save memory",
                )

    def _plan(self) -> MemoryPlan:
        budget = round((self.memory_gib or 0.0) * 2**30)
        return MemoryPlan(
            self.recompute, self.recompute_every, self.optimizer_states, self.weights, budget,
            largest=self.micro_batch_size == "auto",
        )  # fmt: skip

    def _recompute_problems(self, recipe: Any) -> Iterator[Problem]:
        path, value = "execution.recompute", self.recompute
        if self.recompute_every > 1 and value != "layers":
            yield Problem(
                "execution.recompute_every", f"{self.recompute_every} is for recompute 'layers'; leave it at 1"
            )
        if value not in ("off", "layers", "budget") and not isinstance(recipe.architecture, Modular):
            yield Problem(
                path,
                f"'{value}' needs blocks of this package, and those of '{recipe.architecture.kind}' are others'; use "
                "'layers', or architecture 'pre_ln' or 'post_ln'",
            )

    def _states_problems(self, recipe: Any) -> Iterator[Problem]:
        if self.optimizer_states == "fp32":
            return
        path, value = "execution.optimizer_states", self.optimizer_states
        if not recipe.optimizer.moments:
            able = [kind for kind, choice in registry("optimizer").items() if getattr(choice, "moments", ())]
            yield Problem(
                path,
                f"'{value}': what {recipe.optimizer.kind} keeps between steps is kept in float32 alone; use "
                f"'fp32', or optimizer {', '.join(able)}",
            )
        if value == "8bit" and _widens(recipe):
            yield Problem(
                path,
                f"'8bit': {recipe.depth.kind} widens the moments, and codes of 256 numbers together cannot be widened; "
                "use 'fp32', or set depth.state to 'reset'",
            )


class MemorySavingEngine(Engine):
    """An engine of torch under :class:`SavesMemory`."""

    def __init__(self, recipe: Any) -> None:
        super().__init__(recipe)
        asked: SavesMemory = recipe.execution
        self.memory = asked._plan()
        # Whether a run that is resumed has settled what `fit` settles.
        self._settled = False
        self._low = LowWeights() if asked.weights == "bf16" else None

    def place(self, model: TrainingModel) -> TrainingModel:
        """See :meth:`Engine.place`; its blocks keep what the plan says."""
        self._recompute_layers(model)
        for stack in model.stacks().values():
            recompute_operations(stack, self.memory.operations)
        if self._low is not None:
            look_up_in_float32(model)
        return super().place(model)

    def fit(self, model: TrainingModel, optimizer: torch.optim.Optimizer, rehearse: Callable[[int], Tensor]) -> None:
        """See :meth:`Engine.fit`; nothing for a run that goes on with what its beginning settled."""
        plan = self.memory
        if self._settled or not (plan.largest or plan.recompute == "budget"):
            return
        trained = (parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
        taken = step_bytes(trained, plan, len(self.recipe.optimizer.moments))
        weights = sum(4 * p.numel() for p in model.parameters())
        # What a fork has read is among what is taken, and no longer free.
        free = free_bytes(self.device) + state_bytes(optimizer, self.device)
        room: float = (plan.budget - weights if plan.budget else SHARE * free) - taken
        if self._low is not None:
            # Before anything is counted: copies that came with the first pass would pass for what its row keeps.
            self._low.lower(model)
        kept, data = measured(model, rehearse), self.recipe.data
        if plan.largest:
            legal = divisors(data.fewest_rows, data.most_rows)

            def backward(loss: Tensor) -> None:
                self.backward(loss)
                model.zero_grad(set_to_none=True)

            self.micro_batch_size = largest_rows(legal, room, kept, rehearse, backward)
            within = plan.budget or room + weights + taken
            self.settled = (
                f"{self.micro_batch_size} of {counted_rows(data.most_rows)} per micro-batch: the most that fit "
                f"{within / 2**30:.3g} GiB"
            )
        else:
            stream = 4.0 * self.recipe.architecture.width * data.longest
            self.memory = plan._replace(first=fewest_layers(room, kept, self.rows, stream))
            self._recompute_layers(model)
            layers = len(model.stacks()["main"].blocks)
            self.settled = f"recomputing {self.memory.first} of {layers} layers to fit {plan.budget / 2**30:.3g} GiB"
        if self._low is not None:
            self._low.restore()

    def resume(self, begun: Mapping[str, Any]) -> Engine:
        """See :meth:`Engine.resume`; with the micro-batch and the layers that were settled then."""
        super().resume(begun)
        settled, rows = begun.get("memory"), begun.get("micro_batch_size")
        if isinstance(settled, dict):
            if self.memory.largest and isinstance(rows, int):
                self.micro_batch_size, self._settled = rows, True
            if self.memory.recompute == "budget" and isinstance(settled.get("first"), int):
                self.memory, self._settled = self.memory._replace(first=settled["first"]), True
        return self

    def _recompute_layers(self, model: TrainingModel) -> None:
        for stack in model.stacks().values():
            layers = range(len(stack.blocks))
            stack.recomputes = frozenset(layer for layer in layers if self.memory.recomputes(layer))

    def forward(self, model: TrainingModel, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """See :meth:`Engine.forward`; with copies of the weights until the end of :meth:`backward`."""
        if self._low is not None:
            self._low.lower(model)
        return super().forward(model, batch, plan, progress)

    def backward(self, loss: Tensor, parts: int = 1) -> None:
        """See :meth:`Engine.backward`."""
        try:
            super().backward(loss, parts)
        finally:
            if self._low is not None:
                self._low.restore()
        if self._low is not None and parts > FEW:
            self._low.widen()

    def last(self, model: TrainingModel, plan: LayerPlan, whole: bool) -> None:
        """See :meth:`Engine.last`; bf16 gradients wait until they are float32."""
        if self._low is None:
            super().last(model, plan, whole)

    def finish(self, optimizer: torch.optim.Optimizer) -> None:
        """See :meth:`Engine.finish`; gradients are float32 from here on."""
        if self._low is not None:
            # First: several processes add up float32.
            self._low.widen()
            self._low.outdate()
        super().finish(optimizer)

    def described(self) -> dict[str, Any]:
        """See :meth:`Engine.described`; with the memory plan."""
        return super().described() | {"memory": self.memory._asdict(), "micro_batch_size": self.micro_batch_size}

    def optimizer(self, choice: OptimizerChoice, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """See :meth:`Engine.optimizer`; its moments are stored as the plan says."""
        optimizer = super().optimizer(choice, groups)
        if self.memory.states == "fp32":
            return optimizer
        return StoredMoments(optimizer, choice.moments, STORAGES[self.memory.states]())


def recompute_operations(backbone: nn.Module, operations: frozenset[str]) -> None:
    """Let blocks of this package compute these operations again in the backward pass; shapes stay what they are."""
    for module in backbone.modules():
        if isinstance(module, SelfAttention):
            module.recomputes = "attention" in operations
        elif isinstance(module, FeedForward):
            module.recomputes = "activation" in operations
        elif isinstance(module, Block):
            module.recomputes_dropout = "dropout" in operations


def least_bytes(recipe: Any, plan: MemoryPlan) -> dict[str, int]:
    """Return bytes by part that a recipe's model takes at least, without activations, norms and biases;
    ``all`` is the sum.
    """
    architecture, tokens = recipe.architecture, recipe.data.tokenizer.asked_size()
    numbers = architecture.least_parameters(tokens)
    trained = numbers - architecture.frozen_parameters
    moments = len(recipe.optimizer.moments) * plan.moment_bytes(trained)
    parts = {"weights": 4 * numbers, "gradients": 4 * trained, "optimizer states": moments}
    return parts | {"all": sum(parts.values())}


def _widens(recipe: Any) -> bool:
    """Return True if a stage takes over moments in another width."""
    depth, architecture = recipe.depth, recipe.architecture
    stages = range(1, len(depth.starts()))
    return any(
        depth.architecture_at(architecture, stage) != depth.architecture_at(architecture, stage - 1)
        and depth.transition(architecture.layers, stage).state == "copy"
        for stage in stages
    )
