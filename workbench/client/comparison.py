"""Several runs side by side: what they achieved, and the knobs in which their recipes differ."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.base.json_lines import finite
from workbench.client.listing import columns_of
from workbench.client.titles import NO_KNOBS, titles
from workbench.store.evaluations import LABELS, benchmark_scores, is_part, score_label
from workbench.store.folder import RunFolder, read_object
from workbench.store.measured import last_result, memory_for_training
from workbench.store.result import Result
from workbench.store.view import RunView
from workbench.telemetry.baselines import SCORE_TITLES, References
from workbench.telemetry.quantities import MEMORY_FOR_TRAINING, SECONDS_TRAINED
from workbench.telemetry.scored_text import OTHER_KINDS, OTHER_TEXT, ScoredText
from workbench.telemetry.streams import RECENT, number

# What each row is called, where it stands in a result, and which end of it is better (None: neither).
_NUMBERS: tuple[tuple[str, str, str | None], ...] = (
    ("state", "state", None),
    ("held-out loss (nats)", "heldout_loss", "low"),
    ("training loss, mean of the last {recent} steps (nats)", "train_loss", "low"),
    ("training loss of the last step (nats)", "loss", None),
    ("held-out bits per byte", "bits_per_byte", "low"),
    ("word frequencies (nats)", "unigram_entropy", None),
    ("neighbours (nats)", "bigram_entropy", None),
    ("what was learned", "learned_in_words", None),
    ("tokens/s", "tokens_per_second", "high"),
    ("MFU (%)", "mfu", "high"),
    (MEMORY_FOR_TRAINING, "memory_for_training_gib", "low"),
    ("steps", "steps", None),
    ("tokens", "tokens", None),
    (SECONDS_TRAINED, "seconds", None),
    ("parameters", "parameters", None),
    ("processes", "processes", None),
)
_NATS = ("heldout_loss", "train_loss")
_LOSSES = (*_NATS, "bits_per_byte")
_EQUAL = 0.01
"""Share by which seconds of training may differ and are called equal."""


def compare(folders: Sequence[RunFolder], views: Sequence[RunView] | None = None) -> dict[str, Any]:
    """Compare runs: results and differing knobs, for a table with one column per run.

    Args:
        views: of these runs, where they were read already.

    Returns:
        ``runs``: ``[{"id", "name", "status"}]``; ``numbers``: ``[{"label", "values", "best"}]`` with one number or text
        per run (None where it has none) and the places of the best (empty where neither end is better, or only one run
        has it, or what differs is no more than what equal recipes differ by, or the losses do not compare); ``knobs``:
        ``[{"path", "values"}]`` of those that differ; ``notes``: what a reader of the numbers should know.
    """
    views = [RunView.read(folder) for folder in folders] if views is None else views
    numbers = [_numbers(view) for view in views]
    called = titles(folders)
    unlike, why = losses_apart(folders, [view.references for view in views])
    names = [{"id": view.id, "name": title, "status": view.status}
             for view, title in zip(views, called, strict=True)]  # fmt: skip
    parts = [run["name"] for run, found in zip(names, numbers, strict=True)
             if run["status"] != "finished" and "heldout_loss" in found]  # fmt: skip
    if parts:
        unlike = (*unlike, "heldout_loss", "bits_per_byte")
        why.append(f"Held-out loss and bits per byte of {', '.join(parts)} may be of a part of the held-out tokens; "
                   "those of a finished run are of all of them.")  # fmt: skip
    # Without a result it is that of the last steps, which a mean over a whole run does not compare with.
    if any("mfu" in found and "mfu" not in last_result(view) for found, view in zip(numbers, views, strict=True)):
        unlike = (*unlike, "mfu")
    # Nothing does more than all: the rate of the matrix product was measured while others had the cores.
    if over := [run["name"] for run, found in zip(names, numbers, strict=True) if found.get("mfu", 0) > 100]:
        unlike = (*unlike, "mfu")
        why.append(f"No best MFU: that of {', '.join(over)} is above 100%, so the peak that it is a share of was "
                   "measured beside other work.")  # fmt: skip
    origins = [view.origin for view in views]
    own = [found.get("steps", 0) - (origin.step if origin else 0)
           for found, origin in zip(numbers, origins, strict=True)]  # fmt: skip
    short = [run["name"] for run, found, steps in zip(names, numbers, own, strict=True)
             if steps < RECENT and "train_loss" in found]  # fmt: skip
    if short and sum("train_loss" in found for found in numbers) > 1:
        unlike = (*unlike, "train_loss")
        why.append(f"No best training loss: {', '.join(short)} trained fewer than {RECENT} steps.")
    if _shared_a_machine(views):
        unlike = (*unlike, "tokens_per_second", "mfu")
        why.append("No best speed: some of these runs trained at the same time on one machine. "
                   "A race counts time by the forecast.")  # fmt: skip
    knobs = [view.knobs for view in views]
    recipes = [each.told for each in knobs]
    differ = worded_differences({str(place): recipe for place, recipe in enumerate(recipes)})
    if any(knob["path"].startswith("objective.") for knob in differ):
        unlike = (*unlike, "train_loss")
        why.append("No best training loss: the objectives differ, and each trains on a loss of its own.")
    why += [f"{run['name']} goes on from step {origin.step:,} of {origin.name or origin.run}: its steps, tokens and "
            "seconds count from the beginning of that run, its speed and MFU are its own."
            for run, origin in zip(names, origins, strict=True)
            if origin is not None]  # fmt: skip
    twins = [_asked(recipe) for recipe in recipes]
    rows = []
    for label, key, better in _NUMBERS:
        values = [found.get(key) for found in numbers]
        if any(value is not None for value in values) and (key != "processes" or set(values) - {1, None}):
            label = label.format(recent=min(RECENT, max(1, *own)))
            best = _best(values, None if key in unlike else better, twins)
            rows.append({"label": label, "values": values, "best": best})
    steered = [f"{title} was steered: {path} {knob}." for title, each in zip(called, knobs, strict=True)
               for path, knob in each.steered.items()]  # fmt: skip
    rows += _scores(views, twins, "heldout_loss" in unlike)
    return {"runs": names, "numbers": rows, "knobs": differ, "notes": why + steered + _notes(recipes, twins, numbers)}


def _scores(views: Sequence[RunView], twins: Sequence[str], unlike: bool) -> list[dict[str, Any]]:
    """Return a row for every other score that one of the runs has; ``unlike`` losses have no best one."""
    found = [benchmark_scores(view.scores) for view in views]
    rows = []
    for name, score in {name: score for each in found for name, (_, score) in each.items()}.items():
        if is_part(name):
            continue
        values = [each[name][1].value if name in each else None for each in found]
        better = None if unlike and name in LABELS else "low" if score.better == "lower" else "high"
        rows.append({"label": score_label(name, score), "values": values, "best": _best(values, better, twins)})
    return rows


def differences(recipes: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return ``[{"path", "values"}]`` of the knobs in which recipes differ."""
    differ = columns_of(recipes)["differ"]
    return [{"path": path, "values": values} for path, values in differ.items() if path not in NO_KNOBS]


