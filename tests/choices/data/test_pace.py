"""Progress of a reading: said now and then, with the time that is left where the length is known."""

from __future__ import annotations

import pytest

from workbench.choices.data import pace
from workbench.choices.data.pace import Pace


def test_it_says_how_far_it_is_and_hands_every_text_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10_000, 4))
    monkeypatch.setattr(pace.time, "monotonic", lambda: float(next(now)))
    texts = ["x" * 50_000] * 160
    said: list[str] = []
    first = Pace(said.append, "reading")
    assert list(first.watch(texts)) == texts
    assert first.seen == 8_000_000
    assert said[0] == "reading: 2 million characters"
    said.clear()
    assert list(Pace(said.append, "encoding", first.seen).watch(texts)) == texts
    assert said[0] == "encoding: 2 of 8 million characters, about 48 s left"
    assert len(said) < 6, "every ten seconds, not at every look at the clock"
