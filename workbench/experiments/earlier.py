"""What earlier runs say about a race that has not begun: whether its recipes leave word frequencies in time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.store.find import run_ids
from workbench.store.folder import RunFolder, read_object

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

MOST_RUNS = 300
"""The newest so many runs of the folder are looked at."""
_INDIFFERENT = ("name", "notes", "seed", "budget", "schema_version")


class Evidence(NamedTuple):
    """Ids of runs: one that left the floor within the steps, one that did not in as many; empty without one."""

    left: str
    stayed: str


def evidence(recipe: Recipe, steps: int, root: Path) -> Evidence:
    """What ended runs of the same recipe, of any seed, say about so many steps."""
    wanted, left, stayed = _decisive(recipe.to_dict()), "", ""
    for run_id in sorted(run_ids(root), reverse=True)[:MOST_RUNS]:
        folder = RunFolder(root / run_id)
        result = read_object(folder.evaluations).get("result")
        if not isinstance(result, dict) or not isinstance(result.get("steps"), int):
            continue
        learned, took = result.get("learned"), result["steps"]
        off = learned in ("neighbours", "context") and took <= steps
        on = learned in ("nothing yet", "word frequencies") and took >= steps
        if (off or on) and _decisive(read_object(folder.recipe)) == wanted:
            left, stayed = (run_id if off else left), (run_id if on else stayed)
    return Evidence(left, stayed)


def _decisive(recipe: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in recipe.items() if key not in _INDIFFERENT}
