"""The report: self-contained, safe, whole or absent; drawn without an error in a real browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from workbench.plots.report import main, report_html, write_report
from workbench.store.folder import RunFolder
from workbench.store.labels import Labels
from workbench.store.origin import Origin

from .ahead import FOUND

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def page(view, plateau, evil):
    return report_html([view, plateau, evil])


def test_self_contained(page):
    assert len(page.encode()) < 6_000_000
    assert not re.search(
        r"<(script|link|img|iframe)[^>]*\b(src|href)\s*=\s*[\"']?(https?:)?//", page[:-5_000_000] + page
    )
    assert page.count("<script>") == 2  # plotly.js and ours, inlined


def test_a_floor_of_training_is_explained_where_one_is_drawn(view):
    causal = replace(view, evaluations=view.evaluations | {"score": {"kind": "next-token", "version": 2}})
    explained = "what training reaches without context"
    assert explained in report_html([view])
    assert explained in report_html([causal, view])
    assert explained not in report_html([causal])


def test_escaped(page):
    assert "alert(1)</script>" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_says_what_matters(page):
    for words in (
        "neighbours (nats)", "has learned word frequencies only", "uses context: 0.07 nats below", "0.25x", "torch",
        "layers 4-6 added as copies", "documents", "held-out loss (nats)", "prefers-color-scheme: dark",
    ):  # fmt: skip
        assert words in page, words


def test_forecast_and_measured_stand_side_by_side(view, plateau):
    page = report_html([replace(view, forecast=FOUND), plateau])
    assert page.count("<h2>Forecast and measured</h2>") == 1
    assert page.count('<table class="wb-compared">') == 1, "only one of them was forecast"
    assert '<svg class="wb-layer-map"' in page
    assert ".wb-forecast .wb-tiles" in page
    assert "Forecast and measured" not in report_html([plateau, replace(view, forecast={"steps": "damaged"})])


def test_command_writes_into_the_run_folder(folder, capsys):
    assert main([str(folder.path)]) == 0
    assert capsys.readouterr().out.strip() == str(folder.report)
    assert folder.report.read_text().startswith("<!DOCTYPE html>")
    assert not list(folder.path.glob("report.html.*"))


def test_a_run_that_is_deleted_meanwhile_does_not_reappear(folder, tmp_path, monkeypatch, capsys):
    path = shutil.copytree(folder.path, tmp_path / folder.id)

    def drawn(views):
        path.rename(tmp_path / "trash")
        return "<!DOCTYPE html>"

    monkeypatch.setattr("workbench.plots.report.report_html", drawn)
    assert main([str(path)]) == 2
    assert "No such file" in capsys.readouterr().err
    assert not path.exists()


def test_wrong_requests(folder, tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert "is not the folder of a run" in capsys.readouterr().err
    assert main([str(folder.path), str(folder.path)]) == 2
    assert "--out FILE" in capsys.readouterr().err
    with pytest.raises(ValueError, match="at least one"):
        report_html([])


def test_a_failed_write_leaves_the_old_report(view, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_report([view], path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.process
def test_module_runs_as_the_supervisor_starts_it(folder, tmp_path):
    out = tmp_path / "r.html"
    command = [sys.executable, "-m", "workbench.plots.report", str(folder.path), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    assert out.stat().st_size > 4_000_000
    assert isinstance(folder, RunFolder)


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_draws_in_a_browser_from_a_file(page, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    said, asked = [], []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(color_scheme="light")
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("dialog", lambda dialog: (said.append("dialog"), dialog.dismiss()))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(path.as_uri())
        tab.wait_for_function("document.querySelectorAll('.js-plotly-plot .main-svg').length >= 6")
        title, colour = tab.locator("[data-figure=loss] .xtitle"), "e => getComputedStyle(e).fill"
        assert title.text_content() == "optimizer steps"
        tab.locator("figure:has([data-figure=loss]) select").select_option("tokens")
        assert title.text_content() == "tokens"
        assert title.evaluate(colour) == "rgb(27, 31, 36)"
        # Whoever reads it may go over to the other scheme, and the picture with them.
        tab.emulate_media(color_scheme="dark")
        sync_api.expect(title).to_have_css("fill", "rgb(230, 232, 235)")
        assert title.text_content() == "tokens"
        browser.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_labels_and_the_run_it_was_forked_from_are_in_the_head(view):
    origin = Origin("20260101-parent", 1200, "<b>parent</b>", {"optimizer.lr": [1e-3, 1e-4]}, ("optimizer.beta1",))
    page = report_html([replace(view, labels=Labels(("base",), "as <i>hoped</i>"), origin=origin)])
    head = page[: page.index("<main>")]
    assert "was forked from &lt;b&gt;parent&lt;/b&gt; (20260101-parent) at step 1,200" in head
    assert "optimizer.lr 0.001 -&gt; 0.0001; the optimizer began without state." in head
    assert "as &lt;i&gt;hoped&lt;/i&gt;" in head
    assert ", base</p>" in head
    assert "forked" not in report_html([view])[: page.index("<main>")]


def test_numbers_of_an_objective_have_a_picture_where_there_are_any(view, page):
    records = [{**record, "precision": 0.5, "span_boundary": 6.0} for record in view.telemetry.scalars]
    told = report_html([replace(view, telemetry=replace(view.telemetry, scalars=records))])
    assert 'data-figure="objective"' in told
    assert "objective/precision" in told
    assert "objective/span_boundary" in told
    assert "objective/recall" not in told
    assert 'data-figure="objective"' not in page
