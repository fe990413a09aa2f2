"""What is declared once: complete, told apart, and the same in the page's bundle, in Plotly and in reports."""

from __future__ import annotations

import itertools
import json
import re
from typing import get_args

import numpy as np
import pytest

from workbench.choices.depth.plan import STATES as PLAN_STATES
from workbench.telemetry.baselines import Baselines, Learned, References, learned_briefly
from workbench.telemetry.quantities import (
    ENTROPY_EVERY,
    LAYER_STATES,
    LEVEL_DASHES,
    PAGE_FILE,
    PARTS,
    QUANTITIES,
    RUN_COLOURS,
    SLICES,
    STATES,
    WORK_PARTS,
    declared,
    page_text,
    run_colour,
    run_dash,
)
from workbench.training.measurements import PARTS as MEASURED_PARTS


def test_what_was_learned_has_words_of_one_source():
    told = declared()["learnedBriefly"]
    assert told == {word: learned_briefly(word) for word in get_args(Learned)}
    source = PAGE_FILE.parent / "watch" / "views"
    assert not [path.name for path in source.glob("*.js") if re.search("learned:|learned so far", path.read_text())]


def test_the_page_has_what_is_declared():
    assert PAGE_FILE.read_text() == page_text(), "run `python -m workbench.telemetry.quantities`, then build the bundle"


def test_the_bundle_has_what_is_declared():
    # As esbuild writes JSON into JavaScript: keys that are names without quotes.
    bundle = (PAGE_FILE.parents[2] / "static" / "monitor.js").read_text()
    for value in ("runColours", "runDashes", "ramp", "axes", "parts", "workParts"):
        text = json.dumps(declared()[value], separators=(",", ":"))
        unquoted = re.sub(r'"([A-Za-z_]\w*)":', r"\1:", text)
        assert unquoted in bundle, value


def test_a_name_is_declared_once():
    names = [(quantity.name, quantity.per_layer) for quantity in QUANTITIES]
    assert len(set(names)) == len(names)
    assert tuple(PARTS)[:4] == tuple(MEASURED_PARTS)
    assert STATES == PLAN_STATES


def test_every_quantity_is_explained_and_the_page_has_the_words():
    assert [each.name for each in QUANTITIES if len(each.help.split()) < 3] == []
    entropy = declared()["perLayer"]["attention_entropy"]
    assert f"in one of {ENTROPY_EVERY} records" in entropy["help"], "why columns between are empty"


def test_every_line_of_a_loss_plot_has_a_dash():
    references = References("masked-only", Baselines(6.0, 4.0), training_baseline=5.5)
    assert list(LEVEL_DASHES) == [*references.levels, "target"]


def test_states_read_without_colours():
    shapes = {(state.shape, state.opacity) for state in LAYER_STATES}
    assert len(shapes) == len({state.mark for state in LAYER_STATES}) == len(LAYER_STATES)
    ink = {state.name: state.shape.count("#") * state.opacity for state in LAYER_STATES}
    # The more ink the more work: backward is the larger part of it, what was skipped is a line.
    assert all(len(state.shape) == SLICES and state.shape[-1] == "." for state in LAYER_STATES)
    assert ink["running"] > ink["grown"] >= ink["copied"] > ink["frozen"] > ink["dropped"] > ink["absent"]


def _dichromat(colour: str, kind: str) -> np.ndarray:
    """CIE L*a*b* of a colour (#rrggbb) as protanopes, deuteranopes or nobody in particular see it."""
    # Vienot, Brettel & Mollon 1999, eq. for protan- and deuteranopia in linear RGB.
    r, g, b = ((int(colour[i : i + 2], 16) / 255) ** 2.2 for i in (1, 3, 5))
    if kind == "protan":
        r, g, b = 0.11238 * r + 0.88762 * g, 0.11238 * r + 0.88762 * g, 0.00401 * r - 0.00401 * g + b
    elif kind == "deutan":
        r, g, b = 0.29275 * r + 0.70725 * g, 0.29275 * r + 0.70725 * g, -0.02234 * r + 0.02234 * g + b
    white = np.array([0.9505, 1.0, 1.089])
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ [r, g, b] / white
    x, y, z = np.cbrt(np.maximum(xyz, 0.008856))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def _luminance(colour: str) -> float:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (red, green, blue)]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


@pytest.mark.parametrize("kind", ["protan", "deutan", "most"])
@pytest.mark.parametrize(
    "colours", [[state.colour for state in LAYER_STATES], RUN_COLOURS, [part.colour for part in WORK_PARTS]]
)
def test_colours_stay_apart_for_the_colour_blind(colours, kind):
    # A difference of 2.3 is just noticeable side by side; eight times that is told apart across a picture. The grey
    # of what does not exist yet is shown faint, so its own hue plays no part.
    solid = [colour for colour in colours if colour != LAYER_STATES[3].colour]
    for one, other in itertools.combinations(solid, 2):
        assert np.linalg.norm(_dichromat(one, kind) - _dichromat(other, kind)) > 18, (one, other)


@pytest.mark.parametrize("ground", ["#ffffff", "#111111"])
def test_states_are_seen_in_light_and_in_dark(ground):
    for state in LAYER_STATES:
        low, high = sorted((_luminance(state.colour), _luminance(ground)))
        assert (high + 0.05) / (low + 0.05) > 2.2, state.name


# White, JupyterLab's dark ground, the report's.
@pytest.mark.parametrize("ground", ["#ffffff", "#212121", "#14171b", "#111111"])
def test_runs_are_seen_in_light_and_in_dark_since_both_show_one_list(ground):
    for colour in RUN_COLOURS:
        low, high = sorted((_luminance(colour), _luminance(ground)))
        # What WCAG 2.2 asks of graphics (1.4.11).
        assert (high + 0.05) / (low + 0.05) > 3.0, colour


def test_more_runs_than_colours_still_differ():
    assert len({(run_colour(i), run_dash(i)) for i in range(64)}) == 64
