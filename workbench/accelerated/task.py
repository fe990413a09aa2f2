"""The task that a session trains for ``workbench.accelerate``: the user's model, loader and loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from workbench.accelerated.baselines import unigram_baseline
from workbench.accelerated.batches import OwnBatch, OwnSteps, epoch_of, length_of
from workbench.accelerated.model import Look, LossFunction, OwnTraining, loss_of_model, quiet
from workbench.accelerated.stack import OwnBackbone
from workbench.base.errors import DataError
from workbench.choices.data.data import Say
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.engine import Engine
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder
from workbench.training.assemble import Assembled, build_optimizer
from workbench.training.batches import StepBatch, Steps, StepShape
from workbench.training.evaluate import DURING, REFERENCE_KEYS, Evaluation

NO_VOCABULARY = Vocabulary(0, 0, 0, 0, 0, 0, 0)
NO_HELDOUT = (
    "no held-out loss, since there are no held-out data: give a second loader, accelerate(model, loader, heldout)"
)
NO_BASELINES = (
    "the held-out loss is not one of predicted tokens as far as can be seen, so there are no baselines for it"
)


@dataclass
class OwnAssembled(Assembled):
    """The user's objects in training.

    Attributes:
        loader: of batches.
        seed: of the recipe.
        look: what a first pass told.
    """

    loader: Iterable[Any]
    seed: int
    look: Look

    def steps(self, position: Mapping[str, Any] | None = None) -> Steps:
        """See :class:`workbench.accelerated.batches.OwnSteps`."""
        return OwnSteps(self.loader, self.seed, position)

    def rehearsal(self, shape: StepShape) -> OwnBatch:
        """Return the first batch, cut to a micro-batch."""
        return self.look.batch.parts(shape.part_rows)[0]

    def flops(self, batch: StepBatch, plans: Sequence[LayerPlan], counts: Mapping[str, int]) -> float:
        """Return the FLOPs that the first pass counted, per token, as often as each layer's plan carries them out."""
        return batch.tokens * sum(map(self._flops_per_token, plans)) / len(plans)

    def _flops_per_token(self, plan: LayerPlan) -> float:
        first = plan.trains.index(True) if True in plan.trains else plan.layers
        total = 3 * self.look.rest_flops
        for layer, (runs, trains) in enumerate(zip(plan.runs, plan.trains, strict=True)):
            # Forward, gradient of the input, gradient of the weights.
            total += runs * (3 if trains else 2 if layer > first else 1) * self.look.layer_flops[layer]
        return total


class OwnTask:
    """A model, a loader and a loss of the user's; see :class:`workbench.training.task.Task`.

    Args:
        recipe: of the run; its model, data and loss stand for the objects here.
        model, loss: of the user.
        loader, heldout: of batches; without the second nothing is scored.
        layers: of the model's stack, or the model alone.
        look: what a first pass told.
    """

    def __init__(
        self,
        recipe: Recipe,
        model: nn.Module,
        loss: LossFunction,
        loader: Iterable[Any],
        heldout: Iterable[Any] | None,
        layers: Sequence[nn.Module],
        look: Look,
    ) -> None:
        self._recipe, self._model, self._loader, self._heldout, self._look = recipe, model, loader, heldout, look
        self.scored, self.note = heldout is not None, NO_HELDOUT if heldout is None else NO_BASELINES
        self.fingerprint: dict[str, Any] = recipe.to_dict()["data"]
        self.backbone = OwnBackbone(model, layers)
        self._training = OwnTraining(model, loss, self.backbone, recipe.objective)

    def prepare(self, folder: RunFolder, resume: bool, say: Say) -> None:
        """Nothing: the data are there."""

    def assemble(self, engine: Engine) -> OwnAssembled:
        """Return the model where it is trained, with its layers under a plan, and an optimizer."""
        # The model brings its own; none of ours is measured for it.
        engine.attentions = ("own",)
        engine.start()
        self._training.train()
        model = engine.place(self._training)
        if not self._look.problem:
            self.backbone.attach()
        architecture, self._engine = self._recipe.architecture, engine
        self._assembled = OwnAssembled(
            model, NO_VOCABULARY, 1, engine, architecture, self._recipe.depth.layers_at(architecture.layers, 0),
            build_optimizer(self._recipe, self._training, engine), self._loader, self._recipe.seed, self._look,
        )  # fmt: skip
        return self._assembled

    def references(self, say: Say) -> dict[str, Any]:
        """Return a score of its own kind; with the baseline of word frequencies where the model's own loss predicts
        tokens.
        """
        baseline = None
        if self._heldout is not None and self._training.loss is loss_of_model:
            baseline = unigram_baseline(self._model, self._loader, self._heldout, self._recipe.seed)
        if baseline is not None:
            self.note = ""
        return dict.fromkeys(REFERENCE_KEYS) | {
            "score": {"kind": "own-loss", "version": 1},
            "unigram_entropy": baseline,
        }

    def evaluate(self, recipe: Recipe, *, final: bool) -> Evaluation:
        """Return mean loss over the held-out loader, all layers that exist running;
        during training over an eighth of it.

        Raises:
            DataError: it gives no batch any more.
        """
        assert self._heldout is not None
        engine, loss, count, tokens = self._engine, 0.0, 0, 0
        batches = length_of(self._heldout)
        most = None if final or batches is None else max(1, batches // DURING)
        plan = LayerPlan.full(self._assembled.layers, recipe.architecture.layers)
        with ExitStack() as stack:
            for context in (quiet(self._model), torch.compiler.set_stance("force_eager"), engine.autocast()):
                stack.enter_context(context)
            # What a collator draws, masks for one, must be the same in every evaluation.
            stack.enter_context(torch.random.fork_rng(devices=[]))
            torch.manual_seed(recipe.seed)
            for index, content in enumerate(epoch_of(self._heldout, recipe.seed, 0)):
                if index == most:
                    break
                batch = OwnBatch.of(content)
                loss += float(self._training.mean_loss(batch.to(engine.device), plan)) * batch.count
                count, tokens = count + batch.count, tokens + batch.tokens
        if not count:
            raise DataError(
                "heldout: the loader gave batches before, and gives none now; give one that can be read again"
            )
        return Evaluation(loss / count, tokens, count, 0)

    def detach(self) -> None:
        """Leave the model as it was, but for its weights."""
        self.backbone.detach()
