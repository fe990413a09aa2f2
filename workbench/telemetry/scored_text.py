"""Scored texts of runs, and the reasons why losses of two runs do not compare."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class ScoredText(NamedTuple):
    """Documents that models of prepared data are scored on, and the tokens that they became.

    Example:
        >>> made = {"sources": {"kind": "files"}, "split": {"heldout_fraction": 0.1}}
        >>> coarse, fine = (
        ...     ScoredText.of({**made, "heldout": {"sha256": name}, "tokenizer_sha256": name}) for name in ("a", "b")
        ... )
        >>> coarse.text == fine.text, coarse.tokens == fine.tokens
        (True, False)
    """

    text: str
    tokens: str

    @classmethod
    def of(cls, fingerprint: Mapping[str, Any]) -> ScoredText:
        """From the fingerprint of prepared data, as runs store it.

        Raises:
            KeyError, TypeError: of what is no such fingerprint.
        """
        tokens = fingerprint["heldout"]["sha256"] + fingerprint["tokenizer_sha256"]
        return cls(json.dumps([fingerprint["sources"], fingerprint["split"]], sort_keys=True), tokens)

    def apart(self, other: ScoredText) -> str:
        """Return why losses of the two do not compare, after two names; empty where they do.

        Bits per byte compare unless the sentence is :data:`OTHER_TEXT`.
        """
        if self.tokens == other.tokens:
            return ""
        return OTHER_TEXT if self.text != other.text else OTHER_TOKENS


def part_mark(status: str) -> str:
    """Return what stands before the held-out score of a run in that status; empty before a final one.

    Before the end a large held-out set is scored in part, a small one whole.
    """
    return "" if status == "finished" else "~"


PART_SCORE = "before the end: on a part of a large held-out set, on all of a small one"
"""Meaning of the mark."""
OTHER_TEXT = "are scored on different text"
OTHER_TOKENS = "have different tokenizers, and nats per token of one are no nats of the other"
OTHER_KINDS = "what follows is easier to predict from both sides"
"""Reason why scores of causal and masked objectives do not compare."""
