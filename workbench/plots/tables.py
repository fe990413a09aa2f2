"""Tables of a report: HTML fragments in which everything that came from a run is escaped."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.base.fields import by_axis, differences, flatten
from workbench.base.text import UNKNOWN, count, decimal, plain, utc
from workbench.plots.curves import heldout_curve, heldout_scores, x_at_steps
from workbench.plots.facts import facts_side_by_side
from workbench.plots.plan_rows import COLUMNS, plan_rows
from workbench.store.effective_knobs import EffectiveKnobs
from workbench.store.evaluations import is_part, score_label
from workbench.store.measured import measured
from workbench.store.score_table import ScoreRow

if TYPE_CHECKING:
    from workbench.store.view import RunView

LONGEST_VALUE = 300
MOST_EVENTS = 200
MOST_FINGERPRINT_CHARACTERS = 20_000
LAUNCHED = EffectiveKnobs()
"""Nothing was steered."""


def result_table(views: Sequence[RunView]) -> str:
    """Return the facts of every run; with several runs also each speed as a multiple of the first one's."""
    rows = [*facts_side_by_side(views).items()]
    # The first run given is the baseline, as it has the first colour in the pictures.
    first = measured(views[0], "tokens_per_second")
    if len(views) > 1 and first:
        speeds = [measured(view, "tokens_per_second") for view in views]
        ratios = ["-" if speed is None else f"{speed / first:.2f}x" for speed in speeds]
        rows.insert(1 + [label for label, _ in rows].index("tokens/s"), ("tokens/s against the first", ratios))
    return table([view.name for view in views], rows)


def score_tables(name: str, rows: Sequence[ScoreRow]) -> str:
    """Return a run's scores of benchmarks as a table, how each was measured, and their parts folded away below."""
    heads = ("value", "held against", "items", "step", "over seeds")
    whole = [row for row in rows if not is_part(row.name)]
    parts = [row for row in rows if is_part(row.name)]
    notes = "".join(
        f'<p class="quiet">{escape(f"{row.name}: {row.score.note}.")}</p>' for row in whole if row.score.note
    )
    folded = f"<details><summary>By group</summary>{table(heads, _score_cells(parts))}</details>" if parts else ""
    return table(heads, _score_cells(whole), corner=name) + folded + notes


def _score_cells(rows: Sequence[ScoreRow]) -> list[tuple[str, list[str]]]:
    return [
        (
            row.name if is_part(row.name) else score_label(row.name, row.score),
            [row.value, row.beside or UNKNOWN, count(row.score.count), f"{row.step:,}",
             row.over_seeds or UNKNOWN],
        )
        for row in rows
    ]  # fmt: skip


def recipe_table(views: Sequence[RunView], *, differing_only: bool) -> str:
    """Return the recipes, one row per knob; with several runs the rows that differ are marked.

    Args:
        differing_only: leave out the knobs that are the same everywhere.
    """
    flat = [view.knobs.over(view.recipe) for view in views]
    marked = set(differences(flat))
    # The union of all knobs, in the order of first appearance: recipes of other kinds have other knobs.
    paths = dict.fromkeys(path for fields in flat for path in fields if path in marked or not differing_only)
    rows = [(path, [_value(fields[path]) if path in fields else "-" for fields in flat]) for path in paths]
    # Where only rows that differ are shown, marking all of them would say nothing.
    return table([view.name for view in views], rows, marked if not differing_only else set())


def choices_table(recipe: Mapping[str, Any], knobs: EffectiveKnobs = LAUNCHED) -> str:
    """Return :func:`choices` as a table."""
    return table(["choice", "knobs"], [(axis, cells) for axis, *cells in choices(recipe, knobs)])


def choices(recipe: Mapping[str, Any], knobs: EffectiveKnobs = LAUNCHED) -> list[tuple[str, str, str]]:
    """Return a recipe as JSON has it, one row per axis.

    Args:
        knobs: of a run, where they may have been steered since it was launched.
    """
    return by_axis(recipe, knobs.over(recipe), _value)


