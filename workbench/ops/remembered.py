"""Measurements of this machine, kept on disk with their date and their disagreement."""

from __future__ import annotations

import calendar
import contextlib
import hashlib
import json
import math
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from workbench.base.files import write_bytes
from workbench.ops.timing import LEAST_ROUNDS, Sample, measure

FOLDER = "measured"
"""Inside the cache folder: one JSON file per measurement."""
MOMENT = "%Y-%m-%dT%H:%M:%SZ"
"""Format of a time in files, UTC."""
BAND = 0.25
"""Share by which a few rounds must differ from a remembered time to contradict it."""


@dataclass(frozen=True)
class Record:
    """A measurement, as its file has it.

    Attributes:
        subject: what it is valid for.
        value: the result, JSON-able.
        measured: when, UTC.
        disagreement: of the halves of its rounds, the largest over the candidates, as a share.
        confirmed: whether a later moment agreed.
    """

    subject: dict[str, Any]
    value: dict[str, Any]
    measured: str
    disagreement: float
    confirmed: bool = False

    @property
    def age_seconds(self) -> float:
        """Since it was measured."""
        return time.time() - calendar.timegm(time.strptime(self.measured, MOMENT))


@dataclass(frozen=True)
class Benchmark:
    """Candidates whose times are measured once per machine and remembered.

    Attributes:
        name: of the benchmark, and the beginning of its file's name.
        subject: whatever may change the answer; see :func:`subject_of`.
        candidates: their names.
        samples: builds them, with the tensors they need.
    """

    name: str
    subject: dict[str, Any]
    candidates: tuple[str, ...]
    samples: Callable[[], Mapping[str, Sample]]

    def recalled(self, folder: Path | None) -> dict[str, float] | None:
        """Return remembered seconds by candidate; None without a valid file."""
        return self.seconds_in(recalled(folder, self.name, self.subject))

    def seconds_in(self, record: Record | None) -> dict[str, float] | None:
        """Return seconds by candidate that a record of this benchmark holds; None where it holds no valid ones."""
        try:
            seconds = {name: float(record.value[name]) for name in self.candidates} if record else {}
        except (KeyError, TypeError, ValueError):
            return None
        return seconds if seconds and all(0 < value < math.inf for value in seconds.values()) else None

    def seconds(self, folder: Path | None) -> dict[str, float]:
        """Return seconds by candidate: remembered, or measured now and written.

        Args:
            folder: of the files; None measures every time.
        """
        return self.recalled(folder) or self.measured(folder)

    def measured(self, folder: Path | None, seen: Mapping[str, float] | None = None) -> dict[str, float]:
        """Return seconds by candidate, measured now and written.

        Args:
            folder: of the files; None writes nothing.
            seen: seconds of other rounds; the shorter count, since other work only adds time.
        """
        found = measure(self.samples())
        seconds = {name: min(timing.seconds, (seen or {}).get(name, timing.seconds)) for name, timing in found.items()}
        remember(folder, self.name, self.subject, seconds, max(timing.disagreement for timing in found.values()))
        return seconds


@dataclass(frozen=True)
class Contradiction:
    """Seconds by candidate as remembered, as seen in a few rounds, and as measured again.

    Attributes:
        name: of the benchmark.
        why: in a sentence.
        remembered, seen, measured: seconds by candidate.
    """

    name: str
    why: str
    remembered: dict[str, float]
    seen: dict[str, float]
    measured: dict[str, float]

    @property
    def text(self) -> str:
        """For people: why, and the new times."""
        now = ", ".join(f"{name} {milliseconds(seconds)}" for name, seconds in self.measured.items())
        return f"{self.name} was remembered from a busy moment: {self.why}; measured again: {now}"


def recheck(benchmark: Benchmark, folder: Path | None) -> Contradiction | None:
    """Check the remembered times with a few rounds, and measure again if these contradict them.

    For a run that has settled: a later moment than that of the first measurement, for a few rounds more. What such a
    moment has confirmed is not checked again.

    Args:
        benchmark: to check.
        folder: of the files.

    Returns:
        The contradiction; None without one, or if nothing is remembered.
    """
    record = recalled(folder, benchmark.name, benchmark.subject)
    remembered = benchmark.seconds_in(record)
    if remembered is None or record is None or record.confirmed:
        return None
    found = measure(benchmark.samples(), rounds=LEAST_ROUNDS, least_seconds=0.0, limit_seconds=0.0)
    seen = {name: timing.seconds for name, timing in found.items()}
    why = contradiction(remembered, seen)
    if not why:
        _write(folder, benchmark.name, replace(record, confirmed=True))
        return None
    return Contradiction(benchmark.name, why, remembered, seen, benchmark.measured(folder, seen))


