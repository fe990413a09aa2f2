"""Takes pictures of the Lab and the live view in every state, in a real JupyterLab, with real runs.

    python docs/screens.py              # all states, into test-results/screens; some minutes on two cores
    python docs/screens.py watch lab    # these
    python docs/screens.py tabs --keep  # those that README and site show as well, into docs/images

To be looked at, one by one, when the page has changed. Needs what the browser tests need (`make browser`).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.browser.conftest import CHROMIUM_NAMES, CHROMIUM_OPTIONS  # noqa: E402
from tests.browser.jupyter import Notebook, choose_theme, write_notebook  # noqa: E402
from tests.browser.servers import Server, jupyterlab  # noqa: E402
from tests.corpus import write_corpus  # noqa: E402
from tests.tiny_runs import tiny_recipe, wait_until  # noqa: E402
from workbench import presets  # noqa: E402
from workbench.base.errors import unknown  # noqa: E402
from workbench.client.launch import launch  # noqa: E402
from workbench.client.run import Run  # noqa: E402
from workbench.experiments.race.race import Race  # noqa: E402
from workbench.experiments.race.race import race as begin_race  # noqa: E402
from workbench.forecasting.forecast import forecast  # noqa: E402
from workbench.store.state import FINAL  # noqa: E402

OUT = ROOT / "test-results" / "screens"
IMAGES = ROOT / "docs" / "images"
PATIENCE_SECONDS = 600.0
BOTH = ("progressive dropping", "stacking, MSLT")
WATCHED = {"objective": "causal", "execution": {"compile": False, "threads": 1, "layers_every": 2}}
"""Changes to the presets that are watched: causal models learn at once; on a core each, single decisions in view."""


class Studio:
    """A server, a browser and some runs to take pictures of."""

    def __init__(self, server: Server, browser: Browser, out: Path, corpus: Path) -> None:
        self.server, self.browser, self.out, self.corpus = server, browser, out, corpus
        self.runs: dict[str, Run] = {}

    def run(self, name: str) -> Run:
        """A run by what it shows; launched when it is first asked for."""
        if name not in self.runs:
            self.runs[name] = self._launch(name)
        return self.runs[name]

    def _launch(self, name: str) -> Run:
        tiny, gone = tiny_recipe(self.corpus, steps=1_000_000, name=name), self.corpus.with_name("gone.jsonl")
        recipe = {
            "progressive dropping": lambda: presets.pld().with_(name=name, **WATCHED),
            "stacking, MSLT": lambda: presets.mslt().with_(name=name, **WATCHED),
            "finished": lambda: tiny.with_(budget={"amount": 200, "evaluations": 4}),
            "failed": lambda: tiny.with_(data={"paths": [str(shutil.copy(self.corpus, gone))]}),
        }.get(name, lambda: tiny)()
        # States of a second are not to wait for the two that are watched, which have the cores for minutes.
        run = launch(recipe, runs_dir=self.server.runs, queue=name in BOTH)
        # A text that is deleted before it is read; one that is not there would not be launched.
        gone.unlink(missing_ok=True)
        wait = {"failed": ("failed",), "finished": ("finished",)}.get(name, ("running", *FINAL))
        wait_until(lambda: run.status in wait, PATIENCE_SECONDS, f"the run '{name}'")
        if name in ("paused", "stopped"):
            wait_until(lambda: run.state.step > 200, PATIENCE_SECONDS, "200 steps")
            (run.pause if name == "paused" else run.stop)()
            wait_until(lambda: run.status == name, PATIENCE_SECONDS, name)
        return run

    @contextmanager
    def notebook(self, name: str, cell: str, theme: str = "JupyterLab Light", **options: object) -> Iterator[Page]:
        """A notebook of one cell, run, in a page of its own."""
        shape = {"viewport": {"width": 1560, "height": 1500}, **options}
        context = self.browser.new_context(**shape)  # type: ignore[arg-type]
        page = context.new_page()
        page.set_default_timeout(PATIENCE_SECONDS * 1000)
        try:
            write_notebook(self.server.root / f"{name}.ipynb", [cell])
            notebook = Notebook(page, self.server, f"{name}.ipynb")
            notebook.hide_sidebar()
            choose_theme(page, theme)
            notebook.run(0, timeout=PATIENCE_SECONDS)
            yield page
            for complaint in notebook.complaints:
                print(f"{name}: the console says: {complaint}")
        finally:
            context.close()
            self.server.shut_kernels_down()

    def watch(self, name: str, *runs: str, then: str = "", progress: float = 0.0, **options: object) -> None:
        """The live view of these runs, once they are that far; in the theme ``then`` as well."""
        watched = [self.run(one) for one in runs]
        wait_until(lambda: all(run.state.progress >= progress for run in watched), PATIENCE_SECONDS, f"{progress:.0%}")
        ids = [run.id for run in watched]
        cell = f"from workbench.jupyter.watch.monitor import Monitor\nMonitor({ids!r}, keep_live=True)"
        with self.notebook(name, cell, **options) as page:
            monitor = page.locator(".wb-monitor")
            if monitor.count():
                expect(monitor.locator(".wb-place").first).to_contain_text(" / ")
                page.wait_for_timeout(4000)
            self.shoot(page, name, ".jp-OutputArea-output >> nth=0")
            if then:
                choose_theme(page, then)
                page.wait_for_timeout(2000)
                self.shoot(page, f"{name}-dark", ".jp-OutputArea-output >> nth=0")

    def shoot(self, page: Page, name: str, part: str = "") -> None:
        """Keep what the page, or a part of it, shows."""
        path = self.out / f"{name}.png"
        if part:
            page.locator(part).first.screenshot(path=path)
        else:
            page.screenshot(path=path)
        print(path)

    def lab(self, name: str, theme: str = "JupyterLab Light", **options: object) -> None:
        """The Lab in every state of composing, with the dropping run watched."""
        for run in ("finished", "stopped", "failed", "paused", "progressive dropping"):
            self.run(run)
        wide = {"viewport": {"width": 1600, "height": 1180}, **options}
        cell = "import workbench as wb\nwb.Lab(wb.presets.pld())"
        with self.notebook(name, cell, theme, **wide) as page:
            composer, frame = page.locator(".lab-composer"), ".lab-whole"
            expect(composer).to_be_visible()
            self.shoot(page, f"{name}-composing", frame)
            page.locator(".lab-line", has_text="progressive dropping").locator(".lab-mark").click()
            expect(page.locator(".lab-watch .wb-monitor")).to_be_visible()
            page.wait_for_timeout(5000)
            expect(composer).not_to_contain_text("Measuring this machine")
            self.shoot(page, name, frame)
            if "dark" in name or "contrast" in name:
                return
            composer.locator(".lab-heading .lab-help").nth(3).click()
            expect(composer.locator(".lab-card")).to_be_visible()
            page.wait_for_timeout(1500)
            self.shoot(page, f"{name}-card", frame)
            composer.locator(".lab-heading .lab-help").nth(3).click()
            for text in ("Python", "Difference", "Form"):
                composer.get_by_role("button", name=text, exact=True).click()
                page.wait_for_timeout(1000)
                self.shoot(page, f"{name}-{text.lower()}", frame)
            heads = (
                composer.locator(".lab-knob", has=page.locator("label", has_text="heads")).last.locator("input").first
            )
            heads.fill("7")
            heads.press("Tab")
            expect(composer.locator(".lab-error")).to_be_visible()
            self.shoot(page, f"{name}-invalid", frame)
            heads.fill("2")
            heads.press("Tab")
            for run in ("finished", "stopped"):
                page.locator(".lab-line", has_text=run).first.locator(".lab-check").check()
            page.locator(".lab-actions").get_by_role("button", name="Compare").click()
            page.wait_for_timeout(3000)
            self.shoot(page, f"{name}-compare")

    def tabs(self) -> None:
        """Tabs of the Lab beside Watch: two small models are asked, and rows of one."""
        small = presets.quickstart().with_(budget="600 steps", execution={"threads": 1})
        asked = [
            launch(small.with_(objective=each, name=f"{each} model"), runs_dir=self.server.runs, queue=False, say=None)
            for each in ("causal", "masked")
        ]
        for each in asked:
            wait_until(lambda each=each: each.status in FINAL, PATIENCE_SECONDS, f"the end of {each.name}")
        cell, shape = "import workbench as wb\nwb.Lab(wb.presets.pld())", {"width": 1400, "height": 900}
        with self.notebook("tabs", cell, viewport=shape) as page:
            frame, tabs = ".lab-whole", page.get_by_role("tablist", name="curves or questions")
            page.locator(frame).evaluate("lab => lab.scrollIntoView()")
            for each in asked:
                page.locator(".lab-runs .lab-line", has_text=each.name).locator(".lab-mark").click()
            expect(page.locator(".lab-watch .wb-monitor .wb-run")).to_have_count(2)
            tabs.get_by_role("tab", name="Try").click()
            panel = page.get_by_role("tabpanel", name="Try", exact=True)
            for sentence in ("Return the [MASK] of the list.", "The function returns"):
                panel.get_by_label("sentence", exact=True).fill(sentence)
                panel.get_by_label("sentence", exact=True).press("Enter")
                expect(panel.locator(".lab-try-answer").filter(has_text="at step")).not_to_have_count(0)
                page.wait_for_timeout(3000)
                if "[MASK]" in sentence:
                    panel.get_by_role("button", name="Pin", exact=True).click()
                    page.wait_for_timeout(3000)
            self.shoot(page, "try", frame)
            tabs.get_by_role("tab", name="Data").click()
            data = page.get_by_role("tabpanel", name="Data", exact=True)
            data.get_by_label("run or recipe").select_option(label="masked model")
            expect(data.get_by_role("region", name=re.compile(r"^row \d+$")).first).to_be_visible()
            page.wait_for_timeout(2000)
            self.shoot(page, "data", frame)

    def race(self) -> None:
        """Take a race of three arms that has ended, as its cell shows it: curves, and each seed's difference."""
        small = presets.quickstart().with_(objective="causal", execution={"threads": 1}, budget={"evaluations": 8})
        arms = {"baseline": small, "a third of the rate": small.with_(optimizer={"lr": small.optimizer.lr / 3})}
        run = begin_race({**arms, "LANS": small.with_(optimizer="lans")}, "400 steps", 4, name="three arms",
                         reference=(), runs_dir=self.server.runs)  # fmt: skip
        wait_until(lambda: isinstance(run, Race) and run.ended(), 2 * PATIENCE_SECONDS, "the race's end")
        cell = f"import workbench as wb\nwb.experiment({run.id!r}).watch()"
        with self.notebook("race", cell, viewport={"width": 1200, "height": 1200}) as page:
            page.wait_for_timeout(4000)
            self.shoot(page, "race", ".jp-OutputArea-output >> nth=0")


