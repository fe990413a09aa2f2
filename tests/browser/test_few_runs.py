"""The table of a few runs: what is asked of them, hidden, grouped, failed; columns that are added or do not fit."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import RESULTS
from tests.browser.looks import soon, still, unfit
from tests.browser.many_runs import six
from tests.browser.runs_table import action, chosen, in_sight, line, names, open_table
from tests.browser.servers import Server
from tests.browser.steer import trained_meanwhile
from tests.jupyter.live import run_folder
from workbench.launchers.queue.settings import write_settings
from workbench.launchers.queue.turn import enter
from workbench.store.control import write_knobs
from workbench.store.folder import RunFolder, read_json, write_json
from workbench.store.labels import label
from workbench.store.state import write_state

pytestmark = pytest.mark.browser
_ON_TOP = """cell => {
    const box = cell.getBoundingClientRect();
    return cell.contains(document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2));
}"""

_EVERY_WORD = """line => {
    window.words = [];
    const heard = new MutationObserver(() => window.words.push(line.textContent));
    heard.observe(line, {childList: true, subtree: true, characterData: true});
}"""


@pytest.mark.extended
def test_what_a_run_is_at_is_never_called_refused(page: Page, server: Server, corpus: Path, tmp_path: Path) -> None:
    with trained_meanwhile(corpus, tmp_path / "going") as run:
        open_table(page, server, "asked.ipynb", f"Lab(runs_dir={str(tmp_path / 'going')!r})").run(1)
        in_sight(page)
        said = page.locator(".lab-said")
        said.evaluate(_EVERY_WORD)
        page.locator(".lab-line").first.click()
        action(page, "Evaluate").click()
        expect(said).to_contain_text(f"evaluate: {run.name}: held-out loss")
        action(page, "Checkpoint").click()
        expect(said).to_contain_text(f"checkpoint: {run.name}: saved step-")
        assert [words for words in page.evaluate("window.words") if "refused" in words] == []

        page.keyboard.press("s")
        question = page.locator(".lab-runs .wb-question")
        expect(question).to_contain_text(f"Stop {run.name}?")
        expect(question.get_by_role("button", name="Stop this run")).to_be_focused()
        question.get_by_role("button", name="Keep training").click()
        expect(question).to_be_hidden()
        assert run.status == "running"
        page.locator(".lab-line").first.press("s")
        expect(question.get_by_role("button", name="Stop this run")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".lab-line .lab-status")).to_have_text("stopped")
        expect(action(page, "Stop")).to_have_attribute("aria-disabled", "true")


@pytest.mark.extended
def test_a_few_runs(page: Page, server: Server, original: RunFolder, tmp_path: Path) -> None:
    """One kernel for all of it: each part has the table of another six runs."""
    parts = (
        what_the_filter_hides_is_not_acted_on, a_double_click_does_one_thing, a_question_stands_at_its_button,
        knobs_are_columns_and_seeds_come_together,
        names_stay_in_sight_and_arrows_are_whole, a_failed_run_says_why_and_offers_what_helps,
        a_run_whose_text_is_gone_is_not_resumed, a_run_that_waits_becomes_the_next,
    )  # fmt: skip
    notebook = open_table(page, server, "few.ipynb", f"Lab(runs_dir=max(pathlib.Path({str(tmp_path)!r}).iterdir()))")
    for number, part in enumerate(parts):
        few = six(original, tmp_path / str(number))
        notebook.run(1)
        in_sight(page)
        part(page, few)


def what_the_filter_hides_is_not_acted_on(page: Page, few: list[RunFolder]) -> None:
    line(page, 5).click()
    line(page, 3).click(modifiers=["Shift"])
    expect(chosen(page)).to_have_text("3 selected")
    page.get_by_role("searchbox", name="filter runs").fill("seed:0")
    expect(chosen(page)).to_have_text("3 selected, 2 hidden by the filter")
    action(page, "Delete").click()
    expect(page.locator(".lab-runs .wb-question")).to_contain_text("Move run 4 to the trash?")
    page.screenshot(path=RESULTS / "runs-hidden.png")
    page.get_by_role("button", name="Move to trash").click()
    expect(page.locator(".lab-said")).to_contain_text("moved run 4 to the trash")
    page.get_by_role("searchbox", name="filter runs").fill("")
    expect(names(page)).to_have_text(["run 5", "run 3", "run 2", "run 1", "run 0"])
    assert [folder.path.is_dir() for folder in few] == [True, True, True, True, False, True]
    expect(chosen(page)).to_have_text("2 selected")


def a_failed_run_says_why_and_offers_what_helps(page: Page, few: list[RunFolder]) -> None:
    why = "the loss became nan at step 3; lower optimizer.lr; it left no checkpoint: begin it anew. " + "more " * 40
    write_state(few[5], status="failed", error=why, repeats=True)
    expect(line(page, 5).locator(".lab-status")).to_have_text("failed")
    line(page, 5).locator(".lab-mark").click()
    expect(line(page, 5).locator(".lab-mark .wb-sample")).to_be_visible()
    expect(line(page, 4).locator(".lab-mark .wb-sample")).to_have_count(0)
    row = page.locator(".lab-watch .wb-run")
    reason = page.locator(".lab-watch .wb-why")
    expect(reason).to_contain_text(why.strip())
    page.screenshot(path=RESULTS / "run-failed.png")
    colours = [
        row.locator(".wb-pill").evaluate("pill => getComputedStyle(pill, '::before').backgroundColor"),
        line(page, 5).locator(".lab-status").evaluate("cell => getComputedStyle(cell, '::before').backgroundColor"),
    ]
    assert colours[0] == colours[1], "a state has one colour"
    # The columns fit beside the bar that scrolls the lines, which the free column gives room.
    scroll = page.locator(".lab-scroll")
    for width in (860, 890, 995, 1091, 1094, 1175, 1285, 1288):
        page.locator(".lab-runs").evaluate("(root, width) => { root.style.width = `${width}px`; }", width)
        soon(lambda: scroll.evaluate("one => one.scrollWidth - one.clientWidth"), 0)
    page.locator(".lab-runs").evaluate("root => { root.style.width = ''; }")
    box = reason.locator("p").evaluate("one => [...one.getClientRects()].length")
    assert box > 1, "it wraps"
    expect(row.get_by_role("button", name="Resume")).to_have_count(0)
    row.get_by_role("button", name="Steer").click()
    expect(page.locator(".lab-watch .wb-steer")).to_contain_text("nothing of it goes on to be steered")
    expect(page.locator(".lab-watch .wb-steer")).to_contain_text("it left no checkpoint to go on from")
    reason.get_by_role("button", name="Edit and relaunch").click()
    expect(page.locator(".lab-composer")).to_contain_text(re.compile("as run .* has it"))


def a_run_whose_text_is_gone_is_not_resumed(page: Page, few: list[RunFolder]) -> None:
    gone = f"/gone/{'of/years/' * 20}notes.txt"
    data = read_json(few[5].recipe)["data"] | {"paths": [gone]}
    write_json(few[5].recipe, read_json(few[5].recipe) | {"data": data})
    write_state(few[5], status="stopped")
    expect(line(page, 5).locator(".lab-status")).to_have_text("stopped")
    line(page, 5).click()
    why = f"Resume: the text that it trains on is not there any more: {gone}"
    expect(action(page, "Resume")).to_have_attribute("aria-disabled", "true")
    action(page, "Resume").press("Enter")
    expect(page.locator(".lab-said")).to_contain_text(why)
    an_error_of_several_lines_covers_no_row(page)
    line(page, 5).locator(".lab-mark").click()
    resume = page.locator(".lab-watch .wb-run").get_by_role("button", name="Resume")
    expect(resume).to_have_attribute("aria-disabled", "true")
    expect(resume).to_have_attribute("title", why)
    resume.press("Enter")
    expect(page.locator(".lab-watch .wb-toolbar .wb-said")).to_have_text(why)
    page.screenshot(path=RESULTS / "run-without-text.png")
    assert violations(page, "a run without its text", roots=(".wb-monitor",)) == []


def an_error_of_several_lines_covers_no_row(page: Page) -> None:
    said = page.locator(".lab-said")
    soon(lambda: said.evaluate("one => one.offsetHeight"), lambda height: height > 30)
    begins = page.locator(".lab-scroll").evaluate("one => one.getBoundingClientRect().top")
    assert said.evaluate("one => one.getBoundingClientRect().bottom") <= begins
    page.screenshot(path=RESULTS / "runs-error.png")


def a_run_that_waits_becomes_the_next(page: Page, few: list[RunFolder]) -> None:
    expect(action(page, "Next")).to_have_count(0)
    queue, root = Path(os.environ["WORKBENCH_QUEUE"]), few[0].path.parent
    folders = [
        run_folder(
            root / f"20270101-00000{n}-queued-000000-0000",
            "queued",
            name=name,
            execution={"kind": "native", "threads": 1},
        )
        for n, name in enumerate(("trains", "waits", "comes last"))
    ]
    for folder in folders:
        write_json(folder.needs, {"gpus": []})
    write_settings(queue, {"cores": 1})
    turns = [enter(folder) for folder in folders]
    write_state(folders[0], status="running")
    last = page.locator(".lab-runs .lab-line", has_text="comes last")
    expect(last).to_contain_text("2nd in line")
    last.click()
    action(page, "Next").click()
    expect(page.locator(".lab-said")).to_contain_text("comes last: position 1, start unknown")
    expect(last).to_contain_text("1st in line")
    expect(page.locator(".lab-runs .lab-line", has_text="waits")).to_contain_text("2nd in line")
    assert still(page, lambda: unfit(page)) == []
    page.screenshot(path=RESULTS / "runs-queued.png")
    for folder, turn in zip(folders, turns, strict=True):
        write_state(folder, status="stopped")
        turn.leave()
    write_settings(queue, {"cores": 10_000})
    expect(action(page, "Next")).to_have_count(0)


def a_double_click_does_one_thing(page: Page, few: list[RunFolder]) -> None:
    mark = line(page, 5).locator(".lab-mark")
    mark.dblclick()
    expect(mark).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".lab-watch .wb-run")).to_have_count(1)
    line(page, 4).click()
    # The question that the first click opens is not answered by the second, wherever it appears.
    action(page, "Delete").dblclick()
    expect(page.get_by_role("button", name="Move to trash")).to_be_focused()
    page.keyboard.press("Escape")
    assert all(folder.path.is_dir() for folder in few)


def a_question_stands_at_its_button(page: Page, few: list[RunFolder]) -> None:
    line(page, 5).click()
    question, rows = page.locator(".lab-runs .wb-question"), page.locator(".lab-scroll")
    place = still(page, rows.bounding_box)
    for name in ("Rename", "Tag", "Delete"):
        action(page, name).click()
        expect(question).to_be_visible()
        asked, button = question.bounding_box(), action(page, name).bounding_box()
        assert asked is not None
        assert button is not None
        assert asked["x"] - 1 <= button["x"] <= asked["x"] + asked["width"], "above it"
        assert abs(asked["y"] + asked["height"] - button["y"]) < 8
        assert rows.bounding_box() == place, "nothing moves"
        assert question.evaluate("one => one.contains(document.activeElement)")
        page.screenshot(path=RESULTS / f"runs-question-{name.lower()}.png")
        page.keyboard.press("Escape")
        expect(question).to_be_hidden()
    action(page, "Tag").click()
    expect(question.get_by_role("button", name="Cancel")).to_be_visible()
    question.get_by_role("textbox").fill("tried")
    expect(question.locator(".wb-yes")).to_be_enabled()
    page.keyboard.press("Enter")
    expect(question).to_be_hidden()


def knobs_are_columns_and_seeds_come_together(page: Page, few: list[RunFolder]) -> None:
    page.get_by_role("button", name="Columns").click()
    page.get_by_label("knob to add as a column").fill("lr")
    page.keyboard.press("Enter")
    header = page.get_by_role("columnheader", name="lr", exact=True)
    expect(header).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Columns")).to_be_focused()
    header.get_by_role("button").click()
    expect(header).to_have_attribute("aria-sort", "ascending")
    expect(names(page)).to_have_text(["run 1", "run 0", "run 3", "run 2", "run 5", "run 4"])
    page.get_by_label("group runs by").select_option("recipe")
    groups = page.locator(".lab-runs .lab-together")
    expect(groups.locator(".lab-name")).to_have_text([f"▾ run · lr 0.00{number}" for number in (1, 2, 3)])
    expect(groups.locator(".lab-state")).to_have_text(["2 seeds"] * 3)
    mean = groups.first.locator(".lab-cell").nth(5)
    expect(mean).to_have_text("3.050 ± 0.071")
    # A class of another pane has once taken its cells apart.
    heights = "all => [...new Set(all.map(cell => Math.round(cell.getBoundingClientRect().height)))]"
    assert still(page, lambda: groups.locator("td").evaluate_all(heights)) == [28]
    assert mean.evaluate("cell => cell.scrollWidth <= cell.clientWidth")
    page.screenshot(path=RESULTS / "runs-grouped.png")
    groups.first.locator(".lab-name").click()
    expect(line(page, 1)).to_have_count(0)
    expect(line(page, 3)).to_be_visible()
    # Ticked as a whole it is seen, and can be acted on; in part it cannot.
    groups.first.locator(".lab-check").check()
    expect(chosen(page)).to_have_text("2 selected")
    action(page, "Delete").click()
    expect(page.get_by_text("Move run 1, run 0 to the trash?")).to_be_visible()
    page.keyboard.press("Escape")
    groups.first.press("Enter")
    line(page, 1).locator(".lab-check").uncheck()
    groups.first.press("Enter")
    expect(chosen(page)).to_have_text("1 selected, 1 in closed groups")
    expect(action(page, "Delete")).to_have_attribute("title", re.compile("^Delete: unfold the group run · lr 0.001"))
    groups.first.press("Enter")
    expect(chosen(page)).to_have_text("1 selected")

    # A race takes one line until it is opened or looked for.
    for number in range(2):
        folder = RunFolder(few[0].path.parent / f"{few[0].id[:15]}-arm-s{number}")
        shutil.copytree(few[0].path, folder.path)
        label(folder, add=["race:deep"])
    page.get_by_label("group runs by").select_option("")
    expect(names(page)).to_have_text(
        ["run 1", "run 0", "▸ race deep (2 runs, finished)", "run 3", "run 2", "run 5", "run 4"]
    )
    page.get_by_role("searchbox", name="filter runs").fill("race:deep")
    expect(names(page)).to_have_text(["run 0", "run 0"])
    page.get_by_role("searchbox", name="filter runs").fill("")

    # Steered, it is found by the value in force; deleted, it keeps it.
    write_knobs(few[5], [{"path": "optimizer.lr", "value": 0.005}])
    write_state(few[5], step=21)
    rate = line(page, 5).locator(".lab-other", has_text="0.003 → 0.005")
    expect(rate).to_have_attribute("title", "steered from 0.003")
    page.get_by_role("searchbox", name="filter runs").fill("lr>3e-3")
    expect(names(page)).to_have_text(["run 5"])
    line(page, 5).click()
    action(page, "Delete").click()
    page.get_by_role("button", name="Move to trash").click()
    page.get_by_role("button", name=re.compile("^Trash")).click()
    expect(names(page)).to_have_text(["run 5"])
    expect(rate).to_be_visible()


def names_stay_in_sight_and_arrows_are_whole(page: Page, few: list[RunFolder]) -> None:
    page.get_by_role("button", name="Columns").click()
    for name in ("owner", "device"):
        page.get_by_role("checkbox", name=name).check()
    page.keyboard.press("Escape")
    header = page.get_by_role("columnheader", name="tokens/s")
    header.get_by_role("button").click()
    expect(header).to_have_attribute("aria-sort", "descending")
    # The arrow is the last of the button, and none of it lies outside.
    assert header.get_by_role("button").evaluate("button => button.scrollWidth <= button.clientWidth")
    box = page.locator(".lab-scroll")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    name = line(page, 5).locator(".lab-name")
    before = still(page, name.bounding_box)
    box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    page.screenshot(path=RESULTS / "runs-pinned.png")
    assert still(page, name.bounding_box) == before
    assert name.evaluate(_ON_TOP)
