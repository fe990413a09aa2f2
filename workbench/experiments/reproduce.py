"""A notebook that repeats a run or an experiment: its recipes as Python, its parameters, and how it ended."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pprint import pformat
from typing import Any

from workbench.base.errors import RunError
from workbench.base.files import write_bytes
from workbench.base.text import plain, plain_lines
from workbench.choices.progress import Budget, parse_budget
from workbench.client.run import Run
from workbench.experiments.experiment import Experiment
from workbench.experiments.finetune.finetune import Finetuning, finetune
from workbench.experiments.race.race import Race, race
from workbench.experiments.sweep.space import Space
from workbench.experiments.sweep.sweep import Sweep, sweep
from workbench.experiments.sweep.sweep_plan import TUNING_SEED
from workbench.experiments.tune.tune import Tuning, tune
from workbench.recipes.code import shortest_code
from workbench.store.folder import runs_root
from workbench.store.origin import origin_of
from workbench.store.regression import TOLERANCES, spent_text
from workbench.store.result import Result
from workbench.store.state import ENDED_WELL

Cell = tuple[str, str]
"""Its id, and its text; those of code are listed in :data:`_CODE`."""
_CODE = ("parameters", "recipe", "arms", "space", "options", "launch", "wait", "compare", "result")
_SPENT = ("budget.amount", "budget.unit")
"""Paths that the first cell says."""
_FAIL_ON = "which verdict fails this notebook: never, worse, undecided or not-better"
_USUAL = "worse"
"""The verdict that fails a repeat, unless the original has it."""
_TOLERANCE = "how much worse a repeat may end: rounding differs between machines; another seed needs more"
_RUNS_DIR = "None: $WORKBENCH_RUNS, else ./runs"


def cells_of(held: Run | Experiment[Any, Any]) -> list[Cell]:
    """Return cells that ask for the same training again.

    Raises:
        RunError: a plan cannot be read. RecipeError: parts of a run's recipe were objects of the user's.
    """
    if isinstance(held, Run):
        return _run_cells(held)
    return _CELLS[type(held)](held)


def _run_cells(run: Run) -> list[Cell]:
    recipe = run.recipe
    recipe.check_whole(run.id)
    fields, result = recipe.to_dict(), run.result
    spent = spent_text(recipe.budget.amount, recipe.budget.unit)
    return [
        ("title", _title("run", run.id, str(result)) + "".join(f"\n\n{line}" for line in _not_repeated(run))),
        ("parameters", _parameters(
            seed=(recipe.seed, "the run's own"),
            budget=(_budget_text(recipe.budget), "the run's own; 60 s or 1e6 tokens also work"),
            reference_loss=_reference(run, result),
            tolerance=(TOLERANCES["nats"], _TOLERANCE),
            runs_dir=(_runs_dir(run.folder.path.parent), _RUNS_DIR),
        )),
        ("recipe", "import workbench as wb\n\nrecipe = " + shortest_code(fields, {}, (*_SPENT, "seed"))
         + "\nrecipe = recipe.with_(seed=seed, budget=budget)"),
        ("launch", "run = wb.launch(recipe, runs_dir=runs_dir)\nrun"),
        ("wait", "result = run.wait_blocking()"),
        ("compare-text", "## Compared with the original run\n\nIf that run is still in the runs folder."),
        ("compare", f"before = [each for each in wb.runs(runs_dir) if each.id == {run.id!r}]\n"
                    "wb.compare(*before, run)"),
        ("result", "print(result)\n"
                   f"result.require(reference_loss, tolerance, score={result['score']!r}, budget={spent!r})"),
    ]  # fmt: skip


def _race_cells(held: Race) -> list[Cell]:
    plan = held.plan
    lines = ["import workbench as wb", "", "arms = {}"]
    starts: dict[str, dict[str, Any]] = {}
    for arm, fields in plan.arms.items():
        lines.append(f"arms[{arm!r}] = {shortest_code(fields, starts, _SPENT)}")
        starts[f"arms[{arm!r}]"] = fields
    options = _unlike_defaults(race, {
        "baseline": plan.baseline, "score": plan.score, "reference": plan.reference, "clock": plan.clock,
        "margin": plan.margin, "alpha": round(plan.design.alpha * len(plan.others), 12),
        "name": None if plan.name == " vs ".join(plan.arms) else plan.name,
        "initial": {int(seed): path for seed, path in plan.initial.items()} or None,
    })  # fmt: skip
    return _experiment_cells(
        held, "wb.race(arms, budget, seeds, **options, runs_dir=runs_dir)", "require(fail_on)",
        {
            "seeds": (_seeds(plan.seeds, 0), "at most this many, or a list of them"),
            "budget": (plan.budget, "per run, in reference time; 600 steps or 1e6 tokens also work"),
            "fail_on": _fail_on(held),
        },
        {"arms": "\n".join(lines), "options": f"options = {_literal(options)}"}, _not_judged(held),
    )  # fmt: skip


def _sweep_cells(held: Sweep) -> list[Cell]:
    plan = held.plan
    options = _unlike_defaults(sweep, {
        "sampler": plan.sampler, "runs": None if plan.sampler == "grid" else plan.runs, "seed": plan.seed,
        "early_stopping": plan.early_stopping or None, "score": plan.score, "clock": plan.clock,
        "name": None if plan.name == f"{plan.recipe['name']}: {', '.join(plan.space)}"[:80] else plan.name,
    })  # fmt: skip
    return _experiment_cells(
        held, "wb.sweep(recipe, space, seeds=seeds, budget=budget, **options, runs_dir=runs_dir)",
        f"require(reference_score, tolerance, budget={plan.budget!r})",
        {
            "seeds": (_seeds(plan.seeds, TUNING_SEED), "per point, or a list of them"),
            "budget": (plan.budget or None, "per run; 60 s is reference time; None: the recipe's own"),
            "reference_score": _reference_score(held),
            "tolerance": (TOLERANCES[plan.score], _TOLERANCE),
        },
        _recipe_cells(plan.recipe, plan.space, options),
    )  # fmt: skip


def _tuning_cells(held: Tuning) -> list[Cell]:
    plan = held.plan
    options = _unlike_defaults(tune, {
        "each": plan.each, "seeds": _seeds(plan.seeds, TUNING_SEED), "race_seeds": _seeds(plan.race_seeds, 0),
        "score": plan.score, "name": None if plan.name == f"{plan.recipe['name']} tuned"[:80] else plan.name,
    })  # fmt: skip
    return _experiment_cells(
        held, "wb.tune(recipe, budget, space, **options, runs_dir=runs_dir)", "require(fail_on)",
        {"budget": (plan.budget, "for all runs together"), "fail_on": _fail_on(held)},
        _recipe_cells(plan.recipe, held.sweep.plan.space, options), _not_judged(held),
    )  # fmt: skip


def _finetuning_cells(held: Finetuning) -> list[Cell]:
    plan = held.plan
    options = _unlike_defaults(finetune, {**plan.asked, "rates": list(plan.rates), "step": plan.encoder.step})
    return _experiment_cells(
        held, "wb.finetune(encoder, seeds=seeds, **options, runs_dir=runs_dir)", "require()",
        {"encoder": (plan.encoder.folder, "a run, or a folder of transformers"),
         "seeds": (_seeds(plan.seeds, 0), "per rate, or a list of them")},
        {"options": f"import workbench as wb\n\noptions = {_literal(options)}"},
    )  # fmt: skip


def _recipe_cells(recipe: Mapping[str, Any], space: Space, options: Mapping[str, Any]) -> dict[str, str]:
    return {
        "recipe": f"import workbench as wb\n\nrecipe = {shortest_code(recipe, {})}",
        "space": f"space = {_space(space)}",
        "options": f"options = {_literal(options)}",
    }


def _experiment_cells(
    held: Race | Sweep | Tuning | Finetuning, call: str, judge: str, parameters: Mapping[str, tuple[Any, str]],
    setup: Mapping[str, str], title: str = "",
) -> list[Cell]:  # fmt: skip
    """Return the cells that begin, follow and judge an experiment.

    Args:
        call: that begins it. judge: the method of its result. setup: cells before that. title: added to the first.
    """
    noun = held.kind.noun
    runs_dir = _runs_dir(Path(held.plan.runs_dir)), _RUNS_DIR
    return [
        ("title", _title(noun, held.id, held.summary) + title),
        ("parameters", _parameters(**parameters, runs_dir=runs_dir)),
        *setup.items(),
        ("launch", f"{noun} = {call}"),
        ("wait", f"result = {noun}.wait_blocking()"),
        ("compare", f"{noun}.watch()"),
        ("result", f"print({noun}.table)\nprint(result)\nresult.{judge}"),
    ]


_CELLS: dict[type, Callable[[Any], list[Cell]]] = {
    Race: _race_cells, Sweep: _sweep_cells, Tuning: _tuning_cells, Finetuning: _finetuning_cells,
}  # fmt: skip


def write_notebook(path: Path, cells: Sequence[Cell]) -> Path:
    """Write a notebook whole; returns its path.

    Raises:
        RunError: something is there: notebooks are edited, and this one would replace it.
        OSError: it cannot be written.
    """
    if path.exists():
        raise RunError(f"'{path}' is there already, and may have been edited; name another file (--out FILE)")
    path.parent.mkdir(parents=True, exist_ok=True)
    notebook = {
        "cells": [_cell(*cell) for cell in cells],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                     "language_info": {"name": "python"}},
        "nbformat": 4, "nbformat_minor": 5,
    }  # fmt: skip
    write_bytes(path, (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode())
    return path


def _cell(name: str, text: str) -> dict[str, Any]:
    whole: dict[str, Any] = {"cell_type": "markdown", "id": name, "metadata": {}, "source": text}
    if name in _CODE:
        tags = {"tags": ["parameters"]} if name == "parameters" else {}
        whole |= {"cell_type": "code", "metadata": tags, "execution_count": None, "outputs": []}
    return whole


def _title(noun: str, id: str, ended: str) -> str:
    # In a fence, so that no name is markup; backticks of a name must not end it.
    quoted = plain_lines(ended).replace("```", "'''")
    return (
        f"# A {noun}, repeated\n\nWritten by `workbench notebook {id}`. The first code cell has the parameters that "
        f"papermill can change; the rest is as in the original. The {noun} ended like this:\n\n"
        f"```text\n{quoted}\n```"
    )


def _not_repeated(run: Run) -> list[str]:
    """Name events of a run that its recipe alone does not repeat."""
    found = []
    if (origin := origin_of(run.folder)) is not None:
        found.append(f"That run was forked from `{origin.run}` at step {origin.step:,}; this one starts from its own "
                     "step 0.")  # fmt: skip
    elif run.folder.initial.is_dir():
        found.append("That run began with the weights of another; this one draws its own from the seed.")
    if run.recipe.budget.unit == "seconds":
        found.append("Its budget is a time: a slower or busier machine takes fewer steps in it and ends worse. For a "
                     f"repeat that does not depend on this, give as budget the {run.result['steps'] or 0:,} steps that "
                     "it took.")  # fmt: skip
    knobs = [event for event in run.telemetry().events if event.get("kind") == "knob"]
    if knobs:
        times = "once" if len(knobs) == 1 else f"{len(knobs)} times"
        found.append(f"Knobs of that run were changed {times} while it trained; here they stay as in its recipe, so "
                     "it may end elsewhere.")  # fmt: skip
    return found


def _reference(run: Run, result: Result) -> tuple[float | None, str]:
    """Return the reference of a repeat, and a comment."""
    if result["state"] not in ENDED_WELL or result["heldout_loss"] is None:
        return None, "the original did not end with a held-out loss: nothing is judged"
    if origin_of(run.folder) is not None:
        return None, "the original continued another run, so its loss does not compare: nothing is judged"
    return round(result["heldout_loss"], 4), "the original's held-out loss, nats; fails above it; None: not judged"


def _reference_score(held: Sweep) -> tuple[float | None, str]:
    best = held.result["best"]
    if held.status != "finished" or best is None or best["score"] is None:
        return None, "the original did not end with a best point: nothing is judged"
    unit = held.plan.score.replace("_", " ")
    return round(best["score"], 4), f"of the original's best point, {unit}; fails above it; None: not judged"


def _fail_on(held: Race | Tuning) -> tuple[str, str]:
    """Return the verdict that fails a repeat, and a comment: never one that the original has itself."""
    if held.result.failures(_USUAL):
        return "never", f"'{_USUAL}' would fail a repeat that ends as the original did; {_FAIL_ON}"
    return _USUAL, _FAIL_ON


def _not_judged(held: Race | Tuning) -> str:
    """Return why a repeat is not judged; empty where it is."""
    found = held.result.failures(_USUAL)
    if not found:
        return ""
    arms = ", ".join(plain(arm).replace("`", "'") for arm in found)
    return (f"\n\nIn the original, `{arms}` was worse or failed, so a repeat that ends in the same way is no failure: "
            f"this notebook has `fail_on = 'never'`, where others have `'{_USUAL}'`.")  # fmt: skip


def _parameters(**values: tuple[Any, str]) -> str:
    return "\n".join(f"{name} = {value!r}  # {comment}" for name, (value, comment) in values.items())


def _budget_text(budget: Budget) -> str:
    """Return a budget as text that reads back as the same number."""
    if budget.unit != "seconds" and not budget.amount.is_integer():
        # Of an earlier version, or given as a number: the last step is trained whole.
        budget = budget.model_copy(update={"amount": float(math.ceil(budget.amount))})
    text = str(budget)
    return text if parse_budget(text)["amount"] == budget.amount else f"{budget.amount!r} {budget.unit}"


def _runs_dir(root: Path) -> str | None:
    return None if root.resolve() == runs_root(None).resolve() else str(root)


def _seeds(seeds: Sequence[int], first: int) -> int | list[int]:
    return len(seeds) if list(seeds) == list(range(first, first + len(seeds))) else list(seeds)


def _space(space: Space) -> str:
    """Return a space as text."""
    ranges = {path: f"{knob.low!r}..{knob.high!r} {'log' if knob.log else 'linear'}" for path, knob in space.items()}
    return _literal({path: list(knob.values) or ranges[path] for path, knob in space.items()})


def _unlike_defaults(function: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    known = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if value != known[name].default}


def _literal(value: Any) -> str:
    return pformat(value, sort_dicts=False, width=110)
