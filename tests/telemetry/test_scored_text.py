"""What two runs were scored on, and why their losses do not compare."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.telemetry.scored_text import OTHER_TEXT, OTHER_TOKENS, ScoredText


def test_why_losses_do_not_compare() -> None:
    def of(text: str, tokenizer: str, tokens: str) -> ScoredText:
        made: dict[str, Any] = {"sources": {"digest": text}, "split": {"heldout_fraction": 0.1}}
        return ScoredText.of({**made, "heldout": {"sha256": tokens}, "tokenizer_sha256": tokenizer})

    first = of("a", "v", "a v")
    assert first.apart(of("a", "v", "a v")) == ""
    assert first.apart(of("a, more to train on", "v", "a v")) == ""
    assert first.apart(of("a", "w", "a w")) == OTHER_TOKENS
    assert first.apart(of("b", "v", "b v")) == OTHER_TEXT
    with pytest.raises(KeyError):
        ScoredText.of({})
