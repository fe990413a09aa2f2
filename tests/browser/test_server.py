"""The server extension as a user meets it, behind a hub's prefix: the view moves and can be steered whatever the kernel
does, and two pages do not steer against each other."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import RESULTS, Open
from tests.browser.jupyter import Notebook
from tests.browser.servers import Server, jupyterlab
from tests.browser.steer import Steer, begin, moves, open_view, stop, trained_meanwhile
from tests.tiny_runs import wait_until, yield_to_others
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.store.lease import read_lease
from workbench.store.state import FINAL

pytestmark = pytest.mark.browser
# As a hub writes the address of ada+lovelace@älg.example.
HUB_PREFIX = "/user/ada%2Blovelace%40%C3%A4lg.example/"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, chromium: str, kernel_template: str) -> Iterator[Server]:
    """A JupyterLab of its own: the others have no prefix."""
    home = tmp_path_factory.mktemp("hub")
    with jupyterlab(home, home / "runs", base_url=HUB_PREFIX, template=kernel_template) as found:
        yield dataclasses.replace(found, runs=found.root / "elsewhere")


@pytest.fixture(scope="module")
def launched(server: Server, corpus: Path) -> Iterator[Run]:
    """A run that would go on for long, in a folder that only its kernel knows of."""
    with trained_meanwhile(corpus, server.runs) as live:
        yield live


@pytest.fixture
def run(launched: Run) -> Run:
    """The same run, whatever a test before has done to it: it trains at its recipe's rate, and nobody steers it."""
    if launched.status in FINAL:
        launched.resume()
        wait_until(lambda: launched.status == "running")
    yield_to_others(launched)
    launched.ask("set", timeout=60, take_over=True, path="optimizer.lr", value=launched.recipe.optimizer.lr)
    return launched


def stays_busy(notebook: Notebook) -> None:
    """The second cell has not ended: whatever happened, happened without the kernel."""
    expect(notebook.cell(1).locator(".jp-InputPrompt")).to_have_text("[*]:")


@pytest.mark.extended
def test_a_run_is_steered_resumed_and_forked_while_the_kernel_stands_still(
    page: Page, server: Server, run: Run
) -> None:
    # Not one of its threads runs: a long cell leaves the reader thread alive, which replaces the view of an ended run.
    notebook = open_view(page, server, run, "still.ipynb", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)")
    begin(notebook, 1)
    stays_busy(notebook)
    moves(page)
    steer = Steer(page)
    steer.set("optimizer.lr", "0.0078125")
    expect(steer.said(steer.knob)).to_have_text("set optimizer.lr: 0.001 -> 0.0078125")
    expect(steer.who).to_have_text("you are steering this run from this page")
    steer.press("Checkpoint now")
    expect(steer.said(steer.now)).to_have_text(re.compile("^checkpoint: saved step-"))
    steer.press("Evaluate now")
    expect(steer.said(steer.now)).to_have_text(re.compile("^evaluate: held-out loss [0-9.]+"))
    stop(page)
    expect(page.locator(".wb-pill")).to_have_text("stopped")
    assert run.status == "stopped"

    step, attempt = run.state.step, run.state.attempt
    page.get_by_role("button", name=re.compile("^Resume: ")).click()
    expect(page.locator(".wb-pill")).to_have_text("running")
    assert run.state.attempt == attempt + 1
    yield_to_others(run)
    moves(page)
    assert run.state.step >= step

    steer.edits.fill("architecture.layers=9")
    steer.press("Fork")
    expect(steer.said(steer.fork)).to_contain_text("a fork cannot change architecture.layers")
    steer.edits.fill("optimizer.lr=1e-4\nname=calmer")
    steer.press("Fork")
    expect(steer.root.locator(".wb-made")).to_contain_text("New run calmer")
    fork = next(each for each in runs(server.runs) if each.name == "calmer")
    assert fork.recipe.optimizer.lr == 1e-4
    expect(page.locator(".wb-name")).to_have_text([run.name, "calmer"])
    expect(page.locator(".wb-pill").nth(1)).to_have_text("running")
    page.locator(".wb-monitor").screenshot(path=RESULTS / "steer-still.png")
    stays_busy(notebook)
    fork.stop()
    assert notebook.complaints == []


@pytest.mark.extended
def test_the_view_moves_while_no_thread_of_the_kernel_can(page: Page, server: Server, run: Run) -> None:
    # One opcode that holds Python's lock for long: not even the reader thread gets a turn.
    notebook = open_view(page, server, run, "locked.ipynb", "held = 3 ** 20_000_000 % 7; held = sum(range(10**10))")
    begin(notebook, 1)
    page.wait_for_timeout(2000)
    moves(page)
    moves(page)


@pytest.mark.extended
def test_of_two_pages_one_steers_and_the_other_may_take_over(
    page: Page, new_page: Open, server: Server, run: Run
) -> None:
    ann, bob = page, new_page()
    open_view(ann, server, run, "ann.ipynb")
    open_view(bob, server, run, "bob.ipynb")
    hers, his = Steer(ann), Steer(bob)
    hers.set("optimizer.lr", "0.25")
    expect(hers.said(hers.knob)).to_contain_text("0.001 -> 0.25")
    expect(hers.who).to_have_text("you are steering this run from this page")
    expect(his.who).to_have_text(re.compile("^steered by .+, free in [0-9]+ s unless they go on$"))

    his.set("optimizer.lr", "0.5")
    expect(his.said(his.knob)).to_contain_text("is steered by")
    sure = bob.locator(".wb-steer .wb-question")
    expect(sure).to_contain_text("What they have asked and is not done yet will not happen.")
    expect(sure.get_by_role("button", name="Take over")).to_be_focused()
    bob.locator(".wb-monitor").screenshot(path=RESULTS / "steer-take-over.png")
    assert run.folder.control.joinpath("lease.json").exists()
    before = read_lease(run.folder)
    bob.keyboard.press("Enter")
    expect(his.said(his.knob)).to_contain_text("0.25 -> 0.5")
    expect(his.who).to_have_text("you are steering this run from this page")
    expect(hers.who).to_have_text(re.compile("^.+ has taken over; steered by "))
    after = read_lease(run.folder)
    assert after.controller != before.controller
    assert after.epoch == before.epoch + 1
    # Whoever closes the panel lets go, and both learn of it.
    his.toggle.click()
    expect(hers.who).to_have_text("")
    hers.set("optimizer.lr", "0.125")
    expect(hers.said(hers.knob)).to_contain_text("0.5 -> 0.125")
    hers.toggle.click()  # her page stays open
    expect(his.who).to_have_text("")


@pytest.mark.extended
def test_the_view_moves_and_is_steered_after_the_kernel_died(new_page: Open, server: Server, run: Run) -> None:
    page = new_page()  # JupyterLab asks about a dead kernel when it likes
    notebook = open_view(page, server, run, "dead.ipynb", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    begin(notebook, 1)
    # JupyterLab tells it in a dialog, sometimes in two, and starts another kernel, which knows nothing of the view.
    accept = page.locator(".jp-Dialog button.jp-mod-accept")
    accept.first.click()
    page.add_locator_handler(accept.first, lambda button: button.click())
    moves(page)
    moves(page)
    steer = Steer(page)
    steer.set("optimizer.lr", "0.0078125")
    expect(steer.said(steer.knob)).to_contain_text("0.001 -> 0.0078125")
    stop(page)
    expect(page.locator(".wb-pill")).to_have_text("stopped")
    assert run.status == "stopped"
