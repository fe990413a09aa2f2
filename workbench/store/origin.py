"""The origin of a fork: ``origin.json`` as tables, pictures and reports read it. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.base.json_lines import number
from workbench.store.folder import RunFolder, is_run_id, read_object
from workbench.store.labels import name_of
from workbench.store.reached import budget_share


@dataclass(frozen=True)
class Origin:
    """The checkpoint that a fork began with, as read from its ``origin.json``.

    Attributes:
        run: id of the run it was forked from, which may be deleted by now. name: what people called that run then.
        step: optimizer steps done at the checkpoint.
        diff: ``{path: [before, after]}`` of what was changed.
        fresh: the changed knobs because of which the optimizer began without state.
        seconds, tokens: of training that the checkpoint brings along; 0 where an earlier version did not say.
    """

    run: str
    step: int
    name: str = ""
    diff: Mapping[str, Any] = field(default_factory=dict)
    fresh: tuple[str, ...] = ()
    seconds: float = 0.0
    tokens: float = 0.0

    def share(self, budget: Any) -> float:
        """Return the part of a budget (an object with ``amount`` and ``unit``) that was spent before; 0..1."""
        share = budget_share(budget, {"step": self.step, "tokens": self.tokens, "seconds": self.seconds})
        return share if 0 <= share < 1 else 0.0


def origin_of(folder: RunFolder) -> Origin | None:
    """Read the origin of a fork; None for a run that began at its own step 0."""
    raw = read_object(folder.origin)
    if not isinstance(raw.get("run"), str) or not isinstance(raw.get("step"), int):
        return None
    diff, fresh, name = raw.get("diff"), raw.get("fresh"), raw.get("name")
    return Origin(
        run=raw["run"],
        step=raw["step"],
        name=name if isinstance(name, str) else "",
        diff={path: pair for path, pair in diff.items() if isinstance(pair, list) and len(pair) == 2}
        if isinstance(diff, dict)
        else {},
        fresh=tuple(map(str, fresh)) if isinstance(fresh, list) else (),
        seconds=_amount(raw.get("seconds")),
        tokens=_amount(raw.get("tokens")),
    )


def origin_now(folder: RunFolder) -> Origin | None:
    """Return :func:`origin_of` with the name that the other run has now, where it is still there."""
    origin = origin_of(folder)
    if origin is None or not is_run_id(origin.run):
        return origin
    parent = RunFolder(folder.path.parent / origin.run)
    return replace(origin, name=name_of(parent)) if parent.recipe.exists() else origin


def _amount(raw: Any) -> float:
    return found if 0 < (found := number(raw)) < math.inf else 0.0
