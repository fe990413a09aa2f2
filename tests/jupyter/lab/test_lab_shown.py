"""What the Lab shows and keeps: runs that are watched, what a saved notebook holds, what a new kernel goes on with."""

from __future__ import annotations

import gc
import json
import re
import weakref
from pathlib import Path

import ipywidgets
import pytest

from tests.jupyter.live import run_folder, until
from tests.jupyter.messages import say
from workbench import presets
from workbench.client.run import Run
from workbench.jupyter.lab.lab import WATCHED_AT_MOST, Lab
from workbench.jupyter.saved_output import VIEW


def test_runs_are_watched_in_one_view_as_many_as_can_be_told_apart(tmp_path: Path) -> None:
    folders = [run_folder(tmp_path / f"2026010{n}-000000-r-000000-0000", "finished", False) for n in range(1, 10)]
    ids = [folder.id for folder in reversed(folders)]
    lab = Lab(presets.get("fast"), runs_dir=tmp_path)
    view = lab.monitor
    assert (view.runs, view.example) == ([], True)
    lab.table.watched = ids[:2]
    assert [run.id for run in view.runs] == ids[:2]
    lab.table.watched = ids[1:3]
    assert view.places == {ids[1]: 1, ids[2]: 0}, "who stays keeps its colour"
    lab.table.watched = ids
    assert len(view.runs) == WATCHED_AT_MOST
    lab.table.watched = []
    assert view.runs == []
    assert lab.monitor is view
    assert view.comm is not None
    lab.close()


def test_what_the_watch_pane_adds_is_watched_as_all_others(tmp_path: Path) -> None:
    one, two = (run_folder(tmp_path / f"2026010{n}-000000-r-000000-0000", "finished", False) for n in (1, 2))
    lab = Lab(presets.get("fast"), runs_dir=tmp_path)
    lab.table.watched = [one.id]
    lab.monitor.add(two)
    assert lab.table.watched == [one.id, two.id]
    lab.table.watched = [two.id]
    assert [run.id for run in lab.monitor.runs] == [two.id]
    lab.close()


def test_a_closed_lab_leaves_no_widget_and_no_thread_behind(tmp_path: Path) -> None:
    run_folder(tmp_path / "20260101-000000-r-000000-0000", "finished", False)
    Lab(presets.get("fast"), runs_dir=tmp_path).close()
    before = len(ipywidgets.Widget.widgets)
    lab = Lab(presets.get("fast"), runs_dir=tmp_path)
    lab.table.watched = ["20260101-000000-r-000000-0000"]
    # Another choice makes forms that did not exist before.
    lab.composer.load(presets.get("pld"))
    trace = weakref.ref(lab)
    lab.close()
    assert len(ipywidgets.Widget.widgets) == before
    del lab

    def gone() -> bool:
        gc.collect()
        return trace() is None

    # A thread that reads the store lets go once it has read.
    until(gone)


def test_without_a_page_it_is_a_text_until_its_parts_are_asked_for(tmp_path: Path) -> None:
    run_folder(tmp_path / "20260101-000000-earlier-000000", name="<i>earlier")
    lab = Lab(presets.get("fast"), runs_dir=tmp_path, live=False)
    told = lab._repr_mimebundle_()
    assert set(told) == {"text/html", "text/plain"}
    assert "begins with the recipe fast." in told["text/plain"]
    assert "&lt;i&gt;earlier" in told["text/html"]
    assert lab.children == ()
    with pytest.raises(AttributeError, match="'compser'"):
        lab.compser  # noqa: B018
    assert lab.composer.recipe == presets.get("fast")
    assert len(lab.children) == 4
    lab.close()


def test_what_a_saved_notebook_holds_of_a_lab_and_its_parts(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "20260101-000000-earlier-000000", name="<i>earlier")
    lab = Lab(presets.get("fast"), runs_dir=tmp_path, live=True)
    try:
        html = lab._saved_html()
        assert "<strong>Recipe fast</strong>" in html
        assert "&lt;i&gt;earlier" in html
        assert "<img" not in html, "nothing is watched"
        assert not re.search("<script|<i>", html)
        lab.watch([Run(folder)])
        assert "what was learned" in lab._saved_html()
        texts = {
            lab: f"Lab(runs of {tmp_path}, watches 1)",
            lab.composer: "Composer(fast)",
            lab.table: f"RunsTable(1 runs of {tmp_path})",
            lab.monitor: "Monitor(<i>earlier: running)",
        }
        for widget, text in texts.items():
            assert repr(widget) == text
            if widget is not lab.monitor:
                found = widget._repr_mimebundle_()
                bundle = found[0] if isinstance(found, tuple) else found
                assert bundle[VIEW]["model_id"] == widget.model_id
                assert bundle["text/plain"].startswith(text)
                assert "<script" not in bundle["text/html"]
        type_wrong(lab)
        assert repr(lab.composer) == "Composer(1 problems)"
        assert "cannot run as it is" in lab._saved_html()
    finally:
        lab.close()


def type_wrong(lab: Lab) -> None:
    lab.composer.enter({**lab.composer.fields, "seed": -1})


def test_the_page_keeps_what_another_kernel_goes_on_with(tmp_path: Path) -> None:
    run_folder(tmp_path / "20260101-000000-a-000000-0000", "finished", False)
    run_folder(tmp_path / "20260101-000001-b-000000-0000", "finished", False)
    lab = Lab(runs_dir=tmp_path)
    lab.table.watched = ["20260101-000001-b-000000-0000"]
    lab.composer.axes["optimizer"].part.knobs["lr"].input.source.value = "0.004"
    lab.composer.axes["architecture"].part.knobs["heads"].input.source.value = "3"
    lab.table.watched = ["20260101-000001-b-000000-0000", "20260101-000000-a-000000-0000"]
    lab.table.watched = ["20260101-000000-a-000000-0000"]
    assert lab.monitor.places == {"20260101-000000-a-000000-0000": 1}, "the second colour: the first was another's"
    kept = json.loads(json.dumps(lab.frame.kept))
    lab.close()
    other = Lab(presets.get("pld"), runs_dir=tmp_path)
    say(other.frame, {"do": "restore", **kept})
    assert other.composer.recipe == presets.get("pld"), "its cell gives a recipe of its own"
    other.close()
    lab = Lab(runs_dir=tmp_path)
    say(lab.frame, {"do": "restore", **kept})
    assert lab.composer.fields["optimizer"]["lr"] == 0.004
    assert lab.composer.fields["architecture"]["heads"] == 3
    assert lab.table.watched == ["20260101-000000-a-000000-0000"]
    assert lab.monitor.places == {"20260101-000000-a-000000-0000": 1}
    assert "as it was when the kernel ended" in lab.composer.verdict.value
    lab.close()
