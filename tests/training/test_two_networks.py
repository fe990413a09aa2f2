"""An objective with two networks, defined here: a generator fills in masked tokens, a discriminator finds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.choices.architectures.architecture import Backbone
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.masked import Masked, MaskedModel
from workbench.choices.objectives.objective import Builder, Loss, Objective, TrainingModel
from workbench.choices.progress import Progress
from workbench.recipes.recipe import Recipe
from workbench.training import checkpoint
from workbench.training.loop import Training

# Shape legend: B rows, T positions, N labelled slots.
Build = Callable[..., Training]


class Replaced(Objective):
    """Find the tokens that a generator of one layer has replaced."""

    kind: Literal["replaced"] = "replaced"
    listed: ClassVar[bool] = False  # a registered choice would need a card

    def build(self, builder: Builder) -> TrainingModel:
        small: Any = builder.architecture.model_copy(update={"layers": 1})
        # The discriminator first: its weights are drawn first.
        return ReplacedModel(self, builder.backbone(), MaskedModel(Masked(), builder, small))

    def labelled_fraction(self, progress: Progress) -> float:
        return 0.15


class ReplacedModel(TrainingModel):
    def __init__(self, choice: Replaced, backbone: Backbone, generator: MaskedModel) -> None:
        super().__init__()
        self.choice, self.backbone, self.generator = choice, backbone, generator
        self.finds = nn.Linear(backbone.embedding.weight.shape[1], 1)

    def stacks(self) -> dict[str, Backbone]:
        return {"main": self.backbone, "generator": self.generator.backbone}

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        return {"generator": self.generator.counts(batch, progress)["loss"], "discriminator": batch.tokens_BT.numel()}

    def weights(self, progress: Progress) -> dict[str, float]:
        return {"discriminator": 50.0}

    def forward(self, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        seen = self.generator.labelled(batch, progress)
        states_ND = self.generator.states(seen, batch, LayerPlan.full(1))
        nats, _ = self.generator.score(states_ND, seen.labels_N, seen.weight_N)
        with torch.no_grad():
            filled_BT = seen.tokens_BT.flatten().scatter(0, seen.index_N, self.generator.head(states_ND).argmax(-1))
        filled_BT = filled_BT.view_as(batch.tokens_BT)
        logits_BT: Tensor = self.finds(self.backbone(filled_BT, batch, plan))[..., 0]
        differs_BT = (filled_BT != batch.tokens_BT).float()
        found = F.binary_cross_entropy_with_logits(logits_BT, differs_BT, reduction="sum")
        return Loss({"generator": nats, "discriminator": found})


@pytest.fixture
def two(tiny: Recipe, build: Build) -> Callable[..., Training]:
    """``two(rows)`` -> a Training of both networks at step 0, cut into micro-batches of so many rows."""

    def made(rows: int | None = None) -> Training:
        recipe = tiny.with_(architecture={"dropout": 0.0}, execution={"micro_batch_size": rows})
        return build(recipe.model_copy(update={"objective": Replaced()}))

    return made


def weights(training: Training) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in training.model.parameters()]


def test_both_networks_learn_however_a_step_is_cut(two: Callable[..., Training]) -> None:
    whole, parts = two(), two(2)
    before = weights(whole)
    for _ in range(5):
        whole.step()
        parts.step()
    assert all(not torch.equal(old, new) for old, new in zip(before, weights(whole), strict=True))
    for one, other in zip(weights(whole), weights(parts), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


def test_hidden_matrices_of_both_networks_are_matrices_to_the_optimizer(two: Callable[..., Training]) -> None:
    groups = two().optimizer.param_groups
    names = [name for group in groups if group["role"] == "matrix" for name in group["names"]]
    assert any(name.startswith("backbone.blocks.") for name in names)
    assert any(name.startswith("generator.backbone.blocks.") for name in names)


def test_training_goes_on_from_a_checkpoint_bit_for_bit(two: Callable[..., Training]) -> None:
    whole, again = two(), two()
    for _ in range(3):
        whole.step()
    model, tied = checkpoint.model_tensors(whole.model)
    tensors, rest = checkpoint.optimizer_tensors(whole.optimizer)
    checkpoint.restore_model(again.model, {name: value.clone() for name, value in model.items()}, tied)
    checkpoint.restore_optimizer(again.optimizer, {name: value.clone() for name, value in tensors.items()}, rest)
    again.progress = whole.progress
    for training in (whole, again):
        for _ in range(3):
            training.step()
    assert all(map(torch.equal, weights(whole), weights(again)))
