"""The one place where a recipe becomes torch objects."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.flops import count_parameters
from workbench.choices.data.data import cache_folder
from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import PreparedData, Vocabulary
from workbench.choices.execution.native import PRECISIONS
from workbench.choices.objectives.heldout import HeldoutSet
from workbench.choices.objectives.objective import TrainingModel
from workbench.choices.optimizers.optimizer import parameter_groups
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import at
from workbench.ops.attention import attention_benchmark
from workbench.ops.remembered import FOLDER, Benchmark, fastest
from workbench.recipe import Recipe
from workbench.training.batch_size import shapes_ahead


@dataclass
class TrainedModel:
    """A recipe's model at some stage of its training: what scoring and export need.

    Attributes:
        model: backbone and head on ``device``, eager.
        vocabulary: of the data.
        longest: tokens of the longest row that it was built for.
        device, precision: where and in which dtype the matmuls run (weights stay fp32).
        architecture: of the model as it is now; the recipe's describes the finished one.
        layers: that exist now.
    """

    model: TrainingModel
    vocabulary: Vocabulary
    longest: int
    device: torch.device
    precision: torch.dtype
    architecture: Architecture
    layers: int

    @property
    def parameters(self) -> int:
        """Trainable parameters, tied ones once."""
        return count_parameters(self.model)

    def autocast(self) -> torch.autocast:
        """The context every forward pass runs in."""
        return torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32)


@dataclass
class Assembled(TrainedModel):
    """A recipe's torch objects, at step 0; the model's weights are a function of the recipe's seed alone.

    Attributes:
        optimizer: over the model's parameters, at the peak rate.
        order: training rows by sample index, at the longest length of the run.
        heldout: what the model is scored on, the same for every recipe on this text.
        attention: name of the implementation in force.
        stage: of the depth method that the model is in.
    """

    optimizer: torch.optim.Optimizer
    order: RowOrder
    heldout: HeldoutSet
    attention: str
    stage: int = 0


def assemble(recipe: Recipe, prepared: PreparedData, device: torch.device, attention: str | None = None) -> Assembled:
    """Build model, optimizer and data order of a recipe.

    Args:
        recipe: to assemble.
        prepared: its data.
        device: where to train.
        attention: name of the implementation where the recipe says ``auto``; None for the one measured fastest.

    Raises:
        DataError: the training split holds fewer tokens than one row.
    """
    precision = PRECISIONS[recipe.execution.precision]
    order = RowOrder(prepared.train, recipe.data.longest, recipe.seed)
    if attention is None or recipe.execution.attention != "auto":
        attention = choose(recipe, device, precision)
    architecture = recipe.depth.architecture_at(recipe.architecture, 0)
    model = build_model(recipe, architecture, prepared.vocabulary, attention, device)
    return Assembled(
        model=model,
        vocabulary=prepared.vocabulary,
        longest=recipe.data.longest,
        device=device,
        precision=precision,
        architecture=architecture,
        layers=recipe.depth.layers_at(recipe.architecture.layers, 0),
        optimizer=build_optimizer(recipe, model, device),
        order=order,
        heldout=heldout_set(recipe, prepared),
        attention=attention,
    )


def heldout_set(recipe: Recipe, prepared: PreparedData) -> HeldoutSet:
    """What models of a recipe are scored on."""
    tokens, causal = recipe.budget.evaluation_tokens, recipe.objective.causal
    return HeldoutSet.of(prepared.heldout, prepared.vocabulary, tokens, causal=causal)


def build_model(
    recipe: Recipe, architecture: Architecture, vocabulary: Vocabulary, attention: str, device: torch.device
) -> TrainingModel:
    """A recipe's model with fresh weights, in the architecture of one of its stages.

    Args:
        recipe: gives objective, row length and seed.
        architecture: what to build.
        vocabulary: of the data.
        attention: name of the implementation.
        device: where the model goes.
    """
    # Drawn on the CPU and moved, because a GPU's generator gives other numbers for the same seed.
    torch.manual_seed(recipe.seed)
    backbone = architecture.build(vocabulary, recipe.data.longest, causal=recipe.objective.causal, attention=attention)
    model: TrainingModel = recipe.objective.build(backbone, architecture, vocabulary, recipe.seed).to(device)
    return model


def build_optimizer(recipe: Recipe, model: TrainingModel, device: torch.device) -> torch.optim.Optimizer:
    """A recipe's optimizer over the parameters of ``model``, without any state."""
    start = Progress(step=0, tokens=0, seconds=0.0, budget=recipe.budget)
    groups = parameter_groups(model, at(recipe.optimizer.weight_decay, start))
    optimizer: torch.optim.Optimizer = recipe.optimizer.build(groups, device)
    for group in optimizer.param_groups:
        # Of optimizers that have a compiled step. Here, so that one that is built at a later stage takes it, too.
        if "compile" in group:
            group["compile"] = recipe.execution.compile
    return optimizer


def micro_batch_size(recipe: Recipe) -> int:
    """Rows of the longest length per forward pass: as the recipe sets it, or enough for the run's largest batch."""
    if recipe.execution.micro_batch_size is not None:
        return int(recipe.execution.micro_batch_size)
    return max(1, max(shape.tokens for shape in shapes_ahead(recipe)) // recipe.data.longest)


def choose(recipe: Recipe, device: torch.device, precision: torch.dtype) -> str:
    """The recipe's attention, or the one measured fastest for its shapes."""
    if recipe.execution.attention != "auto":
        return str(recipe.execution.attention)
    return fastest(attention_of(recipe, device, precision).seconds(cache_folder() / FOLDER))


def attention_of(recipe: Recipe, device: torch.device, precision: torch.dtype) -> Benchmark:
    """The benchmark of attention at a recipe's shapes."""
    rows, heads = micro_batch_size(recipe), recipe.architecture.heads
    head_dim = recipe.architecture.width // heads
    return attention_benchmark(device, precision, rows, recipe.data.longest, heads, head_dim, recipe.objective.causal)
