"""Reference models: checkpoints of other runs that a run's tokens or documents are compared with."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workbench.base.errors import RunError
from workbench.choices.data.cache import cache_entry, key_of
from workbench.choices.data.data import Say
from workbench.choices.data.order import EpochPlan, RowOrder
from workbench.choices.data.tokens import PreparedData, TokenStore
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.engine import Engine
from workbench.choices.objectives.causal import next_tokens
from workbench.choices.objectives.reference import Reference
from workbench.recipes.recipe import Recipe
from workbench.store.checkpoints import identity_of
from workbench.store.find import find
from workbench.store.folder import RunFolder, read_object
from workbench.store.state import read_state
from workbench.training.restored import restore, saved_checkpoint

# Shape legend: B rows, T positions, D documents, N = B * T slots.

LOSSES_FILE = "losses.npy"
_SAY_SECONDS = 10.0
_SCORED_TOKENS = 8192
"""Tokens that a reference scores at once."""


def reference_folder(run: str, step: int | None, knob: str, beside: RunFolder) -> RunFolder:
    """Return the folder of the run that a knob names, in the runs folder of the run that asks.

    Raises:
        RunError: no such run, or it may still train and no step is named.
    """
    try:
        folder = find(run, beside.path.parent)
    except RunError as error:
        raise RunError(f"{knob}: {error}") from None
    # The newest checkpoint of a run that trains is another one at the next resume.
    if step is None and (status := read_state(folder).status) != "finished":
        raise RunError(
            f"{knob}: run '{folder.id}' is {status}, not finished: which checkpoint is meant? Name its step with "
            f"{knob.rpartition('.')[0]}.step"
        )
    return folder


def check_reference(
    folder: RunFolder, recipe: Recipe, prepared: PreparedData, longest: int, knob: str, *, causal: bool = True
) -> None:
    """Refuse a reference that reads other tokens, reads them in another way, or shorter rows.

    Args:
        recipe: of the reference.
        longest: tokens of the rows that it is to score.
        causal: whether it is to predict next tokens, or hidden ones from both sides.

    Raises:
        RunError: says which of them, and the way out.
    """
    data = read_object(folder.environment).get("data")
    theirs = data.get("tokenizer_sha256") if isinstance(data, dict) else None
    if theirs != prepared.fingerprint["tokenizer_sha256"]:
        raise RunError(
            f"{knob}: run '{folder.id}' was trained with another tokenizer, so its losses are of other tokens; train "
            "the reference on the same data and tokenizer, or point data.tokenizer to that run's tokenizer.json"
        )
    # One that reads a [MASK] from the place before it has no answer at the first of a row.
    if recipe.objective.causal != causal or recipe.objective.shifted:
        task, kind = ("the next token", "causal") if causal else ("a hidden token at its place", "masked")
        raise RunError(
            f"{knob}: run '{folder.id}' has objective '{recipe.objective.kind}', and a reference must predict {task}; "
            f"name a run with objective '{kind}'"
        )
    if recipe.data.longest < longest:
        raise RunError(
            f"{knob}: run '{folder.id}' was built for rows of {recipe.data.longest} tokens, and rows here have "
            f"{longest}; name a run with rows as long, or lower data.sequence_length"
        )


def load_reference(folder: RunFolder, step: int | None, device: torch.device) -> Reference:
    """Return a run's model, frozen, on a device.

    Raises:
        RunError: it has no such checkpoint, or its folder lacks what its trainer wrote.
        CheckpointError: the checkpoint is damaged.
    """
    engine = Engine(Recipe.load(folder.recipe), device)
    recipe, trained, _ = restore(folder, step, engine)
    model = trained.model.eval().requires_grad_(False)
    frozen = {"trains": (False,) * trained.layers, "embedding": False, "head": False}
    plan = LayerPlan.full(trained.layers, recipe.architecture.layers, **frozen)
    return Reference(model, plan, trained.architecture)


def with_reference(model: Any, recipe: Recipe, prepared: PreparedData, folder: RunFolder) -> None:
    """Give the model of a run the reference that its objective names, if it names one.

    Args:
        model: on its device.
        folder: of the run that trains.

    Raises:
        RunError, CheckpointError: there is no such checkpoint, or it cannot be compared with.
    """
    if recipe.objective.reference is None:
        return
    run, step = recipe.objective.reference
    found = reference_folder(run, step, "objective.run", folder)
    theirs, causal = Recipe.load(found.recipe), recipe.objective.causal
    check_reference(found, theirs, prepared, recipe.data.longest, "objective.run", causal=causal)
    model.reference = load_reference(found, step, next(model.parameters()).device)


def with_losses(
    recipe: Recipe, prepared: PreparedData, folder: RunFolder, device: torch.device, say: Say
) -> PreparedData:
    """Return prepared text with a reference's loss of each training document, where the order goes by it.

    Scored once for a checkpoint and a text, then read from the cache.

    Raises:
        RunError, CheckpointError: there is no such checkpoint, or it cannot score this text.
        DataError: the cache cannot be written.
    """
    if recipe.data.order.reference is None:
        return prepared
    run, step = recipe.data.order.reference
    found = reference_folder(run, step, "data.order.run", folder)
    theirs = Recipe.load(found.recipe)
    check_reference(found, theirs, prepared, 1, "data.order.run")
    made_from = {
        "checkpoint": identity_of(saved_checkpoint(found, step).path),
        "train": prepared.fingerprint["train"]["sha256"],
    }

    def build(aside: Path) -> dict[str, Any]:
        say(f"scoring {prepared.train.documents:,} documents with run {found.id}, once")
        reference = load_reference(found, step, device)
        losses_D = document_losses(reference, prepared.train, theirs.data.longest, say)
        np.save(aside / LOSSES_FILE, losses_D)
        return {"made_from": made_from, "mean": float(losses_D.mean())}

    entry, _ = cache_entry("losses", key_of(made_from), build, say)
    return replace(prepared, losses_D=np.load(entry / LOSSES_FILE))


@torch.no_grad()
def document_losses(reference: Reference, store: TokenStore, longest: int, say: Say) -> np.ndarray:
    """Return the mean nats per token of each document, (D,), float64; the mean of all where none was scored.

    Documents are read back to back in rows of ``longest`` tokens, as training reads them: a token sees what of its
    document stands before it in the row. The rest that fills no row is not scored.

    Args:
        longest: T of the reference, in tokens.
    """
    order = RowOrder(store, min(longest, store.tokens), 0, _as_stored)
    sums_D, counts_D = np.zeros(store.documents), np.zeros(store.documents)
    device = next(reference.model.parameters()).device
    rows, said = max(1, _SCORED_TOKENS // order.sequence_length), time.monotonic()
    for begin in range(0, order.rows, rows):
        samples = np.arange(begin, min(begin + rows, order.rows))
        batch = order.batch(samples)
        seen = next_tokens(batch)
        nats_N = reference.model.heldout(batch.to(device), seen.to(device), reference.plan).cpu().double().numpy()
        document_N = np.searchsorted(store.offsets_D1, order.places(samples).ravel(), side="right") - 1
        np.add.at(sums_D, document_N, nats_N)
        np.add.at(counts_D, document_N, seen.weight_N.numpy())
        if time.monotonic() - said > _SAY_SECONDS:
            said = time.monotonic()
            say(f"scoring documents: {begin / order.rows:.0%}")
    mean = sums_D.sum() / max(1.0, counts_D.sum())
    return np.where(counts_D > 0, sums_D / np.maximum(counts_D, 1), mean)


def _as_stored(store: TokenStore, sequence_length: int, seed: int, epoch: int) -> EpochPlan:
    return EpochPlan.of(store, np.arange(store.documents), np.arange(store.tokens // sequence_length))
