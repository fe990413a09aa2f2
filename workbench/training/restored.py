"""The model of a saved run, from its folder alone: the text that it trained on may be gone."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

from workbench.base.errors import RunError
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.execution.engine import Engine
from workbench.choices.objectives.fine_tuning import FineTuning
from workbench.choices.objectives.objective import TrainingModel
from workbench.recipes.recipe import Recipe
from workbench.store.checkpoints import MANIFEST
from workbench.store.folder import RunFolder, read_object
from workbench.store.state import FINAL, actual_status, read_state
from workbench.telemetry.streams import TelemetryWriter
from workbench.training import checkpoint
from workbench.training.assemble import TrainedModel, build_model
from workbench.training.averaging import scored_weights
from workbench.training.forks import check_data


def say(line: str) -> None:
    """Tell whoever waits for a saved run; stdout is for the answer."""
    print(line, file=sys.stderr)


def saved_checkpoint(folder: RunFolder, step: int | None = None) -> checkpoint.Checkpoint:
    """Return a checkpoint of a run: that of ``step``, or the newest good one; damaged newer ones are named on stderr.

    Raises:
        RunError: the run has no such checkpoint.
        CheckpointError: the checkpoint is damaged.
    """
    have = checkpoint.checkpoints(folder.checkpoints)
    if not have:
        if actual_status(folder, read_state(folder)) in FINAL:
            raise RunError(f"run '{folder.id}' left no checkpoint: there is no model of it")
        raise RunError(f"run '{folder.id}' has no checkpoint yet; ask for one with `workbench checkpoint {folder.id}`")
    if step is None:
        saved = checkpoint.load_latest(folder.checkpoints)
        assert saved is not None
        for path, problem in saved.damaged.items():
            say(f"warning: checkpoint {path.name} is damaged ({problem}); using the older {saved.path.name} instead")
    else:
        path = folder.checkpoints / f"step-{step}"
        if path not in have:
            names = ", ".join(p.name.removeprefix("step-") for p in have)
            raise RunError(f"run '{folder.id}' has no checkpoint of step {step}; it has those of {names}")
        saved = checkpoint.load(path)
    return saved


def take_weights(model: nn.Module, path: Path) -> None:
    """Put the weights of a checkpoint into a model that has not trained yet.

    Raises:
        CheckpointError: it is damaged, or of another model.
    """
    saved = checkpoint.load(path)
    checkpoint.restore_model(model, scored_weights(saved), saved.meta["tied"])


def take_encoder(model: TrainingModel, path: Path) -> None:
    """Put the backbone of a checkpoint into a model with another head.

    Raises:
        CheckpointError: it is damaged, or of another backbone.
    """
    saved, prefix = checkpoint.load(path), "backbone."
    whole = scored_weights(saved)
    whole |= {alias: whole[name] for alias, name in saved.meta["tied"].items() if name in whole}
    tensors = {name.removeprefix(prefix): tensor for name, tensor in whole.items() if name.startswith(prefix)}
    own = model.backbone.state_dict()
    # What the main network of two reads is a sum of tables (objectives/two_networks.py, Disentangled).
    if (difference := tensors.pop("embedding.difference", None)) is not None:
        tensors["embedding.weight"] = tensors["embedding.weight"] + difference
    # Notes are for pre-training alone.
    tensors = {name: tensor for name, tensor in tensors.items() if name in own or not name.startswith("notebook.")}
    # Tables with a row per position: longer rows than the encoder's keep their own for what lies behind.
    for name, tensor in own.items():
        theirs = tensors.get(name)
        if theirs is not None and theirs.shape[1:] == tensor.shape[1:] and len(theirs) < len(tensor):
            tensors[name] = torch.cat([theirs.to(tensor), tensor[len(theirs) :]])
    checkpoint.restore_model(model.backbone, tensors, {})


def begin_with(folder: RunFolder, model: TrainingModel, fingerprint: dict[str, Any]) -> None:
    """Put the weights that a run begins with into its model; without any, those that its seed has drawn stay.

    A run that fine-tunes takes the backbone alone, where the folder has one: an untrained twin begins with none.

    Args:
        fingerprint: of the data at hand.

    Raises:
        CheckpointError: they are damaged, of another model, or were trained on other tokens.
    """
    if isinstance(model.choice, FineTuning):
        if (folder.initial / MANIFEST).is_file():
            take_encoder(model, folder.initial)
    elif folder.initial.is_dir():
        origin = read_object(folder.initial / "origin.json")
        check_data(str(origin.get("run")), origin.get("data"), fingerprint)
        take_weights(model, folder.initial)


def resumed_checkpoint(folder: RunFolder, writer: TelemetryWriter) -> checkpoint.Checkpoint | None:
    """Return the checkpoint that a resume goes on from, and none newer is left: those are set aside, aloud.

    Args:
        writer: gets the events.
    """
    back_to = read_state(folder).resume_step
    have = checkpoint.checkpoints(folder.checkpoints)
    before = next((place for place, path in enumerate(have, 1) if path.name == f"step-{back_to}"), len(have))
    for path in have[before:]:
        aside = checkpoint.set_aside(path, "failed")
        writer.event(back_to or 0, "warning", f"checkpoint {path.name} led to the failure, kept as {aside.name}")
    saved = checkpoint.load_latest(folder.checkpoints)
    if saved is None:
        return None
    # Renamed: as the newest of all, a damaged one would keep prune() from deleting anything.
    for path, problem in saved.damaged.items():
        aside = checkpoint.set_aside(path)
        text = f"checkpoint {path.name} is damaged ({problem}), kept as {aside.name}; resuming from {saved.path.name}"
        writer.event(saved.step, "warning", text)
    return saved


def restore(
    folder: RunFolder, step: int | None = None, engine: Engine | None = None
) -> tuple[Recipe, TrainedModel, checkpoint.Checkpoint]:
    """Return a saved run's recipe and model, in the stage that its checkpoint is from.

    Args:
        step: which checkpoint; None for the newest good one.
        engine: that will carry the model out; None for the plainest, which runs everywhere.

    Raises:
        RecipeError: the model was an object of the user's, and is in no recipe.
        RunError: no such run, it has no such checkpoint, or its folder lacks what its trainer wrote when it began.
        CheckpointError: the checkpoint is damaged, or of another model.
    """
    recipe = Recipe.load(folder.recipe)
    recipe.check_whole(folder.id)
    saved = saved_checkpoint(folder, step)
    engine = engine or Engine(recipe, torch.device("cpu"))
    vocabulary, stage = _vocabulary(folder), saved.meta.get("growth", {}).get("stage", 0)
    architecture = recipe.depth.architecture_at(recipe.architecture, stage)
    model = build_model(recipe, architecture, vocabulary, engine)
    checkpoint.restore_model(model, scored_weights(saved), saved.meta["tied"])
    layers = recipe.depth.layers_at(recipe.architecture.layers, stage)
    trained = TrainedModel(model, vocabulary, recipe.data.longest, engine, architecture, layers)
    return recipe, trained, saved


def _vocabulary(folder: RunFolder) -> Vocabulary:
    if (vocabulary := vocabulary_in(read_object(folder.environment).get("data"))) is not None:
        return vocabulary
    raise RunError(f"'{folder.environment}' does not say with which vocabulary the run trained; resume the run once")


def vocabulary_in(data: object) -> Vocabulary | None:
    """Return the vocabulary of a data fingerprint; None where it holds none that makes sense."""
    ids = data.get("vocabulary") if isinstance(data, dict) else None
    names = {field.name for field in fields(Vocabulary)} - {"pieces"}
    if isinstance(ids, dict) and ids.keys() == names and all(type(number) is int for number in ids.values()):
        vocabulary = Vocabulary(**ids)
        if min(ids.values()) >= 0 and max(*vocabulary.special, vocabulary.unk) < vocabulary.used <= vocabulary.size:
            return vocabulary
    return None
