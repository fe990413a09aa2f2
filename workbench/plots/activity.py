"""Layer activity as numbers: stages and their boundaries, columns that stand for records, work done and saved. Pure.

Shape legend: L layers of the finished model, K columns (telemetry records).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.telemetry.quantities import LAYER_STATES, STATES
from workbench.telemetry.streams import data_of, number

RUNNING, DROPPED, FROZEN, ABSENT, GROWN, COPIED = range(len(STATES))
_LONGEST_LABEL = 24


@dataclass(frozen=True)
class Stage:
    """A stage of a method that grows or freezes layers.

    Attributes:
        step: optimizer steps taken before it.
        text: what the run said about it.
        number: of the stage, where there are several; empty otherwise.
        label: a few words for the boundary, "stage 2 of 4".
        copies: layer -> the layer it was copied from, both counted from 1.
    """

    step: int
    text: str
    number: str = ""
    label: str = ""
    copies: dict[int, int] = field(default_factory=dict)


def stages(events: Iterable[dict[str, Any]]) -> list[Stage]:
    """Return the stages that a run announced, in order.

    Example:
        >>> data = {"stage": 2, "stages": 2, "copies": [[3, 1], [4, 2]]}
        >>> (stage,) = stages([{"kind": "stage", "step": 9, "text": "stage 2 of 2: ...", "data": data}])
        >>> stage.label, stage.copies
        ('stage 2 of 2', {3: 1, 4: 2})
    """
    return [_stage(event) for event in events if event.get("kind") == "stage"]


def _stage(event: dict[str, Any]) -> Stage:
    data, text = data_of(event), str(event.get("text", ""))
    number, count, copies = data.get("stage"), data.get("stages"), data.get("copies")
    several = isinstance(number, int) and isinstance(count, int) and count > 1
    pairs = [pair for pair in copies if isinstance(pair, list)] if isinstance(copies, list) else []
    return Stage(
        step=int(event.get("step", 0)),
        text=text,
        number=str(number) if several else "",
        label=f"stage {number} of {count}" if several else text[:_LONGEST_LABEL],
        # A file that somebody has damaged may hold anything.
        copies={pair[0]: pair[1] for pair in pairs if len(pair) == 2 and all(isinstance(one, int) for one in pair)},
    )


def boundary_labels(
    found: Sequence[Stage], where: Sequence[float], reach: tuple[float, float], needs: float = 0.1
) -> list[str]:
    """Return what is written at each boundary: its label where there is room, else its number alone, else nothing.

    Args:
        found: the stages, in order.
        where: positions on the x axis, ascending.
        reach: first and last x of the picture.
        needs: share of its width that a label takes; a number takes a quarter of that.

    Example:
        >>> found = [Stage(4 * i, "", str(i + 1), f"stage {i + 1} of 3") for i in range(3)]
        >>> boundary_labels(found, [0, 4, 8], (0, 100))
        ['1', '2', 'stage 3 of 3']
    """
    width = max(reach[1] - reach[0], 1e-12)
    out, free = [], -np.inf
    for i, (stage, at) in enumerate(zip(found, where, strict=True)):
        room = ((where[i + 1] if i + 1 < len(where) else np.inf) - at) / width
        text = stage.label if room >= needs else stage.number
        out.append(text if at >= free else "")
        free = at + (needs if text == stage.label else needs / 4) * width if out[-1] else free
    return out


def matrix(records: Sequence[dict[str, Any]], quantity: str, layers: int = 0) -> np.ndarray:
    """Return (L, K) float64 of one quantity, NaN where a layer has no value;
    a model that grows may have shorter records.

    Args:
        layers: L at least.
    """
    vectors = [[number(value) for value in vector] if isinstance(vector := record[quantity], list) else [] for record in
               records]  # fmt: skip
    layers = max(layers, *map(len, vectors))
    values_LK = np.full((layers, len(records)), np.nan)
    for column, vector in enumerate(vectors):
        values_LK[: len(vector), column] = vector
    return values_LK


def state_codes(values_LK: np.ndarray) -> np.ndarray:
    """Return (L, K) uint8 codes; a layer without a value does not exist yet."""
    known_LK = (values_LK >= 0) & (values_LK < len(STATES))
    return np.where(known_LK, np.nan_to_num(values_LK), ABSENT).astype(np.uint8)


def opening_quantity(records: Sequence[dict[str, Any]]) -> str:
    """Return the quantity that a picture of the layers opens on.

    Where no layer is skipped, frozen or new, ``state`` would be a wall of one colour: ``update_ratio``, if it is known.
    """
    states = [code for record in records for code in record.get("state") or ()]
    moves = any(code != RUNNING for code in states)
    known = any(value is not None for record in records for value in record.get("update_ratio") or ())
    return "update_ratio" if known and not moves else "state"


def settled(codes: np.ndarray) -> np.ndarray:
    """Return codes of any shape, a skipped layer as a running one: what stays as it is within a stage."""
    return np.where(codes == DROPPED, RUNNING, codes)


def stage_starts(codes_LK: np.ndarray) -> np.ndarray:
    """Return (K,) bool: records in which other layers exist, are frozen or are new than in the record before;
    the first too.

    Which layers a method skips changes at random from record to record and starts nothing.
    """
    settled_LK = settled(codes_LK)
    starts_K = np.ones(codes_LK.shape[1], bool)
    starts_K[1:] = (settled_LK[:, 1:] != settled_LK[:, :-1]).any(axis=0)
    return starts_K


def chosen_columns(starts_K: np.ndarray, most: int) -> np.ndarray:
    """Return indices of about ``most`` records: evenly spread, and the first and the last of every stage,
    however short.

    Whole records, never means of neighbours: the mean of "running" and "frozen" would be read as "dropped".

    Args:
        starts_K: as :func:`stage_starts` gives it.
    """
    count = len(starts_K)
    if count <= most:
        return np.arange(count)
    edges = np.flatnonzero(starts_K | np.append(starts_K[1:], True))
    # With a stage every few records there is no short one to protect.
    for pinned in (edges, np.flatnonzero(starts_K), edges[:0]):
        if len(pinned) <= most // 2:
            break
    even = np.linspace(0, count - 1, most - len(pinned)).round().astype(np.int64)
    return np.unique(np.concatenate([even, pinned]))


def column_edges(steps_K: Sequence[float] | np.ndarray, boundaries: Sequence[float]) -> np.ndarray:
    """Return (K + 1,) where columns begin and end, in steps: a record speaks for the stretch since the one before it.

    A boundary between two records parts their columns, so that a stage begins where it began and not at the record
    before.

    Args:
        steps_K: steps of the records, ascending.
        boundaries: steps at which stages began.
    """
    ends_K = np.asarray(steps_K, dtype=np.float64)
    if not len(ends_K):
        return np.zeros(1)
    gap = ends_K[1] - ends_K[0] if len(ends_K) > 1 else 1.0
    edges = np.concatenate([[max(0.0, ends_K[0] - gap)], ends_K])
    for at in sorted(boundaries):
        # A record of step s was taken in the s-th step: a stage that began after s steps begins with the next one.
        k = int(np.searchsorted(ends_K, at, side="right"))
        if 0 < k < len(ends_K):
            edges[k] = at
    return edges


@dataclass(frozen=True)
class Work:
    """Share of the model that was computed.

    Attributes:
        forward_LK: share of the micro-batches since the record before in which a layer ran, 0 to 1.
        trained_LK: the same for its backward pass.
        steps_K: optimizer steps that a record stands for.
    """

    forward_LK: np.ndarray
    trained_LK: np.ndarray
    steps_K: np.ndarray

    @property
    def forward(self) -> np.ndarray:
        """Mean share per layer over the run, of its forward pass, (L,)."""
        return np.average(self.forward_LK, axis=1, weights=self.steps_K)

    @property
    def trained(self) -> np.ndarray:
        """Mean share per layer over the run, of its backward pass, (L,)."""
        return np.average(self.trained_LK, axis=1, weights=self.steps_K)

    def summary(self) -> str:
        """Return one sentence on how much of the model was computed.

        Example:
            >>> Work(np.full((4, 2), 0.5), np.full((4, 2), 0.5), np.ones(2)).summary()
            'On average 2.0 of 4 layers ran forward and 2.0 backward: 50% of the work of training all of them'
        """
        return (
            f"On average {self.forward.sum():.1f} of {len(self.forward_LK)} layers ran forward and "
            f"{self.trained.sum():.1f} backward: {self.share:.0%} of the work of training all of them"
        )

    @property
    def share(self) -> float:
        """Work in the layers as a share of every layer running and training all the time: 1 forward, 2 backward."""
        return float((self.forward + 2 * self.trained).mean() / 3)


def work(records: Sequence[dict[str, Any]]) -> Work:
    """Work of the layers, from the records' ``state`` and, where they have it, ``ran``.

    Args:
        records: of the ``layers`` stream, at least one, each with a ``state``.
    """
    codes_LK = state_codes(matrix(records, "state"))
    there_LK = codes_LK != ABSENT
    forward_LK = (there_LK & (codes_LK != DROPPED)).astype(np.float64)
    if all(record.get("ran") for record in records):
        ran_LK = matrix(records, "ran", len(codes_LK))[: len(codes_LK)]
        # The state is that of one micro-batch, this counts all since the record before. Where a stage has begun in
        # between, it counts two stages, and the state alone says what is new.
        counted_LK = np.isfinite(ran_LK) & there_LK & ~stage_starts(codes_LK)
        forward_LK = np.where(counted_LK, np.nan_to_num(ran_LK), forward_LK)
    steps_K = np.diff(column_edges([record["step"] for record in records], ()))
    # Two attempts may have recorded one step.
    return Work(forward_LK, np.where(codes_LK == FROZEN, 0.0, forward_LK), np.maximum(steps_K, 1e-9))


def sentence(code: int, layer: int, copies: dict[int, int]) -> str:
    """Return what a layer does, after "Layer 7 at step 420: ".

    Args:
        layer: counted from 1.
        copies: of the stage: see :class:`Stage`.

    Example:
        >>> sentence(COPIED, 7, {7: 4})
        'started as a copy of layer 4'
    """
    if code == COPIED and layer in copies:
        return f"started as a copy of layer {copies[layer]}"
    return LAYER_STATES[code].sentence


def sentences(codes_LK: np.ndarray, steps_K: Sequence[float], found: Sequence[Stage]) -> list[list[str]]:
    """Return :func:`sentence` for every layer and record, (L, K);
    a copy's source is that of the latest stage to name it.
    """
    out: list[list[str]] = []
    starts = [stage.step for stage in found]
    known: list[dict[int, int]] = [{}]
    for stage in found:
        known.append(known[-1] | stage.copies)
    of_column = [known[int(np.searchsorted(starts, step, side="left"))] for step in steps_K]
    for layer, codes_K in enumerate(codes_LK.tolist(), start=1):
        out.append([sentence(code, layer, copies) for code, copies in zip(codes_K, of_column, strict=True)])
    return out
