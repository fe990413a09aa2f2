"""A live view in a saved notebook: curves without a kernel, pictures without scripts; and cells that are run again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import bleach
import pytest
from nbconvert import HTMLExporter
from playwright.sync_api import Browser, CDPSession, Locator, Page, expect

from tests.browser.conftest import RESULTS, Open, pages
from tests.browser.jupyter import Notebook, write_notebook
from tests.browser.looks import expect_curve, expect_picture, soon
from tests.browser.servers import Server
from tests.tiny_runs import tiny_recipe, wait_until, yield_to_others
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.jupyter.watch.saved_picture import RULES
from workbench.store.state import FINAL

pytestmark = pytest.mark.browser

SAVE_STATE = "lab/api/settings/@jupyter-widgets/jupyterlab-manager:plugin"
# The picture for saved notebooks comes once a minute; a test need not wait that long.
HURRY = "from workbench.jupyter.watch import feed, saved_picture\n"
HURRY += "feed._SNAPSHOT_SECONDS = saved_picture.DRAW_EVERY_SECONDS = 4.0\n"  # and yet time to save between two
WIDE_ENOUGH = 300
TIMES = 3
# Pictures that were begun for views which are closed by now may still be on their way.
LOOK = """
import gc, threading, time
from ipywidgets.widgets.widget import _instances

def threads(name):
    return sum(thread.name.startswith(name) for thread in threading.enumerate())

deadline = time.monotonic() + 60
# The view that is there may have one waiting.
while threads("workbench-saved-picture") > 1 and time.monotonic() < deadline:
    time.sleep(0.1)
gc.collect()
drawing = threads("workbench-saved-picture")
print(len(_instances), threads("workbench") - drawing, drawing > 1)
""".strip()


@pytest.fixture(scope="module")
def run(server: Server, corpus: Path) -> Iterator[Run]:
    """One that goes on until the last test that looks at it ends it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        live = launch(tiny_recipe(corpus, steps=1_000_000, name="lasting"), runs_dir=server.runs)
    wait_until(lambda: live.status == "running" and live.state.step > 5, seconds=180)
    yield_to_others(live)
    yield live
    end(live)


def end(run: Run) -> None:
    if run.status not in FINAL:
        run.stop()
        wait_until(lambda: run.status in FINAL, seconds=180, what="the end of the run")


def picture_of(html: str, page: Page) -> Locator:
    """The picture of a run in a page that runs no scripts."""
    page.set_content(html)
    return page.locator("img[alt^='Loss, tokens per second']")


def as_on_github(path: Path) -> str:
    """A notebook as a site shows it that trusts nobody: converted, then no scripts, no styles, no frames, no events.

    Pictures as data stay, as they must: the PNG outputs of any notebook have become such by then.
    """
    html, _ = HTMLExporter(template_name="basic").from_filename(str(path))
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL | re.IGNORECASE)
    tags = {"div", "span", "p", "pre", "code", "table", "thead", "tbody", "tr", "th", "td", "img", "strong", "a", "h1"}
    return str(
        bleach.clean(
            bare,
            tags=tags,
            attributes={"img": ["src", "alt"], "th": ["scope"]},
            protocols={"https", "data"},
            strip=True,
        )
    )


def saved(notebook: Notebook, path: Path, holds: Callable[[str], bool]) -> str:
    """Save a notebook until its file holds what it should; returns that very text.

    Jupyter empties the file and then fills it: whoever looks meanwhile, or looks twice, has half of a notebook.
    """
    found = ""

    def whole() -> bool:
        nonlocal found
        notebook.save()
        found = path.read_text()
        try:
            json.loads(found)
        except ValueError:
            return False
        return holds(found)

    wait_until(whole, what=f"{path.name} as it should be saved")
    return found


def expect_no_broken_widget(page: Page) -> None:
    for words in ("model not found", "Loading widget", "Error displaying"):
        for output in page.locator(".jp-OutputArea-output", has_text=words).all():
            expect(output).not_to_be_visible()


def saved_live(page: Page, server: Server, run: Run, name: str) -> tuple[Notebook, str]:
    """A notebook that was saved while its view was live, and its text."""
    write_notebook(server.root / name, [f"{HURRY}import workbench as wb\nwb.Run({run.id!r}).watch()"])
    notebook = Notebook(page, server, name)
    output = notebook.run(0)
    expect(output.locator(".wb-place")).to_contain_text(re.compile(r"[1-9][\d,]* /"))
    # It is there, but whoever sees the live view does not see it.
    expect(output.locator(".wb-saved img")).to_have_count(1)
    expect(output.locator(".wb-saved img")).not_to_be_visible()
    return notebook, saved(notebook, server.root / name, lambda text: "wb-saved" in text and "alt=" in text)


