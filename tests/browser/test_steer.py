"""Steering through the kernel alone, where the server extension is turned off: every verb, from the keyboard."""

from __future__ import annotations

import dataclasses
import re
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import RESULTS
from tests.browser.servers import Server, jupyterlab
from tests.browser.steer import Steer, moves, open_view, trained_meanwhile
from tests.tiny_runs import wait_until
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.store.lease import read_lease
from workbench.telemetry.streams import read_telemetry

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, chromium: str) -> Iterator[Server]:
    """A JupyterLab whose user has turned the extension off."""
    home = tmp_path_factory.mktemp("without")
    with jupyterlab(home, home / "runs", extension=False) as found:
        yield dataclasses.replace(found, runs=found.root / "elsewhere")


@pytest.fixture(scope="module")
def run(server: Server, corpus: Path) -> Iterator[Run]:
    """A run that would go on for long."""
    with trained_meanwhile(corpus, server.runs) as live:
        yield live


@pytest.mark.extended
def test_every_verb_through_the_kernel_alone(page: Page, server: Server, run: Run) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        server.ask(f"workbench/api/telemetry?run=here/{run.id}")
    open_view(page, server, run, "alone.ipynb")
    steer = Steer(page)

    # A value that cannot be: told at once by its bounds, and by the run where only it can tell.
    steer.choose("optimizer.lr")
    steer.value.fill("-1")
    expect(steer.said(steer.knob)).to_have_text("must be a number > 0 and ≤ 100")
    expect(steer.value).to_have_attribute("aria-invalid", "true")
    expect(steer.knob.get_by_role("button")).to_be_disabled()
    steer.choose("optimizer.schedule.hold")
    steer.value.fill("0.5")
    expect(steer.said(steer.knob)).to_have_text("would set optimizer.schedule.hold 0.0 -> 0.5")
    steer.value.fill("7")
    expect(steer.said(steer.knob)).to_contain_text("hold 7 must not exceed length 1")
    page.locator(".wb-monitor").screenshot(path=RESULTS / "steer-error.png")
    steer.value.press("Escape")
    steer.set("objective.mask_rate", "0.25")
    expect(steer.said(steer.knob)).to_have_text("set objective.mask_rate: 0.15 -> 0.25")
    expect(steer.knobs.locator("option:checked")).to_have_text("objective.mask_rate = 0.25")

    steer.press("Checkpoint now")
    expect(steer.said(steer.now)).to_have_text(re.compile("^checkpoint: saved step-"))
    # Before anything is typed.
    expect(steer.said(steer.fork)).to_have_text(re.compile("^nothing changes: .* of .* are left$"))
    steer.press("Evaluate now")
    expect(steer.said(steer.now)).to_have_text(re.compile("^evaluate: held-out loss"))
    for verb, status in (("Pause", "paused"), ("Resume", "running")):
        page.get_by_role("button", name=re.compile(f"^{verb}: ")).press("Enter")
        expect(page.locator(".wb-pill").first).to_have_text(status)

    steer.edits.fill("optimizer.lr=1e-4\nbudget=1 steps")
    expect(steer.said(steer.fork)).to_contain_text("is spent already")
    steer.edits.fill("optimizer.lr=1e-4\nname=calmer")
    expect(steer.said(steer.fork)).to_contain_text("optimizer.lr 0.001 → 0.0001")
    steer.edits.press("Control+Enter")
    expect(steer.root.locator(".wb-made")).to_contain_text("New run calmer")
    expect(page.locator(".wb-name")).to_have_text([run.name, "calmer"])
    assert [fork.recipe.optimizer.lr for fork in runs(server.runs) if fork.name == "calmer"] == [1e-4]
    # Marked on the plots, recorded in the run.
    expect(page.locator(".wb-events li").filter(has_text="was forked from step").first).to_be_visible()
    events = read_telemetry(run.folder.telemetry).events
    asked = [event["data"]["verb"] for event in events if event["kind"] == "request" and event["data"]["done"]]
    assert asked == ["set", "checkpoint", "evaluate", "pause", "resume"]
    assert sum(event["kind"] == "fork" for event in events) == 1
    page.locator(".wb-monitor").screenshot(path=RESULTS / "steer-fork.png")
    # Closing the panel lets go of the run: whoever comes next need not take over.
    assert read_lease(run.folder).held()
    steer.toggle.click()
    wait_until(lambda: not read_lease(run.folder).held(), 20, "the run is free")


@pytest.mark.extended
def test_letters_typed_in_the_panel_are_no_commands_of_the_notebook(page: Page, server: Server, run: Run) -> None:
    notebook = open_view(page, server, run, "keys.ipynb")
    cells = notebook.panel.locator(".jp-Cell").count()
    steer = Steer(page)
    steer.press("Checkpoint now")  # what is forked from
    expect(steer.said(steer.now)).to_have_text(re.compile("^checkpoint: saved step-"))
    expect(steer.edits).to_be_enabled()
    for field in (steer.edits, steer.value):
        field.fill("")
        field.press_sequentially("abx")
        expect(field).to_have_value("abx")
    for control in (steer.toggle, steer.knobs, steer.now.get_by_role("button").first):
        control.focus()
        page.keyboard.press("b")
        page.keyboard.press("a")
    expect(notebook.panel.locator(".jp-Cell")).to_have_count(cells)
    # From anywhere in the panel, Escape closes it, and the focus is where it was opened.
    steer.edits.focus()
    page.keyboard.press("Escape")
    expect(steer.toggle).to_have_attribute("aria-expanded", "false")
    expect(steer.toggle).to_be_focused()
    moves(page)
