"""Shared layouts and styles: far fewer models, and never one that has left the page."""

from __future__ import annotations

import ipywidgets
import pytest
from ipywidgets.widgets.widget import _instances

from workbench.choices.choice import registry
from workbench.ui.compose import form, inputs
from workbench.ui.compose.form import Form
from workbench.ui.shared_layouts import with_shared_layout


def test_alike_widgets_share_what_they_do_not_change() -> None:
    one, other = with_shared_layout(ipywidgets.Text, value="a"), with_shared_layout(ipywidgets.Text, value="b")
    assert one.layout is other.layout
    assert one.style is other.style
    assert (one.value, other.value) == ("a", "b")
    assert with_shared_layout(ipywidgets.Box, [one]).layout is one.layout
    assert isinstance(with_shared_layout(ipywidgets.FloatSlider).style, type(ipywidgets.FloatSlider().style))


def test_wishes_are_kept() -> None:
    layout = ipywidgets.Layout(width="10px")
    assert with_shared_layout(ipywidgets.Text, layout=layout).layout is layout


def test_closing_one_of_them_leaves_the_others_what_they_share() -> None:
    one, other = with_shared_layout(ipywidgets.Text), with_shared_layout(ipywidgets.Text)
    for widget in (one, one.layout, one.style):
        widget.close()
    assert one.comm is None
    assert other.layout.comm is not None
    assert other.style.comm is not None
    assert other.layout.get_state()["_model_name"] == "LayoutModel"
    assert other.style.get_state()["_model_name"] == ipywidgets.Text().style.get_state()["_model_name"]


def test_a_form_sends_less_than_half_of_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    def models(make: object) -> int:
        for module in (form, inputs):
            monkeypatch.setattr(module, "with_shared_layout", make)
        before = len(_instances)
        kept = Form(registry("optimizer")["lans"], "optimizer", lambda: None)
        assert kept.knobs
        return len(_instances) - before

    plain = models(lambda kind, *arguments, **traits: kind(*arguments, **traits))
    assert models(with_shared_layout) < plain / 2
