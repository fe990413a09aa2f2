"""The drop-down of recipes: presets at once, runs when it is about to be opened."""

from __future__ import annotations

import pytest

from tests.jupyter.messages import hear, say
from workbench import presets
from workbench.jupyter.compose.source_picker import SourcePicker


def test_runs_are_listed_when_asked_for_and_stay_out_of_the_saved_state(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[int] = []

    def runs() -> list[tuple[str, str]]:
        listed.append(1)
        return [("run:a", "a"), ("run:b", "b")]

    picker = SourcePicker("preset", "help", runs, value="fast")
    heard = hear(picker, monkeypatch)
    assert listed == []
    say(picker, {"list": "runs"})
    say(picker, {"list": "others"})
    say(picker, None)
    assert heard == [{"runs": [["run:a", "a"], ["run:b", "b"]]}]
    assert "run:a" not in str(picker.get_state())
    assert picker.presets == presets.names()
    assert picker.value == "fast"


def test_what_is_picked_comes_by_message() -> None:
    picker = SourcePicker("preset", "help", list, "what this began with", value="fast")
    seen: list[str | None] = []
    picker.observe(lambda change: seen.append(change["new"]), names="value")
    for pick in ("bert_tiny", "bert_tiny", None):
        say(picker, {"pick": pick})
    assert seen == ["bert_tiny", None]


def test_a_run_has_its_name_before_runs_are_listed() -> None:
    picker = SourcePicker("preset", "help", list, value="run:20260131-081500-bert-tiny-0a1b2c-3d4e")
    assert picker.words == "bert-tiny · 2026-01-31 08:15:00 UTC"
    picker.value = "fast"
    assert picker.words == ""
    picker.value = "run:20260131-081501-mine-0a1b2c-3d4e"
    assert picker.words.startswith("mine · ")


def test_what_is_given_has_no_source() -> None:
    assert SourcePicker("against", "", list, "what this began with").value is None
