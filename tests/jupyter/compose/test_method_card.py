"""Cards: the file beside the choice, else its docstring; formulas are left to MathJax, markup is not."""

from __future__ import annotations

import base64
import inspect
import re
from pathlib import Path

import pytest

from workbench.choices import choice as choice_module
from workbench.choices.choice import registry
from workbench.jupyter.compose.method_card import CardPanel, MethodCard, card_html


def test_a_choice_without_a_card_shows_its_docstring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choice = registry("depth")["progressive_drop"]
    monkeypatch.setattr(choice_module.inspect, "getfile", lambda _choice: str(tmp_path / "nothing.py"))
    assert "Progressive Layer Dropping" in card_html(choice)


def test_a_card_is_shown_with_its_table_and_without_its_markup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "card.md").write_text("# Title\n\n<script>x()</script>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    monkeypatch.setattr(choice_module.inspect, "getfile", lambda _choice: str(tmp_path / "card.py"))
    shown = card_html(registry("depth")["full"])
    assert "<h1>Title</h1>" in shown
    assert "<td>1</td>" in shown
    assert "<script>" not in shown


def test_pictures_of_the_cards_folder_travel_inside_and_no_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "choices"
    folder.mkdir()
    (folder / "own.png").write_bytes(b"\x89PNG own")
    (tmp_path / "secret.png").write_bytes(b"\x89PNG secret")
    (folder / "own.svg").write_text("<svg onload='x()'/>")
    names = ["own.png", "../secret.png", "http://example.org/a.png", "own.svg", "missing.png", f"{folder}/own.png"]
    (folder / "card.md").write_text("\n\n".join(f"![words {i}]({name})" for i, name in enumerate(names)))
    monkeypatch.setattr(choice_module.inspect, "getfile", lambda _choice: str(folder / "card.py"))
    shown = card_html(registry("depth")["full"])
    own = base64.b64encode(b"\x89PNG own").decode()
    assert re.findall(r"<img [^>]*>", shown) == [f'<img src="data:image/png;base64,{own}" alt="words 0" />']
    for i in range(1, len(names)):
        assert f"<p>words {i}</p>" in shown


@pytest.mark.parametrize("kind", ["progressive_drop", "stacking", "multi_stage"])
def test_depth_methods_show_what_they_do(kind: str) -> None:
    choice = registry("depth")[kind]
    picture = Path(inspect.getfile(choice)).with_suffix(".png")
    assert picture.stat().st_size < 80_000
    assert base64.b64encode(picture.read_bytes()).decode() in card_html(choice)


def test_the_widget_shows_the_card() -> None:
    card = MethodCard()
    card.show(registry("depth")["full"])
    assert card.value == card_html(registry("depth")["full"])


def test_the_panel_is_headed_and_asks_to_be_closed() -> None:
    heard: list[int] = []
    panel = CardPanel(lambda: heard.append(1))
    assert panel.card is None, "no typesetter before the first card"
    panel.show("learning <rate>", registry("depth")["full"])
    assert panel.card is not None
    assert panel.card.value == card_html(registry("depth")["full"])
    assert "learning &lt;rate&gt;: full" in panel.title.value
    panel.children[0].children[1].click()
    assert heard == [1]
