"""Checkpoints: whole or absent, verified before they are trusted, nothing in them that needs pickle.

``step-N.tmp`` -> tensors (safetensors) and ``state.json`` -> fsync -> ``manifest.json`` with the SHA-256 of every
file -> rename to ``step-N`` -> fsync the parent -> ``LATEST``. A kill at any point leaves the previous one whole.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from workbench.base.errors import FREE_SPACE
from workbench.base.files import sync_folder, usual_permissions
from workbench.store.checkpoints import FORMAT, MANIFEST, STATE, checkpoints, file_hash, problem_with, state_of

# For people and scripts: loading goes by the folders themselves, newest first.
LATEST = "LATEST"
# Of an optimizer's groups: how a step is carried out, which device and recipe decide anew.
_CARRIED_OUT = ("fused", "foreach", "capturable", "compile")


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be written (disk full) or used (damaged, other recipe); the message says what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """One verified checkpoint, its tensors in memory on the CPU.

    Attributes:
        meta: ``state.json``: progress, optimizer scalars, knob overrides, recipe hash.
        tensors: by file (``model``, ``optimizer``) and name.
        damaged: newer checkpoints that were passed over, each with the reason.
    """

    path: Path
    step: int
    meta: dict[str, Any]
    tensors: dict[str, dict[str, Tensor]]
    damaged: dict[Path, str] = field(default_factory=dict)


def save(folder: Path, step: int, tensors: Mapping[str, Mapping[str, Tensor]], meta: Mapping[str, Any]) -> Path:
    """Write ``folder/step-N`` whole or not at all; one that is there stays if it is good and no knob was turned since.

    Args:
        step: optimizer steps done; names the checkpoint.
        tensors: per file stem, tensors by name; none may share memory with another.

    Returns:
        The finished folder.

    Raises:
        CheckpointError: not twice the needed space is free, or the disk is full or read-only; earlier checkpoints
            are untouched.
    """
    final, aside, replaced = (folder / f"step-{step}{ending}" for ending in ("", ".tmp", ".replaced"))
    try:
        # Not its parents: a run whose folder was removed must not make a part of it reappear.
        folder.mkdir(exist_ok=True)
        remove_leftovers(folder)
        # While a run is paused its weights stay what they are, but knobs may be turned: these alone can differ.
        if final.exists() and problem_with(final) is None and state_of(final).get("overrides") == meta.get("overrides"):
            return final
        _check_space(folder, sum(tensor.nbytes for group in tensors.values() for tensor in group.values()))
        aside.mkdir()
        for stem, group in tensors.items():
            save_file(
                {name: tensor.detach().contiguous() for name, tensor in group.items()}, aside / f"{stem}.safetensors"
            )
        (aside / STATE).write_text(json.dumps({"format": FORMAT, "step": step, **meta}, indent=1), encoding="utf-8")
        usual_permissions(aside)
        # Of the files, not of the tensors in memory: what is verified later is what was written.
        hashes = {path.name: _sync_and_hash(path) for path in sorted(aside.iterdir())}
        (aside / MANIFEST).write_text(json.dumps({"format": FORMAT, "sha256": hashes}, indent=1), encoding="utf-8")
        _sync_and_hash(aside / MANIFEST)
        sync_folder(aside)
        if final.exists():
            final.rename(replaced)  # not deleted before the new one stands
        aside.rename(final)
        sync_folder(folder)
        shutil.rmtree(replaced, ignore_errors=True)
        _point_at(folder, final.name)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise CheckpointError(
            f"checkpoint of step {step} could not be written to {folder}: {error}; {FREE_SPACE}"
        ) from error
    return final


def remove_leftovers(folder: Path) -> None:
    """Clear away what a killed save left behind; only for whoever holds the run's lock."""
    for path in folder.glob("step-*.replaced"):
        final = path.with_suffix("")
        if final.exists():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.rename(final)  # killed between the two renames: the old one is all there is of this step
    for path in folder.glob("step-*.tmp"):
        shutil.rmtree(path, ignore_errors=True)
    (folder / f"{LATEST}.tmp").unlink(missing_ok=True)


def prune(folder: Path, keep: int = 2, spare: int | None = None) -> list[Path]:
    """Delete all but the newest ``keep`` checkpoints, and only if the newest of all is verified good.

    Args:
        spare: step of one that stays however old it is.

    Returns:
        What was deleted.
    """
    found = checkpoints(folder)
    if len(found) <= keep or problem_with(found[-1]) is not None:
        return []
    surplus = [path for path in found[:-keep] if path.name != f"step-{spare}"]
    for path in surplus:
        # The manifest goes first: a kill half-way leaves a folder that nothing takes for a checkpoint.
        (path / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)
    return surplus


def load_latest(folder: Path) -> Checkpoint | None:
    """Return the newest checkpoint that verifies; newer damaged ones are named in :attr:`Checkpoint.damaged`.

    Returns:
        None when there is no checkpoint at all.

    Raises:
        CheckpointError: there are checkpoints, and none of them is whole.
    """
    damaged: dict[Path, str] = {}
    for path in reversed(checkpoints(folder)):
        problem = problem_with(path)
        if problem is None:
            return replace(_read(path), damaged=damaged)
        damaged[path] = problem
    if damaged:
        listing = "; ".join(f"{path.name}: {problem}" for path, problem in damaged.items())
        raise CheckpointError(f"every checkpoint in {folder} is damaged ({listing}); start the recipe as a new run")
    return None


