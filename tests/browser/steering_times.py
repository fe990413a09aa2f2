"""How long after a run has answered a request its page says so: ``python -m tests.browser.steering_times OUT.json``.

A real run, JupyterLab and Chromium, twice: with the server extension while the kernel is in a long cell, and with the
kernel alone where the extension is turned off. A run answers at its next step; what is measured goes from there until
the answer is painted, and, beside it, from the press of the button.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, expect

from tests.browser.jupyter import chromium_page
from tests.browser.servers import jupyterlab
from tests.browser.steer import Steer, begin, end, long_run, open_view
from tests.corpus import write_corpus
from workbench.bench.result import context
from workbench.client.run import Run

REQUESTS = 24
LIMIT_SECONDS = 1.0
"""What is promised: the page says so within a second of the trainer's next step."""
# Every text that a line says, with the page's time of the frame after the one that painted it.
_WATCH = """() => {
  window.saidByRuns = [];
  const line = document.querySelector(".wb-steer");
  const look = () => requestAnimationFrame(() => setTimeout(() => {
    for (const node of line.querySelectorAll(".wb-line-said")) {
      if (node.textContent !== node.lastSaid) window.saidByRuns.push([Date.now(), (node.lastSaid = node.textContent)]);
    }
  }));
  new MutationObserver(look).observe(line, { subtree: true, childList: true, characterData: true });
}"""


class Answers:
    """Sees every answer of a run appear: the first word of it, before it is replaced by the last."""

    def __init__(self, run: Run) -> None:
        self._control, self._closed = run.folder.control, threading.Event()
        self.seen: dict[str, float] = {}
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """No more."""
        self._closed.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._closed.wait(0.002):
            for path in self._control.glob("*.answer.json"):
                if path.name not in self.seen:
                    self.seen[path.name] = path.stat().st_mtime


def ask_all(page: Page, run: Run, requests: int) -> list[dict[str, Any]]:
    """Ask for things in turn and see when they are answered, by the run and on the page."""
    steer, answers = Steer(page), Answers(run)
    steer.choose("optimizer.lr")
    page.evaluate(_WATCH)
    found = []
    for number in range(requests):
        verb = ("set", "set", "checkpoint", "evaluate")[number % 4]
        known, said = set(answers.seen), page.evaluate("window.saidByRuns.length")
        if verb == "set":
            # A new value each time, typed before the clock starts: the check while typing is a request of its own.
            steer.value.fill(f"{0.001 * (2 + number / 100):.6g}")
            page.wait_for_timeout(1500)
            known, said = set(answers.seen), page.evaluate("window.saidByRuns.length")
            pressed = time.time()
            steer.value.press("Enter")
        else:
            pressed = time.time()
            steer.press({"checkpoint": "Checkpoint now", "evaluate": "Evaluate now"}[verb])
        text, painted = _first_word(page, said, verb)
        (name,) = [name for name in answers.seen if name not in known]
        answered = answers.seen[name]
        found.append(
            {
                "verb": verb,
                "seconds_after_answer": round(painted - answered, 3),
                "seconds_after_press": round(painted - pressed, 3),
                "text": text,
            }
        )
        _settled(page)
    answers.close()
    return found


def _first_word(page: Page, said: int, verb: str) -> tuple[str, float]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for at, text in page.evaluate("window.saidByRuns")[said:]:
            if text.startswith(verb) and ": asked" not in text:
                return text, at / 1000
        page.wait_for_timeout(20)
    raise TimeoutError(f"{verb} was not answered")


def _settled(page: Page) -> None:
    # An evaluation goes on after it was acknowledged; the next request would wait for its end.
    for text in ("evaluating", "saving"):
        expect(page.locator(".wb-line-said", has_text=text)).to_have_count(0, timeout=60_000)
    page.wait_for_timeout(200)


@contextmanager
def page_of(home: Path, corpus: Path, *, extension: bool) -> Iterator[tuple[Page, Run]]:
    """A page that shows a run; with the extension, its kernel is in a long cell."""
    home.mkdir()
    with jupyterlab(home, home / "runs", extension=extension) as server, chromium_page() as page:
        run = long_run(corpus, server.root / "elsewhere")
        try:
            notebook = open_view(page, server, run, "times.ipynb", "import time\ntime.sleep(100_000)")
            if extension:
                begin(notebook, 1)
                page.wait_for_timeout(2000)
            yield page, run
        finally:
            end(run)
            server.shut_kernels_down()


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Median, p95 and greatest of both times, seconds."""
    lines: dict[str, Any] = {"requests": len(found)}
    for key in ("seconds_after_answer", "seconds_after_press"):
        values = [each[key] for each in found]
        p50, p95 = np.percentile(values, [50, 95])
        lines[key] = {"median": round(float(p50), 3), "p95": round(float(p95), 3), "max": max(values)}
    return lines


def main(out: Path) -> int:
    """Measure both ways and write them down; 0 where what is promised holds."""
    os.environ["OMP_NUM_THREADS"] = "1"
    result: dict[str, Any] = {
        **context("steer"), "load_before": os.getloadavg(), "limit_seconds": LIMIT_SECONDS,
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="steering-times-", ignore_cleanup_errors=True) as made:
        home = Path(made)
        os.environ.setdefault("WORKBENCH_CACHE", str(home / "cache"))
        corpus = write_corpus(home / "corpus")
        for name, extension in (("server, kernel in a long cell", True), ("kernel alone, extension off", False)):
            with page_of(home / str(extension), corpus, extension=extension) as (page, run):
                found = ask_all(page, run, REQUESTS)
            by_verb = {verb: summary(list(each)) for verb, each in itertools.groupby(
                sorted(found, key=lambda each: str(each["verb"])), key=lambda each: str(each["verb"]))}  # fmt: skip
            result[name] = {**summary(found), "by_verb": by_verb, "load": os.getloadavg(), "readings": found}
            out.write_text(json.dumps(result, indent=1), encoding="utf-8")
            print(name, json.dumps(summary(found)), flush=True)
    ways = [result[name] for name in result if isinstance(result[name], dict) and "readings" in result[name]]
    return int(any(way["seconds_after_answer"]["p95"] > LIMIT_SECONDS for way in ways))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
