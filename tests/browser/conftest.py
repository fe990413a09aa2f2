"""A real JupyterLab and a real Chromium: nothing between the test and what a user would see.

One JupyterLab serves all browser tests of a process, and most share its page, in which each opens a notebook of its
own; every module gets a runs folder of its own, and no kernel outlives the test that started it.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright

from tests.browser.console import Console
from tests.browser.jupyter import CHROMIUM_NAMES, CHROMIUM_OPTIONS
from tests.browser.kernel_template import template
from tests.browser.many_runs import trained_run
from tests.browser.second_try import pytest_runtest_setup as pytest_runtest_setup
from tests.browser.servers import REPOSITORY, Server, jupyterlab, keep_runs_in
from workbench.client.run_list import runs
from workbench.store.folder import RunFolder
from workbench.store.state import FINAL

RESULTS = REPOSITORY / "test-results"
PATIENCE_MS = 60_000  # two cores that also train
expect.set_options(timeout=PATIENCE_MS)
SIZE: ViewportSize = {"width": 1280, "height": 800}
SLOWDOWN = float(os.environ.get("WORKBENCH_TEST_SLOWDOWN", 1))
"""How many times slower than this machine pages are to be: what reads a page before it has changed then fails here."""
Open = Callable[..., Page]
BROKEN = ".jupyter-widgets-error-widget"
_failures: list[str] = []
"""Names of tests of this session that have failed, second tries included."""


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in this hook too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests stay in one process of pytest-xdist: one JupyterLab, one Chromium at a time on two cores."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser; CI must have one. Makes the folder for what tests leave behind."""
    RESULTS.mkdir(exist_ok=True)
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        why = f"none of {', '.join(CHROMIUM_NAMES)} is on the PATH (`make browser` installs one on Debian)"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return path


@pytest.fixture(scope="session", autouse=True)
def known_machine(shared_cache: Path) -> None:
    """Rates in the modes of presets: every Lab that opens would take most of a minute to measure them.

    Those of :func:`tests.tiny_runs.tiny_recipe`, in fp32, are left to be measured for real.
    """
    from tests.forecasting.machine_rates import RATES
    from workbench.forecasting import calibration

    # So fast that no run finds this machine faster, which would have it measured again.
    rates = RATES.model_copy(update={"product": 1e-12})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibration, "measured", lambda mode, poll=None: rates)
        for threads in range(1, (os.cpu_count() or 1) + 1):
            calibration.calibrated(calibration.Mode("cpu", threads, "bf16", False))


@pytest.fixture(scope="session")
def kernel_template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Keep a process that kernels are forked from, but those of ``test_steer.py``."""
    with template(tmp_path_factory.mktemp("template")) as address:
        yield address


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory, chromium: str, kernel_template: str) -> Iterator[Server]:
    """JupyterLab on a free port."""
    home = tmp_path_factory.mktemp("jupyter")
    with jupyterlab(home, home / "runs", template=kernel_template) as server:
        yield server


@pytest.fixture(scope="session")
def original(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A real run that has finished, whose copies fill a table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        return trained_run(corpus, tmp_path_factory.mktemp("original") / "runs")


@pytest.fixture(scope="module")
def server(jupyter: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The JupyterLab, whose kernels keep the runs of this module in a folder of their own."""
    folder = tmp_path_factory.mktemp("runs")
    keep_runs_in(jupyter, folder)
    yield dataclasses.replace(jupyter, runs=folder)
    stop_all(folder)


def stop_all(folder: Path) -> None:
    """Stop every run: one that a failed test has left would slow the others down."""
    for run in runs(folder):
        if run.status not in FINAL:
            run.stop()


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    """Chromium. Not for the session: as long as Playwright is open, asyncio counts as running in this thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*CHROMIUM_OPTIONS])
        yield browser
        browser.close()


def slow_down(page: Page) -> None:
    """Give the page a part of the processor's time alone, where ``WORKBENCH_TEST_SLOWDOWN`` says so."""
    if SLOWDOWN > 1:
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})


@contextmanager
def pages(browser: Browser, name: str) -> Iterator[Open]:
    """Opens pages, each in a context of its own: 1280 x 800 unless options of ``Browser.new_context`` say otherwise.

    Where a test fails meanwhile, what each shows at the end is kept in test-results/ (a picture takes half a second);
    and no console may hold a complaint that is not known.
    """
    before = len(_failures)
    opened: list[tuple[Page, Console]] = []

    def open_one(**options: Any) -> Page:
        page = browser.new_context(**{"viewport": SIZE, **options}).new_page()
        page.set_default_timeout(PATIENCE_MS)
        slow_down(page)
        opened.append((page, Console(page)))
        return page

    try:
        yield open_one
    finally:
        broken = 0
        for number, (page, _) in enumerate(opened):
            broken += page.locator(BROKEN).count()
            if len(_failures) > before or broken:
                _keep(page, f"{name}{f'-{number}' if number else ''}")
            page.context.close()
    assert not broken, f"{broken} widgets that ipywidgets could not draw"
    complaints = [text for _, console in opened for text in console.complaints]
    assert complaints == [], "the console: " + "\n".join(complaints)


def _keep(page: Page, name: str) -> None:
    page.screenshot(path=RESULTS / f"{name}-end.png")


@pytest.fixture
def new_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens pages for one test; no kernel outlives it."""
    try:
        with pages(browser, request.node.name.replace("/", "-")) as open_one:
            yield open_one
    finally:
        # A kernel takes some hundred megabytes, and one that still follows a run takes time from the next test.
        if "server" in request.fixturenames:
            request.getfixturevalue("server").shut_kernels_down()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember that a test has failed before its page is put away."""
    report = yield
    if report.failed:
        _failures.append(item.nodeid)
    return report


@pytest.fixture(scope="package")
def desk(browser: Browser) -> Iterator[BrowserContext]:
    """The one page, 1280 x 800, of all tests that can do with any."""
    with browser.new_context(viewport=SIZE) as context:
        context.set_default_timeout(PATIENCE_MS)
        yield context


@contextmanager
def desk_page(desk: BrowserContext, server: Server, name: str) -> Iterator[Page]:
    """The one page, with JupyterLab as a test before has left it, or empty; no kernel outlives the block.

    See :class:`tests.browser.jupyter.Notebook`, which closes what is open.
    """
    page = desk.pages[0] if desk.pages else desk.new_page()
    slow_down(page)
    if not page.url.startswith(server.url):
        page.goto("about:blank")  # the server that it shows may have ended
    page.set_viewport_size(SIZE)
    console, before = Console(page), len(_failures)
    yield page
    broken = page.locator(BROKEN).count()
    if failed := len(_failures) > before or broken > 0:
        _keep(page, name.replace("/", "-"))
    console.close()
    if failed or page.locator(".jp-Dialog").count():
        page.close()  # whatever state it is in, the next test shall not meet it
    server.shut_kernels_down()
    assert not broken, f"{broken} widgets that ipywidgets could not draw"
    assert console.complaints == [], "the console: " + "\n".join(console.complaints)


@pytest.fixture
def page(desk: BrowserContext, server: Server, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The one page, for one test."""
    with desk_page(desk, server, request.node.name) as page:
        yield page