@pytest.mark.extended
def test_with_widget_state_saved_the_curves_themselves_are_there(new_page: Open, server: Server, run: Run) -> None:
    server.ask(SAVE_STATE, "PUT", {"raw": json.dumps({"saveState": True})})
    try:
        path = server.root / "state.ipynb"
        notebook, _ = saved_live(new_page(), server, run, path.name)
        assert len(saved(notebook, path, lambda text: "widget-state+json" in text)) < 600_000
        server.shut_kernels_down()
        page = new_page()
        # Nor does the server, which would soon draw the run instead.
        page.route("**/workbench/api/telemetry?*", lambda route: route.fulfill(body=""))
        page.goto(f"{server.url}/lab/tree/{path.name}?reset&token={server.token}")
        monitor = page.locator(".wb-monitor")
        expect(monitor).to_contain_text("saved picture: the kernel has not answered")
        expect_curve(monitor)
        expect(page.locator(".wb-saved img")).not_to_be_visible()
        expect(monitor.get_by_role("button", name=re.compile("^(Stop|Pause)"))).to_have_count(0)
    finally:
        server.ask(SAVE_STATE, "PUT", {"raw": "{}"})


class Memory:
    """Memory of the page, after its garbage was collected."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        session.send("Performance.enable")

    def now(self) -> dict[str, float]:
        """Bytes of the heap, nodes (detached ones included), listeners."""
        for _ in range(3):
            self._session.send("HeapProfiler.collectGarbage")
        metrics = {m["name"]: m["value"] for m in self._session.send("Performance.getMetrics")["metrics"]}
        return {name: metrics[name] for name in ("JSHeapUsedSize", "Nodes", "JSEventListeners")}


@pytest.mark.extended
def test_a_cell_run_ten_times_leaves_no_memory(new_page: Open, server: Server, run: Run) -> None:
    page = new_page()  # nothing that others have left in it goes meanwhile
    write_notebook(server.root / "again.ipynb", [f"import workbench as wb\nwb.Run({run.id!r}).watch()", LOOK])
    notebook = Notebook(page, server, "again.ipynb")
    memory = Memory(page.context.new_cdp_session(page))

    def watch(times: int) -> dict[str, float]:
        for _ in range(times):
            output = notebook.run(0)
            expect(output.locator(".wb-place")).to_contain_text(re.compile(r"[1-9][\d,]* /"))
        # On a busy machine the page is still taking the last ones away: until nothing more goes.
        now = memory.now()
        for _ in range(10):
            page.wait_for_timeout(1000)
            last, now = now, memory.now()
            if now["JSEventListeners"] >= last["JSEventListeners"] and now["Nodes"] >= last["Nodes"]:
                break
        return now

    # The kernel is asked before and after: to go to another cell costs JupyterLab itself 500 nodes and 1,600 listeners.
    watch(1)
    kernel = soon(notebook.run(1).inner_text, str.strip)
    counts = [watch(2), watch(TIMES), watch(TIMES)]
    expect(notebook.run(1)).to_have_text(kernel)
    # What a busy moment has not taken away yet is in one of the two; what stays behind each time, in both.
    growth = {name: min(after[name] - before[name] for before, after in pairwise(counts)) for name in counts[0]}
    # One view that stayed behind each time would leave 300 nodes and 60 listeners each. Measured after 15 are 96 and
    # none, of a slider of ipywidgets 195 and 75. JupyterLab itself keeps the model of every closed comm (a slot of its
    # kernel's signal), here 0.1 MB each, and 0.07 MB per run of any cell.
    assert growth["Nodes"] < 300, growth
    assert growth["JSEventListeners"] < 100, growth
    assert growth["JSHeapUsedSize"] < TIMES * 250_000 + 600_000, growth  # what of the last view is on its way out
    assert page.evaluate("globalThis[Symbol.for('workbench widgets')].size") == 1, "its code was loaded once"


@pytest.mark.extended
def test_a_notebook_saved_while_its_run_went_on(page: Page, new_page: Open, server: Server, run: Run) -> None:
    path = server.root / "saved.ipynb"
    notebook, going = saved_live(page, server, run, path.name)
    assert len(going) < 300_000

    # At the end the picture takes the place of the view, and nothing else stays.
    end(run)
    output = notebook.cell(0).locator(".jp-OutputArea").first
    expect(output.locator("img")).to_have_count(1, timeout=60_000)
    expect(output.locator("img")).to_be_visible()
    expect(output.locator(".wb-monitor")).to_have_count(0)
    ended = saved(notebook, path, lambda text: "Saved 20" not in text)
    assert len(ended) < 300_000

    plain = new_page(java_script_enabled=False)
    for what, text in (("going", going), ("ended", ended)):
        path = server.root / f"{what}.ipynb"
        path.write_text(text)
        for html in (HTMLExporter().from_filename(str(path))[0], as_on_github(path)):
            picture = picture_of(html, plain)
            expect(picture).to_have_count(1)
            box = picture.bounding_box()
            assert box is not None
            assert box["width"] > WIDE_ENOUGH, what
        assert "<script" not in as_on_github(path)

    # Opened again the next day: a kernel that knows nothing of it, or none at all.
    server.shut_kernels_down()
    reader = new_page()
    for kernel in ("gone", "python3"):
        path = server.root / f"reopened-{kernel}.ipynb"
        # Of another language as well: JupyterLab starts the only kernel of a language by itself.
        reopened = json.loads(going)
        if kernel == "gone":
            reopened["metadata"] = {"kernelspec": {"name": kernel, "display_name": "Gone", "language": kernel}}
        path.write_text(json.dumps(reopened))
        if kernel == "gone":
            reader.goto(f"{server.url}/lab/tree/{path.name}?reset&token={server.token}")
            reader.locator(".jp-Dialog").get_by_role("button", name="No Kernel", exact=True).click()
        else:
            Notebook(reader, server, path.name)
        picture = reader.locator(".jp-OutputArea .wb-saved img")
        expect_picture(picture)
        expect(reader.locator(".wb-saved")).to_contain_text("in a new cell")
        expect_no_broken_widget(reader)


@pytest.mark.extended
def test_a_saved_lab_and_comparison_show_what_they_held(
    page: Page, new_page: Open, server: Server, corpus: Path
) -> None:
    recipe = tiny_recipe(corpus, steps=1_000_000, name="watched").with_(execution={"threads": 1})
    live = launch(recipe, runs_dir=server.runs)
    wait_until(lambda: live.status == "running" and live.state.step > 5, seconds=180)
    yield_to_others(live)
    path = server.root / "kept.ipynb"
    code = f"{HURRY}import workbench as wb\nlab = wb.Lab(wb.presets.fast())\nlab.table.watched = [{live.id!r}]\nlab"
    write_notebook(path, [code, "wb.compare('watched')"])
    notebook = Notebook(page, server, path.name)
    for index in range(2):
        output = notebook.run(index)
        expect(output.locator(".wb-monitor").first).to_be_visible()
        expect(output.locator(".wb-saved img")).to_have_count(1)
        expect(output.locator(".wb-saved img")).not_to_be_visible()
    text = saved(notebook, path, lambda text: text.count('alt=\\"Loss') == 2)
    assert len(text) < 400_000
    assert not re.search("object at 0x|children=", text)
    end(live)

    server.shut_kernels_down()
    plain = new_page(java_script_enabled=False)
    for html in (HTMLExporter().from_filename(str(path))[0], as_on_github(path)):
        plain.set_content(html)
        expect(plain.locator("img[alt^='Loss, tokens per second']")).to_have_count(2)
        for words in ("Recipe fast", f"Runs in {server.runs}", "what was learned"):
            expect(plain.get_by_text(words).first).to_be_visible()
        for picture in plain.locator("img[alt^='Loss, tokens per second']").all():
            expect(picture).to_be_visible()
    page = new_page()
    page.goto(f"{server.url}/lab/tree/{path.name}?reset&token={server.token}")
    kept = page.locator(".wb-saved")
    for index in range(2):
        expect(kept.nth(index).locator("img")).to_be_visible()
    expect(kept.first).to_contain_text("Recipe fast")
    expect(kept.first.locator("table", has_text=live.id)).to_be_visible()
    expect_no_broken_widget(page)
    page.screenshot(path=RESULTS / "saved-lab.png")


@pytest.fixture(scope="module")
def plain(browser: Browser) -> Iterator[Page]:
    """A page that runs no scripts."""
    with pages(browser, "plain") as open_one:
        yield open_one(java_script_enabled=False)


@pytest.mark.parametrize(
    ("view", "picture", "view_is_seen", "picture_is_seen"),
    [
        ('<div class="lm-Widget wb-monitor">live</div>', "<img alt='x'>", True, False),
        ('<div class="jupyter-widgets widget-box">live</div>', "", True, False),
        ("Error displaying widget: model not found", "<img alt='x'>", False, True),
        ("Loading widget...", "<table><tr><td>x</td></tr></table>", False, True),
        ("Error displaying widget: model not found", "<hr hidden>", False, True),  # what stands above stands for it
        ("Loading widget...", "", True, True),  # nothing is drawn yet that could stand for it
        ("<p>As a page shows it that does not trust the notebook.</p>", "<img alt='x'>", True, True),
    ],
)
def test_which_of_a_view_and_its_picture_is_seen(
    plain: Page, view: str, picture: str, view_is_seen: bool, picture_is_seen: bool
) -> None:
    kept = f'{RULES}<div class="wb-saved">{picture}kept</div>'
    outputs = [
        f'<div class="lm-Widget jp-OutputArea-child"><div class="lm-Widget jp-OutputArea-output">{each}</div></div>'
        for each in (view, kept, "<p>another output</p>")
    ]
    plain.set_content(f'<div class="jp-OutputArea">{"".join(outputs)}</div>')
    first, second, third = plain.locator(".jp-OutputArea-child").all()
    for output, seen in ((first, view_is_seen), (second, picture_is_seen), (third, True)):
        (expect(output).to_be_visible if seen else expect(output).not_to_be_visible)()
