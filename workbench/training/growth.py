"""Growth: what happens to model and optimizer when a stage of the depth method begins.

Which stage is in force is a function of the progress; which one the model *is in* stands in :class:`Assembled` and in
every checkpoint. A transition is carried out when the first lags behind the second, before the step that needs it: a
run resumed exactly at a boundary neither repeats nor skips one.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch

from workbench.choices.architectures.architecture import Architecture, shared_names
from workbench.choices.depth.plan import LayerPlan, Transition
from workbench.choices.objectives.objective import TrainingModel
from workbench.choices.progress import Progress
from workbench.recipes.recipe import Recipe
from workbench.telemetry.streams import TelemetryWriter
from workbench.training.assemble import Assembled, build_model, build_optimizer
from workbench.training.stage_event import StageShape, stage_event
from workbench.training.widening import copy_state, widen


class Growth:
    """Keeps model and optimizer of a run in step with the stages of its depth method.

    Args:
        writer: where events of kind ``stage`` go.
        saved: what :meth:`state` gave when a checkpoint was made; None at the beginning of a run.
    """

    def __init__(
        self, assembled: Assembled, writer: TelemetryWriter | None = None, saved: dict[str, Any] | None = None
    ) -> None:
        self.assembled, self._writer = assembled, writer
        # Of the last event, so that a resumed run does not repeat it and a change that is due is not lost.
        self._announced = StageShape.restored(saved["shape"]) if saved else None
        self._outside: tuple[TrainingModel, bool, bool] | None = None
        self._ready: dict[int, TrainingModel] = {}
        assembled.phase = saved.get("phase", 0) if saved else 0

    def advance(self, recipe: Recipe, progress: Progress) -> bool:
        """Carry out every transition that is due before the coming step, and announce what changed.

        Returns:
            Whether model or optimizer is another object now.
        """
        assembled, layers = self.assembled, recipe.architecture.layers
        due, before = recipe.depth.stage(layers, progress), (assembled.model, assembled.optimizer)
        transition: Transition | None = None
        # One by one: a long step may pass two boundaries at once, and each copies from what the one before made.
        while assembled.stage < due:
            transition = recipe.depth.transition(layers, assembled.stage + 1)
            self._begin(recipe, assembled.stage + 1, transition)
        self._enter_phase(recipe, progress)
        plan = recipe.depth.plan(layers, progress, recipe.seed)
        shape = StageShape.of(assembled, plan)
        if transition is not None or shape != self._announced:
            self._announce(recipe, progress, plan, transition, shape)
            self._announced = shape
        return (assembled.model, assembled.optimizer) != before

    def follow(self, plan: LayerPlan, model: TrainingModel | None = None) -> None:
        """Before a forward pass: switch gradients of everything outside the blocks to what ``plan`` says.

        The blocks are the backbone's own business (``Stack.freeze``). While nothing changes this costs a comparison.

        Args:
            model: that is about to run; None for the run's own.
        """
        wanted = (model or self.assembled.model, plan.embedding, plan.head)
        if wanted != self._outside:
            wanted[0].freeze_outside(plan)
            self._outside = wanted

    def model_of(self, recipe: Recipe, stage: int) -> TrainingModel:
        """Return the model of a later stage, made ahead where it is another one, so that its graphs can be compiled."""
        if _architecture(recipe, stage) == self.assembled.architecture:
            return self.assembled.model
        if stage not in self._ready:
            self._ready[stage] = _build(recipe, self.assembled, stage)
        return self._ready[stage]

    def state(self) -> dict[str, Any]:
        """JSON-able: for a checkpoint."""
        shape = asdict(self._announced) if self._announced else None
        return {"stage": self.assembled.stage, "phase": self.assembled.phase, "shape": shape}

    def _enter_phase(self, recipe: Recipe, progress: Progress) -> None:
        """Go on in the phase of the objective that is due, with a fresh optimizer where it says so."""
        phase, assembled = recipe.objective.phase(progress), self.assembled
        if phase == assembled.phase:
            return
        assembled.phase = phase
        if recipe.objective.renews_optimizer:
            assembled.engine.settle(everywhere=True)
            assembled.optimizer = build_optimizer(recipe, assembled.model, assembled.engine)
        if self._writer is not None:
            self._writer.event(progress.step, "phase", recipe.objective.announced(phase), phase=phase + 1)

    def _begin(self, recipe: Recipe, stage: int, transition: Transition) -> None:
        assembled = self.assembled
        # Of weights that stood in another model.
        assembled.average.clear()
        assembled.engine.settle(everywhere=True)
        if _architecture(recipe, stage) != assembled.architecture:
            wide = self._ready.pop(stage, None) or _build(recipe, assembled, stage)
            places = widen(assembled.model, wide, recipe.seed)
            optimizer = build_optimizer(recipe, wide, assembled.engine)
            if transition.state == "copy":
                copy_state(assembled.optimizer, optimizer, places)
            # Made ahead, perhaps, and a knob turned since.
            wide.choice = recipe.objective
            assembled.model, assembled.optimizer = wide, optimizer
        else:
            add_layers(assembled, transition)
            if transition.state == "reset":
                # Built anew rather than emptied: whatever the optimizer keeps beside its state starts afresh, too.
                assembled.optimizer = build_optimizer(recipe, assembled.model, assembled.engine)
        settle_in(recipe, assembled, stage)

    def _announce(
        self, recipe: Recipe, progress: Progress, plan: LayerPlan, transition: Transition | None, shape: StageShape
    ) -> None:
        stages = len(recipe.depth.starts())
        # A run at full depth from beginning to end has nothing to announce.
        if self._writer is None or (self._announced is None and stages == 1 and all(plan.trains)):
            return
        text, data = stage_event(plan, transition, stages, self._announced, shape)
        self._writer.event(progress.step, "stage", text, **data)


def enter(recipe: Recipe, assembled: Assembled, stage: int) -> None:
    """Give ``assembled`` the form of ``stage``, with fresh weights, before a checkpoint of that stage is loaded."""
    if _architecture(recipe, stage) != assembled.architecture:
        assembled.model = _build(recipe, assembled, stage)
        assembled.optimizer = build_optimizer(recipe, assembled.model, assembled.engine)
    settle_in(recipe, assembled, stage)


def settle_in(recipe: Recipe, assembled: Assembled, stage: int) -> None:
    """Write down which stage the model is in, how many layers exist, and what architecture it has."""
    assembled.stage = stage
    assembled.layers = recipe.depth.layers_at(recipe.architecture.layers, stage)
    assembled.architecture = _architecture(recipe, stage)


@torch.no_grad()
def add_layers(assembled: Assembled, transition: Transition) -> None:
    """Give the layers that appear their weights and their optimizer state; all other layers stay bit for bit.

    Args:
        transition: which appear, and what they are made of.
    """
    main = assembled.model.stacks()["main"]
    blocks = main.blocks
    for layer, source in enumerate(transition.sources, transition.first):
        if source is not None:
            new, old = blocks[layer], blocks[source]
            # By name, since layers of one model may differ; what the source lacks keeps its fresh value.
            shared = shared_names(old, new)
            theirs, ours = old.state_dict(), new.state_dict()
            for name in shared:
                # In place: optimizer groups and compiled graphs know the tensors.
                ours[name].copy_(theirs[name])
            if transition.state == "copy":
                weights, sources = dict(new.named_parameters()), dict(old.named_parameters())
                places = [(weights[name], sources[name], None) for name in shared if name in weights]
                copy_state(assembled.optimizer, assembled.optimizer, places)
        if transition.silent:
            for product in main.residual_products(layer):
                for parameter in product.parameters():
                    parameter.zero_()


def _architecture(recipe: Recipe, stage: int) -> Architecture:
    architecture: Architecture = recipe.depth.architecture_at(recipe.architecture, stage)
    return architecture


def _build(recipe: Recipe, assembled: Assembled, stage: int) -> TrainingModel:
    model = build_model(recipe, _architecture(recipe, stage), assembled.vocabulary, assembled.engine)
    model.reference = assembled.model.reference
    return model
