"""The help of a knob, to read before turning it: its path, bounds, unit and default, as text."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.fields import FieldInfo

from workbench.choices.knob import bounds_of, legal_bounds
from workbench.jupyter.compose.inputs import as_text


def label_of(name: str, unit: str, tooltip: str) -> str:
    """Return a knob's label as HTML: its name in words, the unit in small print unless the name ends with it,
    help on hover.

    ipywidgets gives a text box with a description no tooltip at all, and lets no ``<small>`` through.
    """
    *words, last = name.split("_")
    # Not twice where the name says it ("checkpoint seconds"), and as the unit is written ("memory GiB").
    said = last.lower() == unit.lower()
    label = html.escape(" ".join([*words, unit if said else last]))
    if unit and not said:
        label += f' <i class="lab-unit">{html.escape(unit)}</i>'
    return f'<span title="{html.escape(tooltip)}">{label}</span>'


def path_class(path: str) -> str:
    """Return CSS class of the row of the knob at ``path``: the page finds rows by it (``pathOf`` in page.js).

    Example:
        >>> path_class("optimizer.lr")
        'lab-path:optimizer.lr'
    """
    return f"lab-path:{path}"


def help_of(path: str, info: FieldInfo, default: Any) -> str:
    """Return two lines: what the knob does; its path, what is legal and what it is by default."""
    extra: Any = info.json_schema_extra or {}
    facts = [legal(info)]
    if unit := extra.get("unit"):
        facts.append(f"in {unit}")
    if default not in ("", None, []):
        facts.append(f"default {value_text(default)}")
    return f"{info.description or path}\n{path}" + "".join(f" · {fact}" for fact in facts if fact)


def legal(info: FieldInfo) -> str:
    """Return the declared bounds in signs (``> 0 and ≤ 1``); empty when there are none."""
    found = [legal_bounds(bounds_of(info)).replace(">=", "≥").replace("<=", "≤")]
    found += [f"a multiple of {item.multiple_of:g}" for item in info.metadata if hasattr(item, "multiple_of")]
    return " and ".join(filter(None, found))


def value_text(value: Any, most: int = 60) -> str:
    """Return a JSON value in few words: a choice as its kind and knobs, numbers as short as they read back,
    long text cut.
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} {value_text(each)}" for key, each in value.items() if key != "kind")
        text = f"{value.get('kind', '')} ({inner})" if inner else str(value.get("kind", ""))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        text = "[" + ", ".join(map(value_text, value)) + "]"
    else:
        text = as_text(value) or "(empty)"
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
