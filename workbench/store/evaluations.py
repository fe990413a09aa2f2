"""Scores of a run by step: ``evaluations.json`` of its trainer and ``scores.json`` of benchmarks, read as one.

Schema 2 holds ``points``: one object per evaluated step, with its ``scores`` by name. Schema 1 held ``heldout``, a list
of losses, and is read as if it were schema 2. Each file has one writer. Standard library only.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from workbench.base.errors import RunError
from workbench.base.json_lines import finite
from workbench.store.folder import RunFolder, read_object, write_json
from workbench.telemetry.quantities import scalar
from workbench.telemetry.streams import number

SCHEMA = 2
UNITS = {"accuracy": "share", "f1": "F1", "matthews": "correlation", "spearman": "correlation", "exact_match": "share"}
"""Units of the scores of tasks."""
HELDOUT_LOSS, BITS_PER_BYTE = "heldout_loss", "bits_per_byte"
SEEN_LOSS, UNSEEN_LOSS = "heldout_loss_seen", "heldout_loss_unseen"
PART_LOSS = "heldout_loss/"
"""Beginning of the score of a part of a mixture; its name follows."""
LAST_WEIGHTS_LOSS = "last_weights_loss"
LABELS = {
    SEEN_LOSS: "held-out loss, three tokens seen in training",
    UNSEEN_LOSS: "held-out loss, three tokens not seen in training",
    LAST_WEIGHTS_LOSS: "held-out loss of the last weights, not averaged",
}
"""Titles of scores whose names are not meant for people."""


@dataclass(frozen=True)
class Measured:
    """One score of a model.

    Attributes:
        value: in ``unit``; None where it could not be measured.
        unit: ``nats``, ``bits per byte``, ``share``, ``F1``, ...
        count: scored items (tokens, sentences, questions); 0 if unknown.
        better: which direction is better.
        beside: values that it is held against, by name: ``untrained``, ``chance``, ``majority``, ...
        note: how it was measured, in a sentence.
    """

    value: float | None
    unit: str
    count: int = 0
    better: Literal["lower", "higher"] = "lower"
    beside: dict[str, float] = field(default_factory=dict)
    note: str = ""

    @classmethod
    def read(cls, found: object) -> Measured | None:
        """Read a score as JSON has it; None for anything else."""
        if not isinstance(found, dict) or not isinstance(found.get("unit"), str):
            return None
        better: Literal["lower", "higher"] = "higher" if found.get("better") == "higher" else "lower"
        count, beside, note = found.get("count"), found.get("beside"), found.get("note")
        return cls(
            finite(number(found.get("value"))), found["unit"], count if isinstance(count, int) else 0, better,
            {name: value for name, each in beside.items() if (value := finite(number(each))) is not None}
            if isinstance(beside, dict) else {},
            note if isinstance(note, str) else "",
        )  # fmt: skip


def point_of(step: int, tokens: int, seconds: float, scores: Mapping[str, Measured], **more: Any) -> dict[str, Any]:
    """Return what a file keeps of one evaluation, JSON-able.

    Args:
        step, tokens, seconds: of training, when the model was scored.
        scores: by name. more: what else is to be kept.
    """
    measured = {name: asdict(score) for name, score in scores.items()}
    return {"step": step, "tokens": tokens, "seconds": round(seconds, 4), **more, "scores": measured}


def read_evaluations(folder: RunFolder) -> dict[str, Any]:
    """Read all scores of a run; damaged parts are left out.

    Returns:
        The objects of ``evaluations.json`` (``score``, baselines, ``result``), its ``points``, and as ``heldout`` the
        held-out losses of these points: ``[{"step", "tokens", "seconds", "loss", "bits_per_byte"}]``.

    Raises:
        RunError: a later version of the workbench wrote the file.
    """
    found = read_object(folder.evaluations)
    if number(found.get("schema")) > SCHEMA:
        raise RunError(
            f"'{folder.evaluations}' has schema {found['schema']}; this version reads schemas up to {SCHEMA}: "
            "open the run with the version that wrote it (environment.json names it)"
        )
    if "schema" in found:
        found["points"] = _objects(found.get("points"))
        found["heldout"] = [_heldout(point) for point in found["points"] if _is_heldout(point)]
    elif "heldout" in found:
        found["heldout"] = _objects(found["heldout"])
        found["points"] = [_upgraded(point) for point in found["heldout"]]
    if not isinstance(found.get("result"), dict):
        found.pop("result", None)
    return found


def scores_by_step(folder: RunFolder, evaluations: Mapping[str, Any] | None = None) -> dict[int, dict[str, Measured]]:
    """Return every score of a run by step and name, those of benchmarks included, in the order of the steps.

    Args:
        evaluations: as :func:`read_evaluations` gave them, where they were read already.
    """
    own = read_evaluations(folder) if evaluations is None else evaluations
    found: dict[int, dict[str, Measured]] = {}
    for point in (*own.get("points", ()), *_objects(read_object(folder.scores).get("points"))):
        scores = point.get("scores")
        if isinstance(point.get("step"), int) and isinstance(scores, dict):
            read = {str(name): Measured.read(score) for name, score in scores.items()}
            found.setdefault(point["step"], {}).update({name: score for name, score in read.items() if score})
    return dict(sorted(found.items()))


def benchmark_scores(scores: Mapping[int, Mapping[str, Measured]]) -> dict[str, tuple[int, Measured]]:
    """Return the scores beside held-out loss and bits per byte by name, each with the last step that was measured."""
    latest = {name: (step, score) for step, named in scores.items() for name, score in named.items()}
    return {name: found for name, found in latest.items() if name not in (HELDOUT_LOSS, BITS_PER_BYTE)}


def is_part(name: str) -> bool:
    """Return True for a score of a part of a benchmark, such as ``blimp/npi_licensing``: shown below its whole."""
    return "/" in name


def score_label(name: str, score: Measured) -> str:
    """Return the title of a score with its unit, as tables head its row; one without a title goes by its name."""
    title = LABELS.get(name) or scalar(name).title
    return f"{title} ({score.unit})"


def add_scores(folder: RunFolder, step: int, tokens: int, seconds: float, scores: Mapping[str, Measured]) -> None:
    """Write scores of a benchmark into the run; those of the same names at this step are replaced.

    Args:
        step, tokens, seconds: of the checkpoint that was scored.

    Raises:
        OSError: the disk is full; the file is as it was.
    """
    descriptor = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Two benchmarks may end at the same moment; the trainer writes another file.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        points = _objects(read_object(folder.scores).get("points"))
        before = next((point for point in points if point.get("step") == step), {})
        point = point_of(step, tokens, seconds, scores)
        kept = before.get("scores")
        point["scores"] = (kept if isinstance(kept, dict) else {}) | point["scores"]
        others = [each for each in points if each is not before]
        points = sorted([*others, point], key=lambda each: number(each.get("step")))
        write_json(folder.scores, {"schema": SCHEMA, "points": points})
    finally:
        os.close(descriptor)


def _objects(found: object) -> list[dict[str, Any]]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _is_heldout(point: Mapping[str, Any]) -> bool:
    return isinstance(point.get("scores"), dict) and HELDOUT_LOSS in point["scores"]


def _heldout(point: Mapping[str, Any]) -> dict[str, Any]:
    loss, bits = (Measured.read(point["scores"].get(name)) for name in (HELDOUT_LOSS, BITS_PER_BYTE))
    rest = {key: value for key, value in point.items() if key != "scores"}
    return rest | {"loss": loss and loss.value, "bits_per_byte": bits and bits.value}


def _upgraded(point: Mapping[str, Any]) -> dict[str, Any]:
    count = point.get("evaluated_tokens")
    count = count if isinstance(count, int) else 0
    scores = {HELDOUT_LOSS: Measured(finite(number(point.get("loss"))), "nats", count)}
    if point.get("bits_per_byte") is not None:
        scores[BITS_PER_BYTE] = Measured(finite(number(point["bits_per_byte"])), "bits per byte", count)
    rest = {key: value for key, value in point.items() if key not in ("loss", BITS_PER_BYTE)}
    return rest | {"scores": {name: asdict(score) for name, score in scores.items()}}
