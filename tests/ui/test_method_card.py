"""Cards: the file beside the choice, else its docstring; formulas are left to MathJax, markup is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.choices.choice import registry
from workbench.ui import method_card
from workbench.ui.method_card import MethodCard, card_html


def test_a_choice_without_a_card_shows_its_docstring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choice = registry("depth")["progressive_drop"]
    monkeypatch.setattr(method_card.inspect, "getfile", lambda _choice: str(tmp_path / "nothing.py"))
    assert "Progressive Layer Dropping" in card_html(choice)


def test_a_card_is_shown_with_its_table_and_without_its_markup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "card.md").write_text("# Title\n\n<script>x()</script>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    monkeypatch.setattr(method_card.inspect, "getfile", lambda _choice: str(tmp_path / "card.py"))
    shown = card_html(registry("depth")["full"])
    assert "<h1>Title</h1>" in shown
    assert "<td>1</td>" in shown
    assert "<script>" not in shown


def test_the_widget_shows_the_card() -> None:
    card = MethodCard()
    card.show(registry("depth")["full"])
    assert card.value == card_html(registry("depth")["full"])
