"""From trials to a plan: the fastest knobs, and the leanest within a price."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from workbench.autotune.trials import Trials
from workbench.choices.execution.autotune import Plan, Trial
from workbench.choices.execution.memory_fit import LOOSE, Kept
from workbench.choices.execution.memory_plan import MemoryPlan
from workbench.choices.execution.micro_batches import divisors

GAIN = 0.05
"""Share of a step that a knob must save to be taken for speed: trials are eager, and a run is compiled."""
LEAST_TOKENS = {"cpu": 256, "cuda": 8192}
"""Fewest tokens of a micro-batch that is tried for speed."""
MOST_SIZES = 4
"""Sizes of micro-batches that are tried, at most."""
RESERVE_SECONDS = 4.0
"""Kept for the trial of all that was chosen together."""
OTHERS = 0.2
"""Cores that other processes may keep busy while numbers of threads are compared."""
COMPILED_SHARE = 0.6
"""Share of an eager step's time that compiled steps took at least where plans were raced (memory.md)."""
COMPILED_SAVES, COMPILE_SECONDS = 0.24, 8.0
"""Share of an eager step that compiled blocks save (native.md), and processor seconds that compiling takes where the
compiler's cache knows the model: some 35 the first time (LOG.md, 2026-11-21), which later runs need not pay again."""
_GIB = 2**30


class Candidate(NamedTuple):
    """A knob's value to try."""

    knob: str
    value: Any


Knobs = Mapping[str, Any]


class _Sheet:
    """The rows of a plan in the making.

    Args:
        share: of an eager step's time that the run's compiled step takes; what is added to a step is not compiled away.
    """

    def __init__(self, trials: Trials, share: float = 1.0) -> None:
        self.trials, self._share = trials, share
        self.rows: list[Trial] = []
        self.times: dict[Candidate, float] = {}

    def try_alone(self, candidates: Iterable[Candidate], gib: Callable[[Knobs], float] | None = None) -> None:
        """One after the other, each with its share of the time that is left."""
        every = list(candidates)
        for number, candidate in enumerate(every):
            # What comes first matters most, and has its rounds even if there is no time for all that follows.
            left = len(every) - number
            share = max(self.trials.least_seconds, (self.trials.seconds_left - RESERVE_SECONDS) / left)
            knobs = {candidate.knob: candidate.value}
            time, why = self._time(knobs, share)
            if time is not None:
                self.times[candidate] = time
            counted = gib(knobs) if gib is not None and not self.trials.refusal(knobs) else None
            self.rows.append(Trial(candidate.knob, _shown(candidate.value), time, counted, False, why))

    def try_together(self, knobs: Knobs, limit: float, gib: float | None = None) -> float | None:
        """Return their time as a multiple of the defaults'; None above ``limit``,
        or where there is no time to find it.
        """
        if self.trials.seconds_left < self.trials.least_seconds:
            return None
        time, why = self._time(knobs, self.trials.seconds_left)
        within = time is not None and time <= limit
        why = why or f"together: {'better still' if gib is None else 'within the price'}" if within else why
        why = why or f"together: above {limit:.2f} times the defaults"
        names, values = " + ".join(knobs), " + ".join(map(_shown, knobs.values()))
        self.rows.append(Trial(names, values, time, gib, within, why))
        return time if within else None

    def taken(self, knobs: Knobs, why: str, why_not: Callable[[Trial], str]) -> tuple[Trial, ...]:
        """Return the rows, those of ``knobs`` marked."""
        rows = []
        for row in self.rows:
            taken = row.taken or (row.knob in knobs and _shown(knobs[row.knob]) == row.value)
            rows.append(row._replace(taken=taken, why=row.why or (why if taken else why_not(row))))
        return tuple(rows)

    def _time(self, knobs: Knobs, seconds: float) -> tuple[float | None, str]:
        if why := self.trials.refusal(knobs):
            return None, why
        if self.trials.seconds_left < self.trials.least_seconds:
            left, needed = max(0.0, self.trials.seconds_left), self.trials.least_seconds
            return None, f"not tried: a trial takes {needed:.0f} s here, and {left:.0f} s were left"
        # Beside other work fewer threads wait less for one another, and only for as long as that lasts.
        if "threads" in knobs and (others := self.trials.others) > OTHERS:
            return None, f"other processes keep {others:.1f} cores busy, so threads were not compared"
        time = self.trials.time(knobs, seconds)
        return round(time if time <= 1 else 1 + (time - 1) / self._share, 3), ""


def plan_of(trials: Trials) -> Plan:
    """Return the plan that the recipe's execution asks for: the fastest knobs or the leanest."""
    limit = trials.recipe.execution.most_time
    return fastest_plan(trials) if limit is None else leanest_plan(trials, limit)


