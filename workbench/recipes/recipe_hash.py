"""The hash of a recipe's fields: what decides the training, and nothing else; files of before read as before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_SHUFFLED = {"kind": "shuffled", "reshuffle": "documents"}
LATE_FIELDS: dict[str, Any] = {
    "data.steps": [], "data.text.steps": [],
    "data.tokens_limit": 0, "data.text.tokens_limit": 0,
    "data.order": _SHUFFLED, "data.text.order": _SHUFFLED,
    **{f"data.{place}{knob}": before for place in ("", "text.", "parts.source.")
       for knob, before in (("bad_text", "refuse"), ("expansion", 100), ("stream", 0), ("stream_block", 1 << 22),
                            ("stream_mib", 1024))},
    "objective.selection": "token", "objective.span_boundary": False, "objective.sampled_words": 0,
    "objective.sentence": "none", "objective.sentence_weight": 1.0,
    "objective.further_tokens": 0, "objective.further_weight": 0.3,
    "architecture.notes": {"kind": "none"},
    "optimizer.combine": {"kind": "mean"}, "optimizer.average": 0.0,
    "execution.parallel": {"kind": "data", "bucket_mib": 25.0, "compression": "none", "rank": 4},
    "budget.rollbacks": 0,
}  # fmt: skip
"""Fields that came after the first recipes, and what they meant before: a hash does not count them while they do.
A path goes on in every item of a list."""


def recipe_hash(fields: Mapping[str, Any]) -> str:
    """Return :attr:`Recipe.hash` of a recipe's fields as they are,
    such as those of a file that lacks fields of today.
    """
    decisive = {key: value for key, value in fields.items() if key not in ("name", "notes")}
    for path, before in LATE_FIELDS.items():
        decisive = _left_out(decisive, path, before)
    # Forty bits: short enough for a folder's name, and a user's recipes will not collide.
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:10]


def _left_out(fields: Any, path: str, before: Any) -> Any:
    """Return fields without the one at a path, where it means what it did before."""
    if isinstance(fields, list):
        return [_left_out(each, path, before) for each in fields]
    key, _, rest = path.partition(".")
    if not isinstance(fields, Mapping) or key not in fields:
        return fields
    if rest:
        return {**fields, key: _left_out(fields[key], rest, before)}
    return {name: value for name, value in fields.items() if name != key or value != before}


def as_before(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe file's fields with what its silence meant when there was no fixed list of packages: all of them.

    Example:
        >>> as_before({"data": "embedded"})
        {'data': {'kind': 'embedded', 'packages': []}}
    """
    return {**fields, "data": _all_packages(fields.get("data", "embedded"))}


def _all_packages(data: Any) -> Any:
    data = {"kind": data} if data == "embedded" else data
    if not isinstance(data, Mapping):
        return data
    if data.get("kind") == "embedded":
        return {"packages": [], **data}
    if isinstance(parts := data.get("parts"), list):
        read = [{**part, "source": _all_packages(part.get("source"))} if isinstance(part, Mapping) else part
                for part in parts]  # fmt: skip
        return {**data, "parts": read}
    return data
