"""Names made safe, colours that can be told apart, words that match the layer plan's codes."""

from __future__ import annotations

import itertools

import pytest

from workbench.choices.depth.plan import STATES as PLAN_STATES
from workbench.plots.palette import (
    RUN_COLOURS,
    STATE_COLOURS,
    STATE_WORDS,
    STATES,
    matplotlib_text,
    plain,
    plotly_text,
    run_colour,
    run_dash,
)


def test_states_are_the_layer_plans():
    assert STATES == PLAN_STATES
    assert len(STATE_WORDS) == len(STATE_COLOURS) == len(STATES)


def _dichromat(colour: str, kind: str) -> tuple[float, float, float]:
    # Vienot, Brettel & Mollon 1999, eq. for protan- and deuteranopia in linear RGB.
    r, g, b = ((int(colour[i : i + 2], 16) / 255) ** 2.2 for i in (1, 3, 5))
    if kind == "protan":
        return (0.11238 * r + 0.88762 * g, 0.11238 * r + 0.88762 * g, 0.00401 * r - 0.00401 * g + b)
    return (0.29275 * r + 0.70725 * g, 0.29275 * r + 0.70725 * g, -0.02234 * r + 0.02234 * g + b)


@pytest.mark.parametrize("kind", ["protan", "deutan"])
@pytest.mark.parametrize("colours", [STATE_COLOURS, RUN_COLOURS[:4]])
def test_colours_stay_apart_for_the_colour_blind(colours, kind):
    seen = [_dichromat(colour, kind) for colour in colours]
    for one, other in itertools.combinations(seen, 2):
        assert sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5 > 0.1


def test_more_runs_than_colours_still_differ():
    assert len({(run_colour(i), run_dash(i)) for i in range(18)}) == 18


def test_plain_keeps_one_printable_line():
    assert plain("a\x00b\nc\ud800d") == "a b c d"
    assert len(plain("x" * 500)) == 48
    plain("\ud800").encode("utf-8")


def test_renderers_get_no_markup():
    assert plotly_text("<a href='javascript:x'>") == "&lt;a href='javascript:x'&gt;"
    assert matplotlib_text("_$x$") == r" _\$x\$"
    assert "\\" not in matplotlib_text("\\$").replace(r"\$", "")
