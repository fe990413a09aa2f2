"""The one place where a recipe becomes torch objects."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from workbench.choices.data.data import cache_folder
from workbench.choices.data.order import HeldoutRows, RowOrder
from workbench.choices.data.tokens import PreparedData, Vocabulary
from workbench.choices.execution.native import PRECISIONS
from workbench.choices.objectives.objective import TrainingModel
from workbench.choices.optimizers.optimizer import parameter_groups
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import at
from workbench.ops.attention import choose_attention
from workbench.recipe import Recipe


@dataclass
class Assembled:
    """A recipe's torch objects, at step 0.

    Attributes:
        model: backbone and head on ``device``, eager; its weights are a function of the recipe's seed alone.
        optimizer: over the model's parameters, at the peak rate.
        order, heldout: rows of both splits by sample index.
        vocabulary: of the data.
        attention: name of the implementation in force.
        device, precision: where and in which dtype the matmuls run (weights stay fp32).
    """

    model: TrainingModel
    optimizer: torch.optim.Optimizer
    order: RowOrder
    heldout: HeldoutRows
    vocabulary: Vocabulary
    attention: str
    device: torch.device
    precision: torch.dtype

    @property
    def parameters(self) -> int:
        """Trainable parameters, tied ones once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def autocast(self) -> torch.autocast:
        """The context every forward pass runs in."""
        return torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32)


def assemble(recipe: Recipe, prepared: PreparedData, device: torch.device) -> Assembled:
    """Build model, optimizer and data order of a recipe.

    Args:
        recipe: what was asked.
        prepared: its data.
        device: where to train.

    Raises:
        DataError: a split holds fewer tokens than one row.
    """
    precision = PRECISIONS[recipe.execution.precision]
    order = RowOrder(prepared.train, recipe.data.sequence_length, recipe.seed)
    heldout = HeldoutRows(prepared.heldout, recipe.data.sequence_length)
    attention = choose(recipe, device, precision)
    # Drawn on the CPU and moved, because a GPU's generator gives other numbers for the same seed.
    torch.manual_seed(recipe.seed)
    backbone = recipe.architecture.build(
        prepared.vocabulary, recipe.data.sequence_length, causal=recipe.objective.causal, attention=attention
    )
    model = recipe.objective.build(backbone, recipe.architecture, prepared.vocabulary, recipe.seed).to(device)
    start = Progress(step=0, tokens=0, seconds=0.0, budget=recipe.budget)
    groups = parameter_groups(model, at(recipe.optimizer.weight_decay, start))
    optimizer = recipe.optimizer.build(groups, device)
    return Assembled(model, optimizer, order, heldout, prepared.vocabulary, attention, device, precision)


def micro_batch_size(recipe: Recipe) -> int:
    """Rows per forward pass."""
    return int(recipe.execution.micro_batch_size or recipe.data.batch_size)


def choose(recipe: Recipe, device: torch.device, precision: torch.dtype) -> str:
    """The attention that was asked for, or the one measured fastest for this recipe's shapes."""
    if recipe.execution.attention != "auto":
        return str(recipe.execution.attention)
    heads = recipe.architecture.heads
    return choose_attention(
        device,
        precision,
        micro_batch_size(recipe),
        recipe.data.sequence_length,
        heads,
        recipe.architecture.width // heads,
        recipe.objective.causal,
        cache_folder() / "attention",
    )
