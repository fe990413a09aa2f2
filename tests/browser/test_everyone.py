"""The Lab for everyone: by keyboard and screen reader, in every theme, with less motion, on small and large screens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.axe import COLOURS, ROOTS, violations
from tests.browser.conftest import RESULTS, desk_page
from tests.browser.jupyter import Notebook, choose_theme
from tests.browser.lab import long_recipe, open_lab, watch_first, write_lab
from tests.browser.looks import controls, expect_curve, still, unfit
from tests.browser.servers import Server
from tests.tiny_runs import wait_until, yield_to_others
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.store.state import FINAL

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def run(server: Server, corpus: Path) -> Iterator[Run]:
    """A run of four layers, of which some are dropped; it goes on for as long as these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        live = launch(long_recipe(corpus), runs_dir=server.runs)
    wait_until(lambda: live.status == "running" and live.state.step > 50, seconds=180)
    yield_to_others(live)
    yield live
    live.stop()
    wait_until(lambda: live.status in FINAL, seconds=180)


@pytest.fixture(scope="module")
def shown(desk: BrowserContext, server: Server, corpus: Path, run: Run) -> Iterator[Page]:
    """One page with the Lab and the live view of the run, for all tests that only look."""
    with desk_page(desk, server, "everyone") as page:
        open_lab(page, server, corpus)
        watch_first(page)
        yield page


@pytest.fixture
def lab(shown: Page) -> Iterator[Page]:
    """The page, which is afterwards as it was."""
    yield shown
    shown.emulate_media(forced_colors="none", reduced_motion="no-preference")
    shown.set_viewport_size({"width": 1280, "height": 800})
    # A setting of the user, which other pages would have as well.
    if shown.locator("body").get_attribute("data-jp-theme-name") != "JupyterLab Light":
        choose_theme(shown, "JupyterLab Light")


COMPOSER, MONITOR = (".lab-composer",), (".lab-watch .wb-monitor",)


