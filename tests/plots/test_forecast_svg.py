"""The small pictures: well-formed, in proportion, readable without eyes."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from workbench.plots.forecast_svg import gauge, layer_map, memory_bar, sparkline


def parsed(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    assert root.get("aria-label")
    return root


def test_memory_is_in_proportion() -> None:
    root = parsed(memory_bar({"weights": 100, "<other>": 300}, "weights & more"))
    bars = [(float(rect.get("x")), float(rect.get("width"))) for rect in root]  # type: ignore[arg-type]
    assert bars == [(0, 25), (25, 75)]
    assert root[1][0].text == "<other>"
    assert root[0].get("fill") != root[1].get("fill")
    assert memory_bar({}, "nothing") == ""


@pytest.mark.parametrize(("share", "width"), [(0.25, 25), (0, 0), (7, 100), (-1, 0)])
def test_a_gauge_is_never_more_than_full(share: float, width: float) -> None:
    assert float(parsed(gauge(share, "x"))[1].get("width")) == width  # type: ignore[arg-type]


def test_a_sparkline_spans_its_values() -> None:
    line = parsed(sparkline([0.0, 0.5, 1.0], [0.0, 2.0, 1.0], "a knob"))[1]
    points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]  # type: ignore[union-attr]
    assert points == [(0, 30), (50, 2), (100, 16)]
    below = parsed(sparkline([0.0, 1.0], [-1.0, 1.0], "a knob"))[1].get("points")
    assert below == "0.0,30.00 100.0,2.00"
    assert parsed(sparkline([0.0, 1.0], [0.0, 0.0], "nothing moves")) is not None


def test_layers_begin_at_the_bottom_and_equal_shares_are_one_stretch() -> None:
    root = parsed(layer_map([[1, 0], [1, 0], [1, 0.5]], [[1, 0], [1, 0], [0, 0.5]], "layers"))
    assert root.get("viewBox") == "0 0 3 2"
    first_forward, first_backward, _, last_forward = (element.get("d") for element in root[:4])
    assert first_forward == "M0 2V1.1H3V2Z"
    assert first_backward == "M0 2V1.1H2V2H3V2Z"
    assert last_forward == "M0 1V1H2V0.55H3V1Z"
    # A model that grows says nothing yet about layers to come.
    assert parsed(layer_map([[1], [1, 1]], [[1], [1, 1]], "grows")) is not None
    assert layer_map([], [], "nothing") == ""
