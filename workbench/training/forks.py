"""The trainer's side of a fork: the checkpoint of another run, read as if it were this run's own.

``origin.json`` says which checkpoint that is, what was changed, and which state is not taken over; what may be changed
was decided before the launch (:func:`workbench.recipes.changes.fork`). From the first checkpoint of its own on, a fork
is resumed like any run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.base.json_lines import finite, number
from workbench.choices.execution.optimizer_states import whole_moments
from workbench.recipes.recipe import Recipe
from workbench.store.checkpoints import identity_of
from workbench.store.folder import RunFolder, read_object
from workbench.telemetry.streams import TelemetryWriter
from workbench.training.checkpoint import Checkpoint, CheckpointError


def as_forked(
    folder: RunFolder, saved: Checkpoint, recipe: Recipe, fingerprint: dict[str, Any], writer: TelemetryWriter
) -> Checkpoint:
    """Return a checkpoint as this run goes on from it: unchanged, unless it is the one that the run was forked from.

    Args:
        writer: gets the event of the fork.

    Returns:
        A checkpoint whose ``meta`` is of this run; ``meta["optimizer"]`` is None when its state is not taken over.

    Raises:
        CheckpointError: the data are not those that the checkpoint was trained on, or ``origin.json`` is damaged.
    """
    origin = read_object(folder.origin)
    # By its content: a run that was paused before its first step saves one of its own under the same step.
    if origin.get("checkpoint") != identity_of(saved.path):
        return saved
    diff, fresh, overrides = (origin.get(key) for key in ("diff", "fresh", "overrides"))
    if not (isinstance(diff, dict) and isinstance(fresh, list) and isinstance(overrides, dict)) or not all(
        isinstance(pair, list) and len(pair) == 2 for pair in diff.values()
    ):
        raise CheckpointError(f"'{folder.origin}' is damaged: it does not say what was changed; fork the run again")
    check_data(str(origin.get("run")), origin.get("data"), fingerprint)
    meta = saved.meta | {"recipe_hash": recipe.hash, "overrides": overrides, "change": None}
    if fresh:
        meta |= {"optimizer": None}
    # The other rule's count of rows means nothing to this one.
    if "data.batch_rule.kind" in diff:
        meta |= {"batch": None}
    if "execution.kind" in diff:
        meta |= {"engine": None}
    changed = ", ".join(f"{path} {before} -> {after}" for path, (before, after) in diff.items() if path != "name")
    text = f"forked from {origin.get('run')} at step {saved.step}: {changed or 'nothing changed'}" + (
        f"; the optimizer begins without state, since {', '.join(map(str, fresh))} changed" if fresh else ""
    )
    writer.event(saved.step, "fork", text, run=origin.get("run"), diff=diff, fresh=fresh)
    # Whatever form this run stores moments in, it reads whole ones.
    tensors = saved.tensors | {"optimizer": whole_moments(saved.tensors.get("optimizer", {}))}
    return replace(saved, meta=meta, tensors=tensors)


def done_before(folder: RunFolder) -> dict[str, float]:
    """Return ``tokens``, ``seconds`` and ``useful_flops`` of the run that a fork goes on from,
    which its own speed leaves out.

    Returns:
        Zeros for a run that is no fork, and where an earlier version did not say.
    """
    origin = read_object(folder.origin)
    return {name: finite(number(origin.get(name))) or 0.0 for name in ("tokens", "seconds", "useful_flops")}


def data_identity(fingerprint: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a data fingerprint that decides which tokens stand where: hashes of tokenizer and splits."""
    parts = {split: fingerprint.get(split) for split in ("train", "heldout")}
    splits = {split: part.get("sha256") if isinstance(part, dict) else None for split, part in parts.items()}
    return splits | {"tokenizer": fingerprint.get("tokenizer_sha256")}


def check_data(run: str, before: object, fingerprint: dict[str, Any]) -> None:
    """Refuse a checkpoint of other tokens than those at hand: every id might mean another word.

    Args:
        before: fingerprint of its data; anything but an object is taken as unknown.

    Raises:
        CheckpointError: tokenizer or tokens differ.
    """
    # A run from before fingerprints, or one whose folder lost its environment.
    if not isinstance(before, dict):
        return
    if differing := [
        part for part, value in data_identity(before).items() if value != data_identity(fingerprint)[part]
    ]:
        raise CheckpointError(
            f"the data have changed since run {run} was trained ({', '.join(differing)} differ), or the version of "
            "workbench that prepares them: the checkpoint's vocabulary and place in them would mean something else; "
            "restore the files, or launch the recipe as a run of its own"
        )
