"""The hash of a recipe's fields: what decides the training, and nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from workbench.base.fields import at, without

_SHUFFLED = {"kind": "shuffled", "reshuffle": "documents"}
LATE_FIELDS: dict[str, Any] = {
    "data.steps": [], "data.text.steps": [],
    "data.tokens_limit": 0, "data.text.tokens_limit": 0,
    "data.order": _SHUFFLED, "data.text.order": _SHUFFLED,
    "objective.selection": "token", "objective.span_boundary": False, "objective.sampled_words": 0,
    "objective.sentence": "none", "objective.sentence_weight": 1.0,
    "objective.further_tokens": 0, "objective.further_weight": 0.3,
}  # fmt: skip
"""Fields that came after the first recipes, and what they meant before: a hash does not count them while they do."""


def recipe_hash(fields: Mapping[str, Any]) -> str:
    """:attr:`Recipe.hash` of a recipe's fields as they are, such as those of a file that lacks fields of today."""
    decisive = {key: value for key, value in fields.items() if key not in ("name", "notes")}
    for path, before in LATE_FIELDS.items():
        if at(decisive, path) == before:
            decisive = without(decisive, path)
    # Forty bits: short enough for a folder's name, and a user's recipes will not collide.
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:10]