def shots(studio: Studio, names: Sequence[str]) -> dict[str, Callable[[], None]]:
    """Name -> what takes its pictures; runs in every state first, so that the table shows them all."""
    dark = "JupyterLab Dark"
    for name in BOTH if set(names) - {"tabs", "race"} or not names else ():
        studio.run(name)
    return {
        "tabs": studio.tabs,
        "race": studio.race,
        "watch": lambda: studio.watch("watch", *BOTH, then=dark, progress=0.55),
        "running": lambda: studio.watch("running", "progressive dropping"),
        "mslt": lambda: studio.watch("mslt", "stacking, MSLT"),
        "paused": lambda: studio.watch("paused", "paused"),
        "stopped": lambda: studio.watch("stopped", "stopped"),
        "failed": lambda: studio.watch("failed", "failed"),
        "finished": lambda: studio.watch("finished", "finished"),
        "narrow": lambda: studio.watch("narrow", *BOTH, viewport={"width": 498, "height": 2600}),
        "lab": lambda: studio.lab("lab"),
        "lab-dark": lambda: studio.lab("lab-dark", dark),
        "lab-contrast": lambda: studio.lab("lab-contrast", forced_colors="active", color_scheme="dark"),
    }


KEPT = ("lab", "watch", "watch-dark", "try", "data", "race")
"""Of the README and the site."""


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of the pictures; without one, all of them")
    parser.add_argument("--keep", action="store_true", help=f"copy {', '.join(KEPT)} into docs/images")
    asked = parser.parse_args()
    expect.set_options(timeout=PATIENCE_SECONDS * 1000)
    OUT.mkdir(parents=True, exist_ok=True)
    chromium = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    began, started = time.time(), time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, sync_playwright() as playwright:
        home = Path(folder)
        (home / "jupyter").mkdir()
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        # While nothing trains, so that the forecasts in the pictures have numbers.
        forecast(presets.pld(), say=print)
        with jupyterlab(home / "jupyter", home / "runs") as server:
            browser = playwright.chromium.launch(executable_path=chromium, args=[*CHROMIUM_OPTIONS])
            studio = Studio(server, browser, OUT, write_corpus(home / "corpus"))
            made = shots(studio, asked.names)
            for name in asked.names or made:
                if name not in made:
                    parser.error(unknown("picture", name, made))
                made[name]()
            for run in studio.runs.values():
                if run.status not in FINAL:
                    run.stop()
            browser.close()
    for name in KEPT if asked.keep else ():
        if (path := OUT / f"{name}.png").exists() and path.stat().st_mtime > began:
            shutil.copy(OUT / f"{name}.png", IMAGES / f"{name}.png")
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
