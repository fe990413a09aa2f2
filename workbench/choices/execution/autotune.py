"""Executions that choose the native engine's knobs by measuring them before a run begins."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from workbench.base.cache_folder import cache_folder
from workbench.base.errors import RecipeError
from workbench.choices.choice import Problem
from workbench.choices.execution.engine import Engine
from workbench.choices.execution.execution import Execution
from workbench.choices.execution.native import Native, NativeEngine
from workbench.ops.remembered import FOLDER, recalled, remember, subject_of

SECONDS = 30.0
"""Seconds that a calibration takes at most, the start of its process and the reading of prepared data included."""
END_SECONDS, GRACE_SECONDS = 2.0, 15.0
"""Seconds of them for the process to end; seconds beyond them for a step under way, before the calibration fails."""
MEMORY_SECONDS = 86_400.0
"""A plan is used again for a day: by then a busy moment that bent it is over."""
NAME, VERSION = "plan", 1
_IRRELEVANT = ("name", "notes", "seed", "schema_version")


class Trial(NamedTuple):
    """The cost of a knob's value beside the native engine's own.

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
        """Return the plan for JSON; :meth:`read` gives it back."""
        return self._asdict() | {"knobs": dict(self.knobs), "trials": [trial._asdict() for trial in self.trials]}

    @classmethod
    def read(cls, raw: Any) -> Plan | None:
        """Return the plan of :meth:`to_dict`; None for anything else."""
        if not isinstance(raw, Mapping):
            return None
        try:
            return cls(**{**raw, "trials": tuple(Trial(**each) for each in raw["trials"])})
        except (KeyError, TypeError):
            return None

    @property
    def text(self) -> str:
        """Describe the plan in a sentence."""
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


class Planned(Execution):
    """Base of executions whose knobs are found by a calibration."""

    @property
    def most_time(self) -> float | None:
        """Most time of a step, as a multiple of one with the defaults; None where the fastest knobs are asked."""
        return None

    def settled(self, knobs: Mapping[str, Any]) -> Native:
        """Return the native engine's choice with these knobs, and all that was given by hand."""
        given = {name: getattr(self, name) for name in Execution.model_fields}
        return Native(**{**given, **knobs})

    def engine(self, recipe: Any) -> PlannedEngine:
        """See :class:`PlannedEngine`; with the plan of an earlier calibration on this machine, where there is one."""
        return PlannedEngine(recipe, remembered(recipe))

    def device_problems(self, device: str) -> Iterator[Problem]:
        """Refuse those of the native engine with its defaults."""
        yield from self.settled({}).device_problems(device)

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse models that only a program holds, and what the native engine refuses with its defaults."""
        if recipe.architecture.placeholder:
            yield Problem(
                "execution.kind",
                f"'{self.kind}' tries parts of a recipe in a process of its own, and this model is an object of your "  # type: ignore[attr-defined]
                "program; use 'native'",
            )
        yield from self.workers_problems(recipe)
        native = self.settled({})
        yield from native.problems(recipe.model_copy(update={"execution": native}))


class PlannedEngine(NativeEngine):
    """A recipe under :class:`Planned`: the native engine with the knobs of a plan.

    Args:
        recipe: as composed.
        plan: None for the defaults, until :meth:`calibrated`.
    """

    def __init__(self, recipe: Any, plan: Plan | None) -> None:
        self._composed, self.plan = recipe, plan
        super().__init__(recipe.with_(execution=recipe.execution.settled(plan.knobs if plan else {})))
        measured = f" (measured {plan.date})" if plan and plan.date else ""
        self.planned = f"execution '{recipe.execution.kind}': {plan.text}{measured}" if plan else ""
        self.provisional = "" if plan else f"with default settings, until '{recipe.execution.kind}' has found its own"

    def calibrated(self, say: Callable[[str], None]) -> PlannedEngine:
        """See :meth:`Engine.calibrated`."""
        return self if self.plan else PlannedEngine(self._composed, calibrate(self._composed, say))

    def resume(self, begun: Mapping[str, Any]) -> Engine:
        """See :meth:`Engine.resume`; with the plan of the run."""
        plan = Plan.read(begun.get("plan"))
        if plan is None or plan == self.plan:
            return super().resume(begun)
        return PlannedEngine(self._composed, plan).resume(begun)

    def described(self) -> dict[str, Any]:
        """See :meth:`Engine.described`; with the plan."""
        return super().described() | {"plan": self.plan.to_dict() if self.plan else None}

    def assumptions(self) -> list[str]:
        """See :meth:`Engine.assumptions`."""
        kind = self._composed.execution.kind
        if self.plan is None:
            found = f"measures its knobs when the run starts, {SECONDS:.0f} s at most; priced with native's defaults"
        else:
            found = f"is priced as it was planned here: {self.plan.text}"
        return [f"execution '{kind}' {found}", *super().assumptions()]


def remembered(recipe: Any) -> Plan | None:
    """Return the plan of a calibration of the same recipe on this machine within a day; None without one."""
    record = recalled(cache_folder() / FOLDER, NAME, _subject(recipe))
    return Plan.read(record.value) if record is not None and record.age_seconds < MEMORY_SECONDS else None


def calibrate(recipe: Any, say: Callable[[str], None]) -> Plan:
    """Return the plan for a recipe whose execution is :class:`Planned`, measured now, in a process of its own,
    and remembered.

    A calibration that fails or never ends gives the defaults, and says so in the plan's note.

    Args:
        say: called with a line before.
    """
    say(f"measuring which knobs suit this recipe ({SECONDS:.0f} s at most)")
    began = time.monotonic()
    command = [sys.executable, "-m", "workbench.autotune", str(SECONDS - END_SECONDS)]
    try:
        # Not as an argument: the paths of a corpus may be more than a command line takes.
        done = subprocess.run(
            command, input=json.dumps(recipe.to_dict()), capture_output=True, text=True, timeout=SECONDS + GRACE_SECONDS
        )
    except subprocess.TimeoutExpired:
        return Plan(note=f"no step ended within {SECONDS + GRACE_SECONDS:.0f} s of calibration")
    lines = done.stdout.splitlines()
    plan = Plan.read(json.loads(lines[-1])) if done.returncode == 0 and lines else None
    if plan is None:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return Plan(note=f"the calibration failed ({last})")
    plan = plan._replace(
        seconds=round(time.monotonic() - began, 1), date=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    )
    remember(cache_folder() / FOLDER, NAME, _subject(recipe), plan.to_dict(), 0.0)
    return plan


def _subject(recipe: Any) -> dict[str, Any]:
    """Return the recipe without what changes no speed: the plan is valid for it."""
    try:
        device = recipe.execution.resolve_device()
    except RecipeError:
        return {}
    fields = {name: value for name, value in recipe.to_dict().items() if name not in _IRRELEVANT}
    return subject_of(device, recipe.execution.threads, recipe=fields, version=VERSION)
