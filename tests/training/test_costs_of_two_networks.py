"""Costs of an objective with two networks, defined here: both are masked models, one of them narrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from workbench.choices.architectures.architecture import Architecture, Backbone
from workbench.choices.architectures.flops import count_parameters, step_flops
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.masked import Masked, MaskedModel
from workbench.choices.objectives.objective import Builder, Loss, Objective, TrainingModel
from workbench.choices.progress import Progress
from workbench.forecasting.footprint import sizes
from workbench.forecasting.meta_tensors import ModelSpec
from workbench.recipes.recipe import Recipe
from workbench.training.batches import StepShape
from workbench.training.loop import Training


def narrow(architecture: Architecture) -> Any:
    return architecture.model_copy(update={"width": architecture.width // 2, "heads": 1})


class Pair(Objective):
    """Two masked models, of which the second is half as wide and as deep as the first."""

    kind: Literal["pair"] = "pair"
    listed: ClassVar[bool] = False

    def build(self, builder: Builder) -> TrainingModel:
        return PairModel(self, builder)

    def labelled_fraction(self, progress: Progress) -> float:
        return 0.15

    def flops(self, architecture: Architecture, vocabulary_size: int, plans: Sequence[LayerPlan], *rest: Any) -> float:
        return sum(step_flops(each, vocabulary_size, plans, *rest) for each in (architecture, narrow(architecture)))


class PairModel(TrainingModel):
    def __init__(self, choice: Pair, builder: Builder) -> None:
        super().__init__()
        self.choice = choice
        self.one, self.two = (
            MaskedModel(Masked(), builder, each) for each in (builder.architecture, narrow(builder.architecture))
        )

    @property
    def backbone(self) -> Backbone:  # type: ignore[override]
        return self.one.backbone

    def stacks(self) -> dict[str, Backbone]:
        return {"main": self.one.backbone, "narrow": self.two.backbone}

    def lay_out(self, head: str, padding: str) -> None:
        for model in (self.one, self.two):
            model.lay_out(head, padding)

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        count = self.one.counts(batch, progress)["loss"]
        return {"one": count, "two": count}

    def forward(self, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        one, two = (model(batch, plan, progress).parts["loss"] for model in (self.one, self.two))
        return Loss({"one": one, "two": two})


@pytest.fixture
def pair(tiny: Recipe, build: Callable[..., Training]) -> Training:
    recipe = tiny.with_(architecture={"dropout": 0.0, "layers": 5})
    return build(recipe.model_copy(update={"objective": Pair()}))


def test_a_forecast_knows_the_parameters_of_both_networks(pair: Training) -> None:
    assembled: Any = pair.assembled
    spec = ModelSpec(assembled.architecture, Pair(), assembled.vocabulary, assembled.longest)
    found = sizes(spec)
    assert found.parameters == count_parameters(pair.model)
    matrices = [group for group in pair.optimizer.param_groups if group["role"] == "matrix"]
    assert sum(n for n, _ in found.matrices) == sum(p.numel() for group in matrices for p in group["params"])


def test_flops_of_a_step_are_those_that_torch_counts_in_both_networks(pair: Training) -> None:
    batch: Any = pair.assembled.rehearsal(StepShape(4, pair.assembled.longest, 4))
    plan, rows = LayerPlan.full(5), batch.tokens_BT.shape
    with FlopCounterMode(display=False) as counter:
        torch.stack(list(pair.model(batch, plan, pair.progress).parts.values())).sum().backward()
    slots = pair.model.one.labelled(batch, pair.progress).labels_N.numel()
    said = Pair().flops(
        pair.assembled.architecture, pair.assembled.vocabulary.size, [plan], batch.tokens_BT.numel(), slots,
        float(rows[1]), rows[1],
    )  # fmt: skip
    assert said == pytest.approx(counter.get_total_flops(), rel=0.02)
