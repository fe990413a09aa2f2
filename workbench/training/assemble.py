"""The one place where a recipe becomes torch objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.flops import count_parameters
from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import PreparedData, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.engine import Engine
from workbench.choices.objectives.heldout import HeldoutSet
from workbench.choices.objectives.objective import Builder, TrainingModel
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import at
from workbench.recipes.recipe import Recipe
from workbench.training.batches import Prefetch, StepBatch, Steps, StepShape, step_batch


@dataclass
class TrainedModel:
    """A recipe's model at some stage of its training: what scoring and export need.

    Attributes:
        model: backbone and head on the engine's device.
        vocabulary: of the data.
        longest: tokens of the longest row that it was built for.
        engine: that carries it out.
        architecture: of the model as it is now; the recipe's describes the finished one.
        layers: that exist now.
    """

    model: TrainingModel
    vocabulary: Vocabulary
    longest: int
    engine: Engine
    architecture: Architecture
    layers: int

    @property
    def parameters(self) -> int:
        """Trainable parameters, tied ones once."""
        return count_parameters(self.model)


@dataclass
class Assembled(TrainedModel):
    """The torch objects of a run in training, wherever they come from.

    Attributes:
        optimizer: over the model's parameters, at the peak rate.
        stage: of the depth method that the model is in.
        phase: of the objective that the optimizer is in.
        average: of the weights, by name; empty where there is none.
    """

    optimizer: torch.optim.Optimizer
    stage: int = field(default=0, kw_only=True)
    phase: int = field(default=0, kw_only=True)
    average: dict[str, torch.Tensor] = field(default_factory=dict, kw_only=True)

    @property
    def averages(self) -> dict[str, dict[str, torch.Tensor]]:
        """The part of a checkpoint that holds the average, by name; none where there is none."""
        return {"average": self.average} if self.average else {}

    def steps(self, position: Mapping[str, Any] | None = None) -> Steps:
        """Return batches from the beginning, or from what their ``state()`` was when a checkpoint was made."""
        raise NotImplementedError

    def rehearsal(self, shape: StepShape) -> Any:
        """Return a micro-batch of that shape, on the CPU, for passes that are not trained on."""
        raise NotImplementedError

    def flops(self, batch: StepBatch, plans: Sequence[LayerPlan], counts: Mapping[str, int]) -> float:
        """Return useful FLOPs of a step on ``batch``.

        Args:
            plans: one per micro-batch.
            counts: labels by part of the loss.
        """
        raise NotImplementedError


@dataclass
class AssembledRecipe(Assembled):
    """A recipe's torch objects, at step 0; the model's weights are a function of the recipe's seed alone.

    Attributes:
        order: training rows by sample index, at the longest length of the run.
        heldout: what the model is scored on, the same for every recipe on this text.
    """

    order: RowOrder
    heldout: HeldoutSet

    def steps(self, position: Mapping[str, Any] | None = None) -> Steps:
        """See :meth:`Assembled.steps`; prepared in a thread."""
        return Prefetch(
            self.order, pin=self.engine.device.type == "cuda", ranks=self.engine.readers, workers=self.engine.workers
        )

    def rehearsal(self, shape: StepShape) -> Any:
        """See :meth:`Assembled.rehearsal`; rows from the first on."""
        order, engine = self.order.of_length(shape.length), self.engine
        return step_batch(order, 0, shape, engine.readers, engine.workers).parts[0]

    def flops(self, batch: StepBatch, plans: Sequence[LayerPlan], counts: Mapping[str, int]) -> float:
        """See :meth:`workbench.choices.objectives.objective.Objective.flops`."""
        length = batch.parts[0].tokens_BT.shape[1]
        objective, size = self.model.choice.in_phase(self.phase), self.vocabulary.size
        labelled = objective.labels_in(counts)
        useful: float = objective.flops(self.architecture, size, plans, batch.tokens, labelled, batch.span, length)
        if (reference := self.model.reference) is None:
            return useful
        return useful + reference.flops(batch.tokens, objective.scored(batch.tokens, length), batch.span, length)


def assemble(recipe: Recipe, prepared: PreparedData, engine: Engine | None = None) -> AssembledRecipe:
    """Build model, optimizer and data order of a recipe, in a process that its engine takes over.

    Args:
        recipe: to assemble.
        prepared: its data.
        engine: that will carry it out; None for a new one.

    Raises:
        DataError: the training split holds fewer tokens than one row.
        RecipeError: the device is not there, or cannot do what is asked.
    """
    engine = engine or recipe.engine()
    engine.start()
    architecture = recipe.depth.architecture_at(recipe.architecture, 0)
    model = build_model(recipe, architecture, prepared.vocabulary, engine)
    for stack in model.stacks().values():
        stack.study(prepared.train)
    return AssembledRecipe(
        model=model,
        vocabulary=prepared.vocabulary,
        longest=recipe.data.longest,
        engine=engine,
        architecture=architecture,
        layers=recipe.depth.layers_at(recipe.architecture.layers, 0),
        optimizer=build_optimizer(recipe, model, engine),
        order=row_order(recipe, prepared),
        heldout=heldout_set(recipe, prepared),
    )


def row_order(recipe: Recipe, prepared: PreparedData) -> RowOrder:
    """Return the training rows of a recipe by sample index, at the longest length of the run.

    Raises:
        DataError: the training split holds fewer tokens than one row.
    """
    order = recipe.data.row_order(prepared, recipe.seed)
    return order.arranged(lambda rows: recipe.objective.arrange(rows, prepared.vocabulary))


def heldout_set(recipe: Recipe, prepared: PreparedData) -> HeldoutSet:
    """Return the held-out set on which models of a recipe are scored."""
    tokens, causal = recipe.budget.evaluation_tokens, recipe.objective.causal
    parts = {name: part.heldout for name, part in prepared.parts.items()}
    return HeldoutSet.of(prepared.heldout, prepared.vocabulary, tokens, causal=causal, parts=parts)


def build_model(recipe: Recipe, architecture: Architecture, vocabulary: Vocabulary, engine: Engine) -> TrainingModel:
    """Return a recipe's model with fresh weights, in the architecture of one of its stages.

    Args:
        recipe: gives objective, row length and seed.
        architecture: what to build.
        vocabulary: of the data.
        engine: that will carry it out.
    """
    # Drawn on the CPU and placed, because a GPU's generator gives other numbers for the same seed.
    torch.manual_seed(recipe.seed)
    causal, attention = recipe.objective.causal, engine.attention
    builder = Builder(architecture, vocabulary, recipe.data.longest, recipe.seed, causal, attention)
    return engine.place(recipe.objective.build(builder))


def build_optimizer(recipe: Recipe, model: TrainingModel, engine: Engine) -> torch.optim.Optimizer:
    """Return a recipe's optimizer over the parameters of ``model``, without any state."""
    start = Progress(step=0, tokens=0, seconds=0.0, budget=recipe.budget)
    return engine.optimizer(recipe.optimizer, model.parameter_groups(at(recipe.optimizer.weight_decay, start)))
