"""Begin an attempt of a run: each step takes what the one before it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.choices.execution.engine import Engine
from workbench.choices.execution.ranks import Ranks
from workbench.recipes.recipe import Recipe
from workbench.recipes.recipe_hash import recipe_hash
from workbench.store.evaluations import SCHEMA, read_evaluations
from workbench.store.folder import RunFolder, read_json, read_object, write_json
from workbench.store.state import read_state
from workbench.telemetry.streams import TelemetryWriter
from workbench.training import checkpoint, machine
from workbench.training.assemble import Assembled
from workbench.training.averaging import average_of
from workbench.training.evaluate import alike, points_until
from workbench.training.forks import as_forked, check_data
from workbench.training.growth import enter
from workbench.training.knob_overrides import KnobOverrides
from workbench.training.measurements import counted_from_now, held_gib
from workbench.training.restored import begin_with, resumed_checkpoint
from workbench.training.status import Status
from workbench.training.task import Task, task_of


@dataclass(frozen=True)
class Start:
    """Hold what is known of an attempt before anything is prepared.

    Attributes:
        folder: of the run.
        status: is told what is done.
        resume: whether an earlier attempt goes on.
        launched: the recipe of the run.
        recipe_hash: of the file as it is: the recipe read from it also has fields that came after the run began.
        task: what to train.
    """

    folder: RunFolder
    status: Status
    resume: bool
    launched: Recipe
    recipe_hash: str
    task: Task

    @classmethod
    def of(cls, folder: RunFolder, status: Status, resume: bool, task: Task | None) -> Start:
        """Return the start of the run in a folder; without a task, of the one that its recipe describes."""
        launched = Recipe.load(folder.recipe)
        hash_ = recipe_hash(read_object(folder.recipe))
        return cls(folder, status, resume, launched, hash_, task or task_of(launched))

    def engine(self, ranks: Ranks) -> tuple[Engine, float]:
        """Prepare the data; return the engine, measured, and the GiB that its device held before the run."""
        self.status.stage("preparing data")
        self.task.prepare(self.folder, self.resume, self.status.prepare)
        begun = read_json(self.folder.environment) if self.resume else None
        if isinstance(begun, dict):
            check_data(self.folder.id, begun.get("data"), self.task.fingerprint)
        engine = self.launched.engine()
        engine = (engine.resume(begun) if isinstance(begun, dict) else engine).calibrated(self.status.prepare)
        engine.join(ranks)
        held_before = held_gib(engine.device)
        engine.measure(self.status.stage)
        return engine, held_before

    def assemble(self, engine: Engine) -> tuple[Assembled, dict[str, Any]]:
        """Return model, optimizer and batches at step 0, and what its held-out losses are compared with."""
        self.status.stage("building the model")
        assembled = self.task.assemble(engine)
        references = self.task.references(self.status.prepare)
        begin_with(self.folder, assembled.model, self.task.fingerprint)
        return assembled, references

    def restore(
        self, assembled: Assembled, writer: TelemetryWriter
    ) -> tuple[checkpoint.Checkpoint | None, KnobOverrides]:
        """Take over weights and optimizer of the checkpoint that a resume goes on from; return it and its knobs."""
        if not self.resume:
            return None, KnobOverrides()
        self.status.stage("reading the last checkpoint")
        if (saved := resumed_checkpoint(self.folder, writer)) is None:
            return None, KnobOverrides()
        saved = as_forked(self.folder, saved, self.launched, self.task.fingerprint, writer)
        if saved.meta["recipe_hash"] not in (self.recipe_hash, self.launched.hash):
            raise checkpoint.CheckpointError(
                f"checkpoint {saved.path.name} was made by recipe {saved.meta['recipe_hash']}, recipe.json now is "
                f"{self.recipe_hash}; restore recipe.json, or launch the new recipe as a run of its own"
            )
        # Checkpoints from before there were stages are of models that never grow.
        enter(self.launched, assembled, saved.meta.get("growth", {}).get("stage", 0))
        checkpoint.restore_model(assembled.model, saved.tensors["model"], saved.meta["tied"])
        if saved.meta["optimizer"] is not None:
            checkpoint.restore_optimizer(assembled.optimizer, saved.tensors["optimizer"], saved.meta["optimizer"])
        overrides = KnobOverrides.of(saved.meta, back_to=read_state(self.folder).resume_step)
        assembled.average |= average_of(saved, assembled.engine.device)
        saved.tensors.clear()  # a second copy would not be free when it is settled what fits
        # From here on it is the newest.
        self.status.write(resume_step=None)
        return saved, overrides

    def describe(self, assembled: Assembled, references: dict[str, Any], held_before: float) -> dict[str, Any]:
        """Write ``environment.json`` and return it."""
        engine = assembled.engine
        environment = machine.environment(engine) | {
            "data": self.task.fingerprint,
            "parameters": assembled.parameters,
            **references,
            "compile_seconds": None,
            **counted_from_now(engine.device, held_before),
        }
        write_json(self.folder.environment, environment)
        self.status.write(device=", ".join(filter(None, (environment["device"], str(engine.ranks)))))
        return environment

    def rewind(self, step: int, references: dict[str, Any], writer: TelemetryWriter) -> dict[str, Any]:
        """Drop what an earlier attempt recorded of steps that this one takes again; return the evaluations."""
        found = read_evaluations(self.folder)
        points = points_until(found.get("points"), step) if step else []
        writer.rewind(step)
        # Of a run that began before the score was changed: two scores on one curve would look like learning.
        if points and not alike(found.get("score"), references["score"]):
            points = []
            writer.event(step, "warning", "held-out losses of before were scored otherwise and are left out")
        evaluations = {"schema": SCHEMA, **references, "points": points, "result": None}
        write_json(self.folder.evaluations, evaluations)
        return evaluations
