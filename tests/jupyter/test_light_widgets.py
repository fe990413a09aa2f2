"""Light widgets: nothing crosses before it is shown, and then as it is; few models, and never one that has left."""

from __future__ import annotations

import ipywidgets
import pytest

from tests.jupyter.messages import published
from workbench.choices.choice import registry
from workbench.jupyter.compose.form import Form
from workbench.jupyter.compose.side_panel import SidePanel
from workbench.jupyter.compose.source_picker import SourcePicker
from workbench.jupyter.light_widgets import light
from workbench.jupyter.saved_output import VIEW


def test_alike_widgets_share_what_they_do_not_change() -> None:
    one, other = light(ipywidgets.Text, value="a"), light(ipywidgets.Text, value="b")
    assert one.layout is other.layout
    assert one.style is other.style
    assert (one.value, other.value) == ("a", "b")
    assert light(ipywidgets.Box, [one]).layout is one.layout
    assert SourcePicker("preset", "", list).layout is one.layout, "our own as well"
    assert isinstance(light(ipywidgets.FloatSlider).style, type(ipywidgets.FloatSlider().style))


def test_wishes_are_kept() -> None:
    layout = ipywidgets.Layout(width="10px")
    assert light(ipywidgets.Text, layout=layout).layout is layout


def test_closing_one_of_them_leaves_the_others_what_they_share() -> None:
    one, other = light(ipywidgets.Text), light(ipywidgets.Text)
    assert one.model_id != other.model_id
    for widget in (one, one.layout, one.style):
        widget.close()
    assert one.comm is None
    assert other.layout.comm is not None
    assert other.style.comm is not None
    assert other.layout.get_state()["_model_name"] == "LayoutModel"
    assert other.style.get_state()["_model_name"] == ipywidgets.Text().style.get_state()["_model_name"]


def test_a_widget_crosses_when_it_is_shown_and_as_it_is_then(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = ipywidgets.Box()
    sent = published(monkeypatch)
    knob = light(ipywidgets.Text, value="a")
    row = light(ipywidgets.Box, [knob])
    row.add_class("lab-knob")
    knob.value = "b"
    assert [model for model in sent.models if model in ("TextModel", "BoxModel")] == []
    root = ipywidgets.VBox()
    root.children = [row]
    # What stands inside comes first: a page knows no model that it has not been told of.
    assert [model for model in sent.models if model in ("TextModel", "BoxModel")] == ["TextModel", "BoxModel"]
    text, box = (
        next(m["state"] for m in sent if m["state"].get("_model_name") == n) for n in ("TextModel", "BoxModel")
    )
    assert text["value"] == "b"
    assert "lab-knob" in box["_dom_classes"]
    assert box["children"] == [f"IPY_MODEL_{knob.model_id}"]
    sent.clear()
    knob.value = "c"
    assert [message["state"] for message in sent] == [{"value": "c"}], "from then on as any other widget"
    root.children = []
    root.children = [row]
    assert sent.models == [], "shown again, it is the same"
    assert shown.comm is not None


def test_what_the_page_says_reaches_a_widget_that_was_shown_late() -> None:
    heard: list[str] = []
    knob = light(ipywidgets.Text)
    knob.observe(lambda change: heard.append(change["new"]), names="value")
    assert knob.model_id
    knob._handle_msg({"content": {"data": {"method": "update", "state": {"value": "typed"}}}, "buffers": []})
    assert heard == ["typed"]


def test_one_that_was_closed_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = published(monkeypatch)
    never, once = light(ipywidgets.Text), light(ipywidgets.Text)
    assert once.model_id
    for knob in (never, once):
        knob.close()
        sent.clear()
        with pytest.raises(AttributeError):
            _ = knob.model_id
        assert sent.models == []


def test_it_can_be_shown_by_itself() -> None:
    for widget in (light(ipywidgets.Text), SourcePicker("preset", "", list)):
        bundle = widget._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        assert data[VIEW]["model_id"] == widget.model_id


def test_a_form_sends_less_than_half_of_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = published(monkeypatch)
    form = Form(registry("optimizer")["lans"], "optimizer", lambda: None)
    assert sent == [], "not before it is shown"
    assert form.widget.model_id
    widgets = [model for model in sent.models if not model.endswith(("LayoutModel", "StyleModel"))]
    assert len(widgets) > 20
    # Each of ipywidgets' own brings a layout, and nearly each a style.
    assert len(sent) < 1.5 * len(widgets)


def test_every_light_widget_of_ours_can_be_shown() -> None:
    """A panel's own words must not stand where the mechanism keeps its own."""
    panel = SidePanel(lambda: None, "heading", light(ipywidgets.HTML))
    assert panel.model_id
    assert [child.comm is not None for child in panel.children] == [True, True]