def heldout_table(view: RunView) -> str:
    """Return every held-out evaluation of a run: step, tokens, seconds, loss in nats, ``~`` on a part of the tokens."""
    line, whole = heldout_scores(view)
    others = {x: heldout_curve(view, x).x_N for x in ("tokens", "seconds")}
    # Telemetry of a damaged run may lack them for some of the steps: read off between the records that have them.
    tokens_N, seconds_N = (
        x_N if len(x_N) == len(line) else x_at_steps(view, line.x_N.tolist(), x) for x, x_N in others.items()
    )
    losses = [("~" if i < len(line) - len(whole) else "") + decimal(loss, 4) for i, loss in enumerate(line.y_N)]
    rows = [(count(line.x_N[i]), [count(tokens_N[i]), decimal(seconds_N[i], 1), losses[i]]) for i in range(len(line))]
    return table(
        ["tokens", "seconds", "held-out loss (nats; ~ before the end, on a part of a large set)"], rows, corner="step"
    )


def events_table(view: RunView) -> str:
    """Return what happened, the latest :data:`MOST_EVENTS`: step, kind, words, UTC time."""
    events = view.telemetry.events[-MOST_EVENTS:]
    rows = [
        (str(event.get("step", "")), [utc(event.get("time")), str(event.get("kind", "")), str(event.get("text", ""))])
        for event in events
    ]
    return table(["time (UTC)", "kind", "what"], rows, corner="step")


def environment_table(views: Sequence[RunView]) -> str:
    """Return versions, device and measured rates, without the data fingerprint and the execution's plan."""
    flat = [flatten({k: v for k, v in view.environment.items() if k not in ("data", "plan")}) for view in views]
    paths = list(dict.fromkeys(path for fields in flat for path in fields))
    rows = [(path, [_value(fields.get(path, "-")) for fields in flat]) for path in paths]
    return table([view.name for view in views], rows)


def plan_table(view: RunView) -> str:
    """Return what a calibration tried for a run whose execution chose its knobs; empty for every other run."""
    rows = [(knob, cells) for knob, *cells in plan_rows(view.environment.get("plan"))]
    return table(COLUMNS[1:], rows, corner=COLUMNS[0]) if rows else ""


def preparation_table(view: RunView) -> str:
    """Return what each preparation step removed and changed; empty for a run without any."""
    data = view.environment.get("data")
    steps = data.get("preparation") if isinstance(data, Mapping) else None
    columns = {
        name: name.replace("_", " ")
        for name in ("documents_in", "removed", "changed", "characters_in", "characters_out")
    }
    rows = [(str(step["kind"]), [f"{step[name]:,}" for name in columns]) for step in steps or ()]
    return table(list(columns.values()), rows, corner="step") if rows else ""


def fingerprint(view: RunView) -> str:
    """Return what the data were made of, as indented JSON."""
    text = json.dumps(view.environment.get("data") or {}, indent=2, ensure_ascii=False)
    # A corpus of thousands of files would otherwise be most of the page.
    if len(text) > MOST_FINGERPRINT_CHARACTERS:
        text = text[:MOST_FINGERPRINT_CHARACTERS] + "\n... the rest is in the run's environment.json"
    return f"<pre>{escape(text)}</pre>"


def table(
    names: Sequence[str],
    rows: Sequence[tuple[str, Sequence[str]]],
    marked: set[str] | frozenset[str] = frozenset(),
    corner: str = "",
) -> str:
    """Return an HTML table of escaped text.

    Args:
        marked: row heads whose row is highlighted.
        corner: head of the column of row heads.
    """
    if not rows:
        return '<p class="quiet">nothing here yet</p>'
    head = "".join(f'<th scope="col">{escape(plain(name))}</th>' for name in names)
    classes = ("same", "differs")
    body = "".join(
        f'<tr class="{classes[label in marked]}"><th scope="row">{escape(label)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for label, cells in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr><th scope="col">{escape(corner)}</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def escape(text: str) -> str:
    """Return text for HTML; broken Unicode (JSON can hold it, UTF-8 cannot) becomes question marks."""
    return html.escape(text.encode("utf-8", "replace").decode())


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"
