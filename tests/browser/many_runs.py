"""A thousand real run folders for the price of one: a run is trained, the others are the same files under other ids;
and what scrolling through them costs a page."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from playwright.sync_api import Page

from tests.tiny_runs import tiny_recipe
from workbench.client.launch import launch
from workbench.store.folder import RunFolder, read_json, write_json

_SCROLLED = """async () => {
    const box = document.querySelector(".lab-scroll");
    const began = performance.now();
    let frames = 0, most = 0;
    while (performance.now() - began < 1000) {
        box.scrollTop = (box.scrollTop + 97) % (box.scrollHeight - box.clientHeight);
        await new Promise(requestAnimationFrame);
        frames += 1;
        most = Math.max(most, box.querySelectorAll("tr").length);
    }
    return { frames, frames_per_second: (1000 * frames) / (performance.now() - began), rows_in_the_page: most };
}"""

FIRST = 1_760_000_000
"""Unix time of the oldest copy; the next ones follow hour by hour."""


def trained_run(corpus: Path, root: Path) -> RunFolder:
    """A real run that has finished."""
    run = launch(tiny_recipe(corpus, steps=20, name="original"), runs_dir=root)
    run.wait_blocking(timeout=180)
    return run.folder


def copies(original: RunFolder, root: Path, count: int) -> list[RunFolder]:
    """The run as ``count`` runs, the oldest first: ``run 0`` with a rate of 0.0001, ``run 1`` with 0.0002, ...

    Every tenth has failed; held-out losses differ; what a run never writes again is shared by hard links.
    """
    recipe, state = read_json(original.recipe), read_json(original.state)
    made = []
    for number in range(count):
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(FIRST + 3600 * number))
        folder = RunFolder(root / f"{stamp}-run-{number:06x}-0000")
        # Its knobs are the original's, too, which would say that each copy was steered back to its rate.
        ignored = shutil.ignore_patterns(
            "reserve", "checkpoints", "*.lock", "*.tmp", "recipe.json", "state.json", "knobs.json"
        )
        shutil.copytree(original.path, folder.path, copy_function=os.link, ignore=ignored)
        optimizer = recipe["optimizer"] | {"lr": (number + 1) / 10_000}
        write_json(folder.recipe, recipe | {"name": f"run {number}", "optimizer": optimizer}, durable=False)
        failed = {"status": "failed", "error": "the disk is full"} if number % 10 == 3 else {}
        write_json(folder.state, state | {"heldout_loss": 3 + number * 7 % 1000 / 1000} | failed, durable=False)
        made.append(folder)
    return made


def six(original: RunFolder, root: Path) -> list[RunFolder]:
    """Six runs in a folder of their own, the oldest first: three rates with two seeds each."""
    made = copies(original, root, 6)
    for number, folder in enumerate(made):
        recipe = read_json(folder.recipe)
        optimizer = recipe["optimizer"] | {"lr": (number // 2 + 1) / 1000}
        write_json(folder.recipe, recipe | {"seed": number % 2, "optimizer": optimizer}, durable=False)
        write_json(folder.state, read_json(folder.state) | {"status": "finished", "heldout_loss": 3 + number / 10})
    return made


def scroll(page: Page) -> dict[str, float]:
    """A second of scrolling: frames, and what the page's thread worked for each, other processes left out."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return float(next(metric["value"] for metric in found if metric["name"] == "TaskDuration"))

    before = worked()
    found: dict[str, float] = page.evaluate(_SCROLLED)
    spent = worked() - before
    session.detach()
    return found | {"milliseconds_of_work_per_frame": 1000 * spent / found["frames"]}
