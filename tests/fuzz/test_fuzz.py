"""The small budget of the fuzzers, and that they would find what they look for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.run import escape_of, fuzz
from tests.fuzz.targets import TARGETS, PastedText


@pytest.mark.parametrize("kind", TARGETS)
def test_no_input_escapes(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = TARGETS[kind](tmp_path)
    assert fuzz(target, target.small, seed=1_000_000_000) == 0, capsys.readouterr().out


def test_an_escape_is_found_and_names_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.targets.read_json", lambda text: {}[text])
    assert any("KeyError in test_fuzz.py" in escape_of(PastedText(tmp_path), seed) for seed in range(20))
