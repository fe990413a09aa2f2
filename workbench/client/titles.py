"""Titles of several runs beside each other: their names, and for equal names the knobs that differ."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.base.fields import differences
from workbench.base.text import plain
from workbench.client.summary import launched_of
from workbench.store.effective_knobs import effective_knobs
from workbench.store.folder import RunFolder
from workbench.store.labels import name_of

if TYPE_CHECKING:
    from workbench.store.view import RunView

NO_KNOBS = ("name", "notes", "schema_version")
"""Free text of the user's: different in nearly all runs, and no reason for a difference."""
_MOST_KNOBS = 2
_BUDGET = "budget"
_SHORT_UNITS = {"seconds": "s"}
_TIMES = ("%H:%M:%S", "%d %b %H:%M")


def titles(folders: Sequence[RunFolder]) -> list[str]:
    """Return names of runs; equal names get the knobs that differ.

    First a knob or two, kinds before numbers; then, where these leave runs together, seed, time of launch or the end of
    the id. Tables, pictures, reports and the page all call runs so.

    Example:
        >>> titles([run.folder for run in wb.runs()[:2]])  # doctest: +SKIP
        ['quickstart · lans', 'quickstart · adamw']
    """
    names = [name_of(folder) for folder in folders]
    found = list(names)
    for name in {name for name in names if names.count(name) > 1}:
        places = [place for place, each in enumerate(names) if each == name]
        for place, tail in zip(places, _tails([folders[place] for place in places]), strict=True):
            found[place] = " · ".join([plain(name, 30), *tail])
    return found


def titled(views: Sequence[RunView], folders: Sequence[RunFolder]) -> list[RunView]:
    """Return views of these runs that are called by :func:`titles`."""
    return [replace(view, name=title) for view, title in zip(views, titles(folders), strict=True)]


def _tails(folders: Sequence[RunFolder]) -> list[list[str]]:
    knobs = [_with_budget(effective_knobs(folder).told) for folder in folders]
    differ = {path: values for path, values in differences(knobs).items() if path not in (*NO_KNOBS, "seed")}
    tails: list[list[str]] = [[] for _ in folders]
    parts = [list(range(len(folders)))]
    told = 0
    # A kind brings knobs of its own along: it says more than any of them.
    for path in sorted(differ, key=lambda path: (not path.endswith(".kind"), path)):
        finer = _parted(parts, differ[path].__getitem__)
        if len(finer) > len(parts) and told < _MOST_KNOBS:
            parts, told = finer, told + 1
            for tail, value in zip(tails, differ[path], strict=True):
                tail.append(_knob(path, value))
    for part in (part for part in parts if len(part) > 1):
        ends = _repetitions([folders[place] for place in part], [knobs[place] for place in part])
        for place, end in zip(part, ends, strict=True):
            tails[place].append(end)
    return tails


def _with_budget(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return knobs with amount and unit of the budget as one: neither says anything without the other."""
    rest = {path: value for path, value in told.items() if path not in ("budget.amount", "budget.unit")}
    amount, unit = told.get("budget.amount"), told.get("budget.unit")
    return rest if amount is None else rest | {_BUDGET: _budget(amount, unit)}


def _budget(amount: Any, unit: Any) -> str:
    number = f"{amount:,.0f}" if isinstance(amount, (int, float)) and float(amount).is_integer() else f"{amount}"
    word = _SHORT_UNITS.get(str(unit), str(unit or ""))
    return f"{number} {word.removesuffix('s') if number == '1' and word != 's' else word}".strip()


def _repetitions(folders: Sequence[RunFolder], knobs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return seeds of runs of one recipe, where these differ, else launch times, else ends of ids."""
    seeds = [f"seed {each.get('seed')}" for each in knobs]
    starts = [time.localtime(launched_of(folder) or 0) for folder in folders]
    ways = [seeds, *([time.strftime(form, start) for start in starts] for form in _TIMES)]
    ends = [folder.id[-4:] for folder in folders]
    return next((each for each in ways if len(set(each)) == len(folders)), ends)


def _parted(parts: Sequence[Sequence[int]], value: Callable[[int], Any]) -> list[list[int]]:
    found: list[list[int]] = []
    for part in parts:
        held: dict[Hashable, list[int]] = {}
        for place in part:
            held.setdefault(repr(value(place)), []).append(place)
        found += held.values()
    return found


def _knob(path: str, value: Any) -> str:
    *axis, name = path.split(".")
    text = "none" if value is None else plain(value, 24)
    if path == _BUDGET and value is not None:
        return text
    if name != "kind" or not axis:
        return f"{name} {text}"
    return f"{axis[-1]} {text}" if value is None else text
