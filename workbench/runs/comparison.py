"""Several runs side by side: what they achieved, and the knobs in which their recipes differ. No telemetry is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.floors import Yardstick, is_causal
from workbench.runs.catalogue.listing import columns_of, flat
from workbench.runs.catalogue.summary import name_of
from workbench.runs.folder import RunFolder, read_json, read_object
from workbench.runs.state import actual_status, read_state

# What each number is called, where it stands in a result, and which end of it is better (None: neither).
_NUMBERS: tuple[tuple[str, str, str | None], ...] = (
    ("held-out loss (nats)", "heldout_loss", "low"),
    ("training loss (nats)", "train_loss", "low"),
    ("held-out bits per byte", "bits_per_byte", "low"),
    ("word frequencies (nats)", "unigram_entropy", None),
    ("neighbours (nats)", "bigram_entropy", None),
    ("tokens/s", "tokens_per_second", "high"),
    ("MFU (%)", "mfu", "high"),
    ("steps", "steps", None),
    ("tokens", "tokens", None),
    ("seconds", "seconds", None),
    ("parameters", "parameters", None),
)
_SCORED = ("heldout_loss", "bits_per_byte")
# Free text of the user's: different in nearly all runs, and no reason for a difference.
_NO_KNOBS = ("name", "notes", "schema_version")


def compare(folders: Sequence[RunFolder]) -> dict[str, Any]:
    """What runs achieved and in what they differ, for a table with one column per run.

    Returns:
        ``runs``: ``[{"id", "name", "status"}]``; ``numbers``: ``[{"label", "values", "best"}]`` with one value per run
        (None where it has none) and the places of the best (empty where neither end is better, or only one run has
        it); ``knobs``: ``[{"path", "values"}]`` of those that differ.
    """
    yardsticks = [_yardstick(folder) for folder in folders]
    numbers = [_numbers(folder, yardstick) for folder, yardstick in zip(folders, yardsticks, strict=True)]
    # Losses of two scores have nothing to say to each other.
    apart = len({yardstick.score for yardstick in yardsticks}) > 1
    rows = []
    for label, key, better in _NUMBERS:
        values = [found.get(key) for found in numbers]
        if any(value is not None for value in values):
            best = _best(values, None if apart and key in _SCORED else better)
            rows.append({"label": label, "values": values, "best": best})
    names = [{"id": folder.id, "name": name_of(folder), "status": actual_status(folder)} for folder in folders]
    recipes = {folder.id: flat(read_json(folder.recipe, {})) for folder in folders}
    return {"runs": names, "numbers": rows, "knobs": differences(recipes)}


def differences(recipes: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """``[{"path", "values"}]`` of the knobs in which recipes differ."""
    differ = columns_of(recipes)["differ"]
    return [{"path": path, "values": values} for path, values in differ.items() if path not in _NO_KNOBS]


def _yardstick(folder: RunFolder) -> Yardstick:
    evaluations, environment = (read_object(path) for path in (folder.evaluations, folder.environment))
    return Yardstick.of(evaluations, environment, causal=is_causal(read_json(folder.recipe)))


def _numbers(folder: RunFolder, yardstick: Yardstick) -> dict[str, Any]:
    """The result of a run that has one; what its state says so far of any other."""
    evaluations = read_object(folder.evaluations)
    state, levels = read_state(folder), yardstick.levels
    so_far = {
        "steps": state.step,
        "tokens": state.tokens,
        "seconds": state.seconds,
        "tokens_per_second": state.tokens_per_second,
        "train_loss": state.loss,
        "heldout_loss": state.heldout_loss,
    }
    result = evaluations.get("result")
    # A resumed run has an older result beside newer numbers until it ends again.
    known = result if isinstance(result, dict) and state.status == "finished" else {}
    found = so_far | {key: value for key, value in known.items() if value is not None}
    found |= {"unigram_entropy": levels.get("word frequencies"), "bigram_entropy": levels.get("neighbours")}
    if isinstance(found.get("mfu"), float):
        found["mfu"] *= 100
    return {key: value for key, value in found.items() if isinstance(value, (int, float))}


def _best(values: Sequence[float | None], better: str | None) -> list[int]:
    known = [value for value in values if value is not None]
    if better is None or len(known) < 2 or len(set(known)) < 2:
        return []
    best = min(known) if better == "low" else max(known)
    return [place for place, value in enumerate(values) if value == best]