def load(path: Path) -> Checkpoint:
    """Read one checkpoint after verifying it.

    Raises:
        CheckpointError: missing, damaged, or written by a newer version.
    """
    if problem := problem_with(path):
        raise CheckpointError(f"checkpoint {path} cannot be used: {problem}")
    return _read(path)


def _read(path: Path) -> Checkpoint:
    meta = state_of(path)
    tensors = {file.stem: load_file(file) for file in sorted(path.glob("*.safetensors"))}
    return Checkpoint(path, int(meta["step"]), meta, tensors)


def set_aside(path: Path, why: str = "damaged") -> Path:
    """Rename a checkpoint to ``<name>.<why>``: kept for inspection, never taken for a checkpoint again."""
    target = path.with_name(f"{path.name}.{why}")
    shutil.rmtree(target, ignore_errors=True)
    return path.rename(target)


def all_finite(model: nn.Module) -> bool:
    """Return True if no weight is NaN or infinite; integers, which quantized models keep frozen, always are finite."""
    weights = [weight for weight in model.parameters() if weight.is_floating_point()]
    return all(map(torch.isfinite, torch._foreach_norm(cast("list[Tensor]", weights))))


def model_tensors(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, str]]:
    """State of a model with tied weights once.

    Returns:
        ``(tensors, tied)``: tensors by name, and for every further name of a tied tensor the name it is stored by.
    """
    first: dict[tuple[int, torch.Size, tuple[int, ...]], str] = {}
    tensors: dict[str, Tensor] = {}
    tied: dict[str, str] = {}
    for name, tensor in model.state_dict().items():
        # The address alone does not tell: a view of the first rows begins at the same one.
        key = (tensor.data_ptr(), tensor.shape, tensor.stride())
        if tensor.numel() and key in first:
            tied[name] = first[key]
        else:
            first[key] = name
            tensors[name] = tensor
    return tensors, tied


def restore_model(model: nn.Module, tensors: Mapping[str, Tensor], tied: Mapping[str, str]) -> None:
    """Inverse of :func:`model_tensors`; every name must fit.

    Raises:
        CheckpointError: the checkpoint is of another model.
    """
    try:
        model.load_state_dict({**tensors, **{alias: tensors[name] for alias, name in tied.items()}})
    except (RuntimeError, KeyError) as error:
        raise CheckpointError(f"the checkpoint does not fit this recipe's model: {error}") from error


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """State of an optimizer, flattened to ``<parameter name>/<key>``.

    Returns:
        ``(tensors, rest)``: the rest is JSON-able: ``scalars`` by the same names and the ``groups``' hyperparameters.
    """
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, Any] = {}
    for name, parameter, _ in _named(optimizer):
        for key, value in optimizer.state.get(parameter, {}).items():
            (tensors if isinstance(value, Tensor) else scalars)[f"{name}/{key}"] = value
    groups = [
        {key: _plain(value) for key, value in group.items() if key not in ("params", "names")}
        for group in optimizer.param_groups
    ]
    return tensors, {"scalars": scalars, "groups": groups}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], rest: Mapping[str, Any]) -> None:
    """Inverse of :func:`optimizer_tensors`, bit for bit (``load_state_dict`` would cast to the parameters' dtype).

    Raises:
        CheckpointError: the checkpoint names a parameter that this optimizer does not have.
    """
    where = {name: (parameter, group) for name, parameter, group in _named(optimizer)}
    # State of a parameter that the checkpoint does not have must not survive.
    optimizer.state.clear()
    # Moments for which the device has no room: all at once they would not fit now, either.
    on_host = getattr(optimizer, "on_host", ())
    for flat, value in [*tensors.items(), *rest["scalars"].items()]:
        # Parameter names have dots in them, state keys neither dots nor slashes.
        name, _, key = flat.rpartition("/")
        if name not in where:
            raise CheckpointError(f"the checkpoint's optimizer state names '{name}', which this recipe's model lacks")
        parameter, group = where[name]
        # Step counters stay on the CPU unless the step itself runs as one kernel on the device.
        moves = key not in on_host and (
            key.partition(":")[0] != "step" or group.get("fused") or group.get("capturable")
        )
        placed = value.to(parameter.device) if isinstance(value, Tensor) and moves else value
        optimizer.state[parameter][key] = placed
    for group, saved in zip(optimizer.param_groups, rest["groups"], strict=True):
        for key, value in saved.items():
            if key in _CARRIED_OUT:
                continue
            if isinstance(group.get(key), Tensor):
                # A tensor may be captured in a graph by its address: filled, never replaced.
                group[key].fill_(value)
            else:
                group[key] = tuple(value) if isinstance(group.get(key), tuple) else value


def _named(optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, Tensor, dict[str, Any]]]:
    for group in optimizer.param_groups:
        for name, parameter in zip(group["names"], group["params"], strict=True):
            yield name, parameter, group


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < 2 * needed:
        raise CheckpointError(
            f"a checkpoint needs {2 * needed / 2**20:.0f} MiB free in {folder} (twice its size), there are "
            f"{free / 2**20:.0f}; {FREE_SPACE}"
        )


def _sync_and_hash(path: Path) -> str:
    # For writing, because some systems refuse to sync what is open for reading only.
    with path.open("rb+") as file:
        os.fsync(file.fileno())
    return file_hash(path)


def _point_at(folder: Path, name: str) -> None:
    aside = folder / f"{LATEST}.tmp"
    aside.write_text(name + "\n", encoding="utf-8")
    _sync_and_hash(aside)
    aside.replace(folder / LATEST)
    sync_folder(folder)
