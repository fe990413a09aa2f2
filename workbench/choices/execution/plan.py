"""What a calibration found for a recipe: values of the native engine's knobs, what each costs, and which were taken."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Trial(NamedTuple):
    """A knob's value beside the native engine's own.

    Attributes:
        knob, value: of :class:`~workbench.choices.execution.native.Native`; several of both, joined, for a combination.
        time: of a step, as a multiple of one with the defaults; None where nothing was timed.
        memory_gib: of the whole run, counted; None where it does not decide.
        taken: whether the plan has it.
        why: in a few words.
    """

    knob: str
    value: str
    time: float | None
    memory_gib: float | None
    taken: bool
    why: str


class Plan(NamedTuple):
    """Knobs of the native engine for a recipe on a device.

    Attributes:
        knobs: that differ from the defaults, with their values.
        trials: one by one, in the order in which they were made.
        time: of a step, as a multiple of one with the defaults.
        memory_gib, default_gib: of the run, as planned and with the defaults; None where memory does not decide.
        seconds: that the calibration took.
        date: of the calibration, UTC.
        note: what went wrong; empty for nothing.
    """

    knobs: Mapping[str, Any] = MappingProxyType({})
    trials: tuple[Trial, ...] = ()
    time: float = 1.0
    memory_gib: float | None = None
    default_gib: float | None = None
    seconds: float = 0.0
    date: str = ""
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; :meth:`read` gives the plan back."""
        return self._asdict() | {"knobs": dict(self.knobs), "trials": [trial._asdict() for trial in self.trials]}

    @classmethod
    def read(cls, raw: Any) -> Plan | None:
        """The plan of :meth:`to_dict`; None for anything else."""
        if not isinstance(raw, Mapping):
            return None
        try:
            return cls(**{**raw, "trials": tuple(Trial(**each) for each in raw["trials"])})
        except (KeyError, TypeError):
            return None

    @property
    def text(self) -> str:
        """For people, in a sentence."""
        if self.note:
            return f"the native engine's defaults: {self.note}"
        taken = ", ".join(f"{knob} {str(value).lower()}" for knob, value in self.knobs.items())
        tried = any(trial.time is not None for trial in self.trials)
        nothing = "nothing tried was better" if tried else "there was no time to try anything"
        parts = [taken or f"the native engine's defaults, since {nothing}"]
        if self.knobs and self.time != 1.0:
            parts.append(f"{self.time:.2f} times the defaults' step time")
        if self.memory_gib is not None and self.default_gib is not None:
            held = "GiB of weights, gradients, moments and activations"
            parts.append(f"about {self.memory_gib:.3g} instead of {self.default_gib:.3g} {held}")
        return "; ".join(parts)
