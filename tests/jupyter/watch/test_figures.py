"""Live plots as Plotly figures: every view, where they are shown, what a page is told when there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from tests.jupyter.live import run_folder, until
from workbench.jupyter.watch.figures import Figures, bundle_of, figure_of
from workbench.store.view import RunView
from workbench.telemetry.streams import TelemetryWriter

PLOTLY = "application/vnd.plotly.v1+json"


@pytest.fixture
def view(tmp_path: Path) -> RunView:
    folder = run_folder(tmp_path / "run-a", name="a <b>run</b>")
    writer = TelemetryWriter(folder.telemetry)
    for step in range(1, 30):
        loss = float("nan") if step == 7 else 9.0 / step
        writer.scalars(
            step, step / 2, step * 10, loss=loss, grad_norm=1.0 / step, tokens_per_second=5.0, flops=1e9 * step
        )
        writer.layers(step, state=[0, 1], grad_norm=[1.0, None])
    writer.close()
    return RunView.read(folder)


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ({"view": "loss", "log": True, "smoothing": 0.012, "target": 2.0}, "Loss"),
        ({"view": "loss", "x": "flops", "smoothing": None}, "Loss"),
        ({"view": "speed", "x": "seconds"}, "Speed"),
        ({"view": "scalar", "name": "grad_norm", "log": True}, "gradient norm"),
        ({"view": "layers", "quantity": "grad_norm"}, "Layers: gradient norm"),
        ({"view": "layers", "x": "tokens"}, "Layers: activity"),
    ],
)
def test_every_panel_has_a_figure_that_json_can_hold(view: RunView, asked: dict[str, Any], title: str) -> None:
    published: list[tuple] = []
    figures = Figures(lambda: [view], lambda *all_, **more: published.append((all_, more)), lambda *_: None)
    figures.show()
    figures.receive({**asked, "window": [2, 20], "runs": [view.id]})
    until(lambda: len(published) == 2)
    (place, placed), (put, more) = published
    assert placed == {}
    assert (put[1], more) == (place[1], {"update": True}), "where the cell has made room"
    bundle = json.loads(json.dumps(put[0], allow_nan=False))
    assert str(bundle[PLOTLY]["layout"]["title"]["text"]).startswith(title)
    assert bundle[PLOTLY]["layout"]["xaxis"]["range"] == [2, 20]
    assert figures.latest is not None
    figures.close()


def test_within_another_widget_the_figure_has_an_output_of_its_own(view: RunView) -> None:
    told: list[tuple[str, bool, str]] = []
    figures = Figures(lambda: [view], lambda *_, **__: None, lambda *all_: told.append(all_))
    figures.receive({"view": "loss"})
    until(lambda: told == [("", False, "Loss")])
    assert PLOTLY in figures.output.outputs[0]["data"]
    figures.clear()
    assert figures.output.outputs == ()
    assert figures.latest is not None, "for the cell that goes on with it"
    figures.close()


def test_figures_follow_the_theme_and_what_cannot_be_drawn_is_told_to_the_page(view: RunView) -> None:
    told: list[tuple[str, bool, str]] = []
    figures = Figures(lambda: [view], lambda *_, **__: None, lambda *all_: told.append(all_))
    figures.receive({"view": "losses"})
    until(lambda: bool(told))
    assert told[0][1]
    assert "did you mean 'loss'" in told[0][0]
    light, dark = (figure_of([view], {"view": "loss", "dark": dark}) for dark in (False, True))
    assert light.layout.template.layout.font.color != dark.layout.template.layout.font.color
    with pytest.raises(ValueError, match="no run"):
        figure_of([], {"view": "loss"})


def test_a_line_of_parallel_coordinates_is_found_where_the_pointer_is() -> None:
    def config(trace: dict[str, object]) -> object:
        return bundle_of(go.Figure([trace]))[PLOTLY].get("config")

    assert config({"type": "parcoords", "dimensions": [{"values": [1, 2]}]}) == {"plotGlPixelRatio": 1}
    assert config({"type": "scatter", "y": [1]}) is None