def states(page: Page) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Brings the Lab into one state after the other; gives the name of each and the parts that it changes."""
    composer, monitor = page.locator(".lab-composer"), page.locator(".lab-watch .wb-monitor")
    yield "form and live view", ROOTS
    card = composer.locator(".lab-heading .lab-help").nth(2)
    card.click()
    expect(composer.locator(".lab-card")).to_be_visible()
    yield "method card", COMPOSER
    card.click()
    for toggle in composer.locator(".lab-toggle").all():
        if toggle.get_attribute("aria-expanded") != "true":
            toggle.click()
            expect(toggle).to_have_attribute("aria-expanded", "true")
    yield "all sections open", COMPOSER
    heads = composer.locator(".lab-knob", has=page.locator("label", has_text=re.compile(r"^\s*heads"))).last
    enter(heads, "7")
    expect(heads.locator(".lab-error")).to_be_visible()
    yield "a value that cannot be", COMPOSER
    enter(heads, "2")
    expect(heads.locator(".lab-error")).to_have_count(0)
    for text, view in (("Python", ".lab-editor"), ("Difference", ".lab-difference"), ("Form", ".lab-sections")):
        composer.get_by_role("button", name=text, exact=True).click()
        expect(composer.locator(view)).to_be_visible()
        yield text, COMPOSER
    for shown in ("table", "plot"):
        for button in monitor.get_by_role("button", name=re.compile(": more$")).all():
            # By key: above it tables may still be growing, and a click that lands where it no longer is opens nothing.
            button.press("ArrowDown")
            if shown == "table" and button.is_visible():
                yield "a menu", MONITOR
            page.get_by_role("menuitem", name=f"Show as {shown}").click()
        if shown == "table":
            yield "numbers as tables", MONITOR
    monitor.get_by_role("button", name=re.compile("^Stop")).first.click()
    yield "asked whether to stop", MONITOR
    monitor.get_by_role("button", name=re.compile("^Keep training")).click()


def enter(knob: Locator, text: str) -> None:
    """Type a value and leave the box."""
    box = knob.locator("input").first
    box.fill(text)
    box.press("Tab")


SCREENS = {"laptop": (1280, 720), "narrow": (496, 800)}
"""Name -> width and height in CSS pixels. Narrow: a notebook about 420 pixels wide."""


# To bring the Lab into its states takes longest. What axe finds of names and roles is the same in every theme, and what
# is tight is so where there is little room.
@pytest.mark.parametrize(
    ("screen", "theme", "rules"),
    [
        ("laptop", "JupyterLab Light", None),
        pytest.param("narrow", "JupyterLab Dark", COLOURS, marks=pytest.mark.extended),
    ],
    ids=list(SCREENS),
)
def test_axe_finds_nothing_serious_and_nothing_sticks_out_or_is_cut(
    lab: Page, screen: str, theme: str, rules: tuple[str, ...] | None
) -> None:
    choose_theme(lab, theme)
    width, height = SCREENS[screen]
    lab.set_viewport_size({"width": width, "height": height})
    if screen == "narrow":
        expect(lab.locator(".jp-NotebookPanel")).to_have_css("width", re.compile("^4[12][0-9]px$"))
    found: list[str] = []
    for state, changed in states(lab):
        found += violations(lab, state, rules, changed)
        # Plots follow their panels with the next frames.
        found += [f"{state}: {what}" for what in still(lab, lambda: unfit(lab))]
    assert lab.locator(".lab-sections").evaluate("form => form.clientHeight") > 150, "the forms have no room"
    assert found == []


def test_lines_are_sharp_on_a_4k_screen_at_200_percent(lab: Page) -> None:
    session = lab.context.new_cdp_session(lab)
    screen = {"width": 1920, "height": 1080, "deviceScaleFactor": 2, "mobile": False}
    session.send("Emulation.setDeviceMetricsOverride", screen)
    try:
        for place in (".wb-area canvas", ".wb-panel-layers canvas"):
            canvas = lab.locator(place).first
            expect(canvas).to_be_visible()
            lab.wait_for_function(
                "([canvas]) => Math.abs(canvas.width / canvas.clientWidth - 2) < 0.05", arg=[canvas.element_handle()]
            )
        assert still(lab, lambda: unfit(lab)) == []
    finally:
        session.send("Emulation.clearDeviceMetricsOverride")
        session.detach()


def test_every_control_has_a_name(lab: Page) -> None:
    for root in (".lab-composer", ".lab-watch .wb-monitor", ".lab-runs"):
        found = controls(lab, root)
        assert len(found) > 5
        assert [role for role, name in found if not name] == []
    # Two of one name would leave a screen reader's list of buttons without a hint which is which.
    buttons = [name for role, name in controls(lab, ".lab-watch .wb-monitor") if role == "button"]
    assert len(set(buttons)) == len(buttons), buttons


def test_high_contrast(lab: Page) -> None:
    for scheme in ("dark", "light"):
        lab.emulate_media(forced_colors="active", color_scheme=scheme)  # type: ignore[arg-type]
        monitor = lab.locator(".lab-watch .wb-monitor")
        expect(monitor).to_have_attribute("data-theme", scheme)
        assert violations(lab, f"forced colours, {scheme}") == []
        # What a background says elsewhere is said by a border, and a bar keeps its colour.
        pressed = monitor.locator("button[aria-pressed=true]").first
        expect(pressed).to_have_css("border-top-width", "2px")
        launch = lab.locator(".lab-launch")
        expect(launch).to_have_css("border-top-width", "1px")
        fill = monitor.locator(".wb-fill").evaluate("one => getComputedStyle(one).backgroundColor")
        assert fill != monitor.evaluate("one => getComputedStyle(one).backgroundColor")
        launch.focus()
        lab.keyboard.press("Shift+Tab")
        lab.keyboard.press("Tab")
        expect(launch).not_to_have_css("outline-style", "none")
        expect_curve(monitor)
        lab.screenshot(path=RESULTS / f"high-contrast-{scheme}.png")


def test_less_motion_means_none(lab: Page) -> None:
    lab.emulate_media(reduced_motion="reduce")
    moving = """roots => document.getAnimations().filter((one) =>
        one.playState === "running" && one.effect?.target?.closest(roots)).map((one) => one.effect.target.className)"""
    for _ in range(20):
        assert lab.evaluate(moving, ".lab-root, .wb-monitor") == []
        lab.wait_for_timeout(50)


MOST_TO_LAUNCH, MOST_STOPS = 55, 83
"""Presses of Tab from the presets to Launch, and through a whole Lab with a run: each knob is one, each toolbar is."""
_FOCUSED = """() => {
    const one = document.activeElement;
    return (one.getAttribute("aria-label") || one.labels?.[0]?.textContent || one.textContent || "").trim();
}"""


def tab_to(page: Page, name: str, key: str = "Tab") -> int:
    """Press Tab until a control of this name (a pattern) has the focus; returns how often."""
    seen: list[str] = []
    for presses in range(150):
        focused = str(page.evaluate(_FOCUSED))
        if re.search(name, focused):
            return presses
        seen.append(focused[:40])
        page.keyboard.press(key)
    raise AssertionError(f"{key} never reaches {name}: {seen}")


def test_everything_with_the_keyboard_alone(page: Page, server: Server, corpus: Path) -> None:
    write_lab(server, corpus, "keyboard.ipynb")
    notebook = Notebook(page, server, "keyboard.ipynb")
    page.keyboard.press("Control+Enter")  # the notebook has the focus when it is open
    expect(page.locator(".lab-composer")).to_be_visible()

    tab_to(page, "^preset$")
    # One key at a time: a word is two where the page is slow. Not the verdict, which says of every preset the same.
    for key, title in (("Home", "Two thin layers on a small text"), ("b", "BERT at 4 layers x 256")):
        page.keyboard.press(key)
        expect(page.locator(".lab-composer")).to_contain_text(title)
    page.keyboard.press("Home")
    expect(page.locator(".lab-composer")).to_contain_text("Two thin layers on a small text")
    assert tab_to(page, "^Launch$") <= MOST_TO_LAUNCH
    page.keyboard.press("Enter")
    monitor = page.locator(".lab-watch .wb-monitor")
    expect(monitor.locator(".wb-pill")).to_have_text("running", timeout=120_000)
    expect(monitor.locator(".wb-place")).to_contain_text(re.compile(r"[1-9]\d+ /"))
    run = runs(server.runs)[0]
    assert run.name == "pocket"
    yield_to_others(run)

    tab_to(page, "^Loss\\. .*Arrow keys read values")
    page.keyboard.press("ArrowLeft")
    readout = monitor.locator(".wb-panel-loss .wb-readout")
    expect(readout).to_contain_text(re.compile(r"\d\.\d"))
    here = readout.inner_text()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    expect(readout).not_to_have_text(here)
    everything = monitor.get_by_role("button", name="Show all")
    expect(everything).to_be_hidden()
    page.keyboard.press("+")
    expect(everything).to_be_visible()
    page.keyboard.press("Escape")
    expect(everything).to_be_hidden()

    # A table of buttons is one stop: arrows go from one to the next.
    tab_to(page, "^Show in the plots: pocket$", key="Shift+Tab")
    assert tab_to(page, "^Stop: pocket$", key="ArrowRight") == 2
    page.keyboard.press("Enter")
    sure = monitor.get_by_role("button", name="Stop this run")
    # Not before it can be read: the key that asked does not answer.
    expect(sure).to_be_focused()
    sure.press("Enter")
    expect(monitor.locator(".wb-pill")).to_have_text("stopped")
    assert run.status == "stopped"
    page.get_by_role("toolbar", name="regions of the Lab").get_by_role("button", name="Compose").focus()
    stops = 0
    while page.evaluate("document.activeElement.closest('.lab-whole') !== null"):
        page.keyboard.press("Tab")
        stops += 1
        assert stops <= MOST_STOPS
    # Headings of the forms are one stop, too.
    page.locator(".lab-toggle").first.focus()
    page.keyboard.press("End")
    expect(page.locator(".lab-toggle").last).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator(".lab-toggle", has_text="Execution")).to_be_focused()
    assert page.locator(".lab-toggle[tabindex='0']").count() == 1
    assert notebook.complaints == []