def worded_differences(recipes: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return :func:`differences` for people: "none" for an empty knob, None where a recipe has no such knob."""
    return [
        row
        | {
            "values": [
                "none" if value is None and row["path"] in recipe else value
                for value, recipe in zip(row["values"], recipes.values(), strict=True)
            ]
        }
        for row in differences(recipes)
    ]


def losses_apart(folders: Sequence[RunFolder], references: Sequence[References]) -> tuple[tuple[str, ...], list[str]]:
    """Return the losses that do not compare between these runs, and why; nothing where all do."""
    kinds = {each.score: SCORE_TITLES[each.score] for each in references}
    if len(kinds) > 1:
        why = f": {OTHER_KINDS}" if {"next-token", "masked-only"} <= kinds.keys() else ""
        return _LOSSES, [f"No best loss: scores of different kinds ({', '.join(kinds.values())}){why}."]
    first: tuple[str, ScoredText] | None = None
    found: tuple[tuple[str, ...], list[str]] = ((), [])
    for folder, title in zip(folders, titles(folders), strict=True):
        scored = scored_text(folder)
        if scored is None:
            continue
        first = first or (title, scored)
        apart = first[1].apart(scored)
        if apart == OTHER_TEXT:
            return _LOSSES, [f"No best loss: {first[0]} and {title} {apart}."]
        if apart and not found[1]:
            found = _NATS, [f"No best loss in nats: {first[0]} and {title} {apart}; bits per byte compare."]
    return found


def scored_text(folder: RunFolder) -> ScoredText | None:
    """Return the text that a run is scored on; None if it has not said so yet, or its data is not ours."""
    try:
        return ScoredText.of(read_object(folder.environment)["data"])
    except (KeyError, TypeError):
        return None


def _numbers(view: RunView) -> dict[str, Any]:
    """Return the numbers of a run's result so far."""
    mfu = (result := Result.of(view))["mfu"]
    found = {
        **result,
        # Of so many steps only at the end; else the result has that of the last one.
        "train_loss": finite(number(last_result(view).get("train_loss"))),
        "loss": finite(number(view.state.get("loss"))),
        "mfu": None if mfu is None else 100 * mfu,
        "memory_for_training_gib": memory_for_training(view),
        "processes": view.environment.get("processes"),
    }
    texts = ("state", "learned_in_words")
    # What somebody damaged is no number.
    return {key: value for key, value in found.items() if key in texts or isinstance(value, int | float)}


def _shared_a_machine(views: Sequence[RunView]) -> bool:
    """Return True if one run's time from its start to its last sign of life overlaps with that of another."""
    spans = sorted(
        (str(view.state.get("host")), start, end)
        for view in views
        if (start := number(view.state.get("started"))) and (end := number(view.state.get("heartbeat")))
    )
    return any(one[0] == two[0] and two[1] < one[2] for one, two in itertools.pairwise(spans))


def _asked(recipe: Mapping[str, Any]) -> str:
    """Return a recipe without its seed as text: equal texts are repetitions."""
    return repr({path: value for path, value in recipe.items() if path not in (*NO_KNOBS, "seed")})


def _best(values: Sequence[float | None], better: str | None, twins: Sequence[str]) -> list[int]:
    """Return places of the best values, none where repetitions of one recipe (``twins``) lie as far apart as recipes
    do.
    """
    known = [(value, twin) for value, twin in zip(values, twins, strict=True) if value is not None]
    if better is None or len({twin for _, twin in known}) < 2:
        return []
    best = (min if better == "low" else max)(value for value, _ in known)
    winners = {twin for value, twin in known if value == best}
    others = [value for value, twin in known if twin not in winners]
    repeated = [[value for value, each in known if each == twin] for twin in set(twins)]
    spread = max(max(values) - min(values) for values in repeated if values)
    if not others or min(abs(value - best) for value in others) <= spread:
        return []
    return [place for place, value in enumerate(values) if value is not None and _printed(value) == _printed(best)]


def _printed(value: float) -> str:
    """Return a number as the page prints it (``shown`` in sheet.js): of two that read the same, neither is better."""
    whole = float(value).is_integer() or abs(value) >= 1000
    return f"{value:.0f}" if whole else f"{value:.{4 if abs(value) >= 0.01 else 3}g}"


def _notes(
    recipes: Sequence[Mapping[str, Any]], twins: Sequence[str], numbers: Sequence[Mapping[str, Any]]
) -> list[str]:
    notes = []
    if len(twins) > 1 and len(set(twins)) == 1:
        notes.append("Same recipe: differences are noise.")
    budgets = {(recipe.get("budget.unit"), recipe.get("budget.amount")) for recipe in recipes}
    seconds = [each.get("seconds") or 0.0 for each in numbers]
    equal = len(budgets) == 1 and next(iter(budgets))[0] == "seconds" and min(seconds) >= (1 - _EQUAL) * max(seconds)
    if equal and len({each.get("steps") for each in numbers}) > 1:
        notes.append("Equal seconds, unequal steps: a faster run trains on more text in the same time.")
    return notes
