"""One set of tokens: every style sheet of the page takes type, space, colour and radius from theme.css."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import workbench.jupyter
import workbench.plots

SOURCES = Path(workbench.jupyter.__file__).parent / "frontend" / "src"
PLOTS = Path(workbench.plots.__file__).parent
THEME = SOURCES / "theme.css"
SHEETS = [*sorted(path for path in SOURCES.rglob("*.css") if path != THEME), PLOTS / "forecast.css"]
OF_ITS_OWN = {
    "a colour": r"#[0-9a-fA-F]{3,8}\b|\b(?:rgba?|hsla?)\(",
    "a theme's variable": r"--(?:jp|vscode)-",
    "a token": r"--wb-[\w-]+\s*:",
    "a type size": r"font(?:-size)?:\s*[\d.]+(?:px|pt|em|rem)",
    "a radius": r"border-radius:[^;}]*\d(?:px|em)",
    "a space": r"(?<![\w-])(?:(?:row-|column-)?gap|(?:padding|margin)(?:-\w+)?):[^;}]*(?<![\w.-])(?:[2-9]|\d{2,})px",
}


UNCOMMON = re.compile("[\u2400-\u245f\ue000-\uf8ff]")
"""Signs of blocks that the fonts of most systems leave out, so that a box stands in their place."""


def used(text: str) -> set[str]:
    return set(re.findall(r"var\((--wb-[\w-]+)", text))


def defined(text: str) -> set[str]:
    return set(re.findall(r"(--wb-[\w-]+)\s*:", text))


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.name)
def test_a_style_sheet_has_nothing_of_its_own(path: Path) -> None:
    # A sum lines something up with its neighbour; it is no space of its own.
    css = re.sub(r"/\*.*?\*/|calc\([^;}]*\)", "", path.read_text(encoding="utf-8"), flags=re.S)
    for what, pattern in OF_ITS_OWN.items():
        found = [css[match.start() : match.end()] for match in re.finditer(pattern, css)]
        assert not found, f"{path.name} has {what} of its own, {found[0]!r}; theme.css has the tokens"
    assert used(css) <= defined(THEME.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.name)
def test_no_rule_looks_below(path: Path) -> None:
    """Rules with ``:has`` took 190 of the 197 ms in which the Lab's styles were worked out after a knob had changed."""
    css = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
    assert ":has(" not in css, "set a class where what it looks for comes and goes"


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.name)
def test_a_state_has_one_colour(path: Path) -> None:
    rules = re.findall(r"[^{}]*data-status=[^{}]*\{[^}]*\}", path.read_text(encoding="utf-8"))
    assert not [rule for rule in rules if re.search(r"status[^{]*\{[^}]*--wb-(?!state|bad)", rule)]


def test_a_forecast_finds_its_tokens_in_a_report_as_well() -> None:
    report = (PLOTS / "report.css").read_text(encoding="utf-8")
    assert used((PLOTS / "forecast.css").read_text(encoding="utf-8")) <= defined(report)


@pytest.mark.parametrize("name", ["page", "monitor", "runs_table", "forecast_panel", "labextension/static/remoteEntry"])
def test_every_root_brings_the_tokens(name: str) -> None:
    static = Path(workbench.jupyter.__file__).parent / "static" / f"{name}.css"
    assert defined(THEME.read_text(encoding="utf-8")) <= defined(static.read_text(encoding="utf-8"))


def test_signs_are_those_that_fonts_have() -> None:
    texts = {
        path.name: path.read_text(encoding="utf-8") for path in SOURCES.rglob("*") if path.suffix in (".js", ".css")
    }
    assert {name: found for name, text in texts.items() if (found := UNCOMMON.findall(text))} == {}