def contradiction(remembered: Mapping[str, float], seen: Mapping[str, float]) -> str:
    """Return the reason why ``seen`` refutes ``remembered``, both in seconds by candidate; empty if it does not.

    Two things no busy moment causes: a candidate is faster than remembered, or, in rounds that the candidates share,
    the remembered best is not the fastest. A single candidate that is slower than remembered may be a busy moment, and
    is no contradiction.

    Example:
        >>> contradiction({"a": 0.004, "b": 0.002}, {"a": 0.001, "b": 0.002})
        'a took 1 ms, and 4 ms was remembered'
    """
    for name, seconds in seen.items():
        if seconds * (1 + BAND) < remembered[name]:
            return f"{name} took {milliseconds(seconds)}, and {milliseconds(remembered[name])} was remembered"
    best, quickest = fastest(remembered), fastest(seen)
    if seen[quickest] * (1 + BAND) < seen[best]:
        return (
            f"{quickest} took {milliseconds(seen[quickest])} and {best}, remembered as the fastest, "
            f"{milliseconds(seen[best])}"
        )
    return ""


def fastest(seconds: Mapping[str, float]) -> str:
    """Name of the candidate that takes the fewest seconds."""
    return min(seconds, key=lambda name: seconds[name])


def milliseconds(seconds: float) -> str:
    """Return three digits, for messages."""
    return f"{1e3 * seconds:.3g} ms"


def recalled(folder: Path | None, name: str, subject: Mapping[str, Any]) -> Record | None:
    """Return the record of an earlier measurement of the same subject; None without a valid one."""
    if folder is None:
        return None
    try:
        record = json.loads(_file(folder, name, subject).read_text(encoding="utf-8"))
        found = Record(**record)
        if found.subject == subject and isinstance(found.value, dict) and math.isfinite(found.age_seconds):
            return found
    # Damaged, or of another version: the same as none.
    except (OSError, ValueError, TypeError, RecursionError):
        pass
    return None


def remember(
    folder: Path | None, name: str, subject: dict[str, Any], value: dict[str, Any], disagreement: float
) -> None:
    """Write a measurement with the present time, whole or not at all."""
    _write(folder, name, Record(subject, value, time.strftime(MOMENT, time.gmtime()), round(disagreement, 4)))


def subject_of(device: torch.device, threads: int | None = None, **more: Any) -> dict[str, Any]:
    """Return the facts that every measurement depends on: torch, the device, its instructions, the threads.

    Args:
        device: measured on.
        threads: of the process that measures; None for this one.
        more: further dependencies, JSON-able.
    """
    subject: dict[str, Any] = {"torch": torch.__version__, "device": device_name(device)}
    if device.type == "cpu":
        # Virtual machines hide the model behind one name, and both variables switch units off.
        subject["instructions"] = [
            hashlib.sha256(processor("flags").encode()).hexdigest()[:8], torch.backends.cpu.get_cpu_capability(),
            os.environ.get("ONEDNN_MAX_CPU_ISA", ""),
        ]  # fmt: skip
    return {**subject, "threads": threads or torch.get_num_threads(), **more}


def device_name(device: torch.device) -> str:
    """Return a GPU's own name, or the processor's."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return processor("model name") or platform.processor() or platform.machine()


def processor(what: str) -> str:
    """Return the first line of that name in Linux's description of the processors; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(what)), "")


def _write(folder: Path | None, name: str, record: Record) -> None:
    # A cache that cannot be written costs the next measurement, not this run.
    with contextlib.suppress(OSError):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps(asdict(record), indent=1)
            write_bytes(_file(folder, name, record.subject), text.encode(), durable=False)


def _file(folder: Path, name: str, subject: Mapping[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(subject, sort_keys=True).encode()).hexdigest()[:16]
    return folder / f"{name}-{digest}.json"