def fastest_plan(trials: Trials) -> Plan:
    """Return the knobs that save time, each by itself and all together."""
    sheet = _Sheet(trials)
    sheet.try_alone(_for_speed(trials))
    best: dict[str, Candidate] = {}
    for each in sorted(sheet.times, key=sheet.times.__getitem__):
        if sheet.times[each] <= 1 - GAIN:
            best.setdefault(each.knob, each)
    knobs, time = {}, 1.0
    if best:
        # Two that gain alone may gain the same thing: then the better one is enough.
        first = next(iter(best.values()))
        knobs, time = {first.knob: first.value}, sheet.times[first]
        if len(best) > 1:
            everything = {knob: each.value for knob, each in best.items()}
            together = sheet.try_together(everything, limit=time)
            if together is not None:
                knobs, time = everything, together
    rows = sheet.taken(
        knobs, "saves time", lambda row: "slower" if (row.time or 0) > 1 else f"saves less than {GAIN:.0%}"
    )
    pays, compiled = _compiling_pays(trials)
    return Plan(knobs | ({} if pays else {"compile": False}), (*rows, compiled), time)


def leanest_plan(trials: Trials, limit: float) -> Plan:
    """Return the knobs with the least memory whose step stays within ``limit``, a multiple of the defaults'."""
    gib, sheet = _counted(trials), _Sheet(trials, COMPILED_SHARE)
    sheet.try_alone(_for_memory(trials), gib)
    offered: list[list[Candidate | None]] = [
        [None, *(each for each in sheet.times if each.knob == knob)]
        for knob in dict.fromkeys(each.knob for each in sheet.times)
    ]
    combinations: list[tuple[float, float, dict[str, Any]]] = []
    for chosen in product(*offered):
        expected = 1.0
        for each in filter(None, chosen):
            # As if each cost what it costs alone; the leanest are then tried as they are.
            expected *= sheet.times[each]
        knobs = {each.knob: each.value for each in filter(None, chosen)}
        if expected <= limit and not trials.refusal(knobs):
            combinations.append((gib(knobs), expected, knobs))
    found: tuple[float, float, dict[str, Any]] = (gib({}), 1.0, {})
    for leanest, expected, knobs in sorted(combinations, key=lambda each: each[:2]):
        tried = sheet.try_together(knobs, limit, leanest) if len(knobs) > 1 else expected
        if tried is not None:
            found = (leanest, tried, knobs)
            break
    rows = sheet.taken(
        found[2],
        "least memory within the price, of what was tried",
        lambda row: f"above {limit:g} times the defaults" if (row.time or 0) > limit else "others save more",
    )
    return Plan(found[2], rows, found[1], found[0], gib({}))


def _for_speed(trials: Trials) -> Iterator[Candidate]:
    device, threads = trials.device.type, trials.threads
    for precision in ("fp32",) if device == "cpu" else ("tf32", "fp16"):
        yield Candidate("precision", precision)
    length = trials.recipe.data.longest
    yield from (each for each in _micro_batches(trials) if each.value * length >= LEAST_TOKENS[device])
    if trials.recipe.execution.threads is None and device == "cpu":
        yield from (Candidate("threads", threads // parts) for parts in (2, 4) if threads % parts == 0)


def _for_memory(trials: Trials) -> Iterator[Candidate]:
    yield Candidate("recompute", "layers")
    yield Candidate("recompute", "operations")
    yield Candidate("optimizer_states", "8bit")
    yield from _micro_batches(trials)


def _micro_batches(trials: Trials) -> list[Candidate]:
    """Return some of the sizes that divide the rows that are tried; none where the recipe says how many."""
    if trials.recipe.execution.micro_batch_size is not None:
        return []
    largest = trials.rows - (trials.rows == trials.recipe.data.most_rows)
    sizes = [rows for rows in reversed(divisors(trials.rows)) if rows <= largest]
    return [Candidate("micro_batch_size", rows) for rows in sizes[:: -(-len(sizes) // MOST_SIZES) or 1]]


def _compiling_pays(trials: Trials) -> tuple[bool, Trial]:
    """Return whether a run is so long that compiling pays, and the row that says so.

    A budget in seconds begins after compiling, which then always pays.
    """
    seconds = trials.eager_seconds()
    saved, cost = (seconds or 0.0) * COMPILED_SAVES, COMPILE_SECONDS / min(2, trials.threads)
    if seconds is None:
        why = "a budget in seconds begins when all is compiled"
    else:
        why = f"compiling takes {cost:.0f} s or more and saves about {saved:.0f} s of the whole run"
    pays = seconds is None or saved > cost
    return pays, Trial("compile", "false", None, None, not pays, why)


def _counted(trials: Trials) -> Callable[[Knobs], float]:
    """Return GiB of weights, gradients, states and activations of the whole run, by knobs."""
    micro = trials.recipe.execution.micro_batch_size
    full = micro if isinstance(micro, int) else trials.recipe.data.most_rows

    @cache
    def kept(recompute: str) -> tuple[Kept, int]:
        return trials.kept({"recompute": recompute} if recompute else {})

    def gib(knobs: Knobs) -> float:
        (found, parameters), rows = kept(knobs.get("recompute", "")), knobs.get("micro_batch_size", full)
        states = MemoryPlan(states=knobs.get("optimizer_states", "fp32")).moment_bytes(parameters)
        held = parameters * 8 + len(trials.recipe.optimizer.moments or ("", "")) * states
        # One of the layers that are computed again is there as a whole while it goes backward.
        whole = max(kept("")[0].blocks) * rows if knobs.get("recompute") == "layers" else 0.0
        return round((held + found.at(rows) + LOOSE * whole) / _GIB, 4)

    return gib


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
