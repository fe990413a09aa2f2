"""``wb.compare``: tables, pictures and knobs; what a cell shows, live and static."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import workbench as wb
from tests.jupyter.kernel import live_kernel
from tests.jupyter.live import run_folder
from tests.plots.synthetic import trained
from workbench.base.errors import RunError, WorkbenchError
from workbench.client.summary import summary
from workbench.experiments import open as opening
from workbench.jupyter.comparison import compare
from workbench.store.evaluations import Measured, add_scores
from workbench.store.folder import RunFolder, read_json, write_json

WIDGET = "application/vnd.jupyter.widget-view+json"
NAMES = ("every layer", "<b>dropping")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that differ in a knob."""
    root = tmp_path_factory.mktemp("runs")
    for number, name in enumerate(NAMES):
        view = trained(root, f"2026010{number + 1}-000000-a-aaaaaa-0001", name, steps=40, stages=False)
        file = RunFolder(root / view.id).recipe
        recipe = read_json(file)
        write_json(file, {**recipe, "optimizer": {**recipe.get("optimizer", {}), "lr": 0.1 * (number + 1)}})
    # Of the second nobody knows what its process held before.
    environment = RunFolder(next(root.glob("20260101*"))).environment
    write_json(environment, {**read_json(environment), "memory_before_gib": 0.2})
    return root


@pytest.fixture
def compared(root: Path) -> Any:
    return wb.compare(*NAMES, runs_dir=root)


def test_rows_have_results_and_the_knobs_that_differ(compared: Any) -> None:
    first, second = compared.rows
    assert [row["name"] for row in (first, second)] == list(NAMES)
    assert (first["state"], first["steps"]) == ("finished", 40)
    assert first["heldout_loss"] == compared.runs[0].result.heldout_loss
    assert (first["optimizer.lr"], second["optimizer.lr"]) == (0.1, 0.2)
    assert compared.knobs == {"optimizer.lr": [0.1, 0.2]}


def test_rows_have_the_scores_that_one_of_the_runs_has(compared: Any) -> None:
    folder = compared.runs[0].folder
    scores = {
        "blimp": Measured(0.75, "share", 8, "higher", {"untrained": 0.5}),
        "blimp/npi": Measured(0.5, "share", 4, "higher"),
    }
    add_scores(folder, 40, 1, 1.0, scores)
    assert [row["blimp"] for row in compared.rows] == [0.75, None]
    assert "blimp/npi" not in compared.rows[0], "a part of a benchmark is no column"
    assert summary(folder)["scores"] == {"blimp": 0.75}
    assert summary(folder)["held_against"] == {"blimp": {"untrained": 0.5}}
    assert summary(compared.runs[1].folder)["scores"] == {}
    assert re.search(r"^blimp \(share\) +0\.7500 at step 40 +-$", repr(compared), re.MULTILINE)


def test_frame_is_a_table_of_pandas_or_says_how_to_get_it(compared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    frame = compared.frame()
    assert list(frame["name"]) == list(NAMES)
    assert list(frame["optimizer.lr"]) == [0.1, 0.2]
    assert frame["memory_for_training_gib"][0] == pytest.approx(1.0)
    assert frame["memory_for_training_gib"].isna().tolist() == [False, True]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(WorkbenchError, match=r"`pip install pandas`.*\.rows"):
        compared.frame()


def test_as_text(compared: Any) -> None:
    text = repr(compared)
    assert "held-out loss (nats)" in text
    assert re.search(r"^memory for training \(GiB\) +1\.000 +-$", text, re.MULTILINE)
    assert text.endswith("Knobs that differ\noptimizer.lr: 0.1 | 0.2")
    assert "No knob differs" in repr(wb.compare(compared.runs[0].folder.path, compared.runs[0]).__class__(
        [compared.runs[0], compared.runs[0]]
    ))  # fmt: skip


def test_of_a_single_run_the_text_has_its_choices(root: Path) -> None:
    _, recipe = repr(wb.compare(NAMES[0], runs_dir=root)).split("\nRecipe\n")
    assert re.search(r"^optimizer +adamw +.*lr 0\.1", recipe, re.MULTILINE)


def test_bad_input_is_one_error(root: Path) -> None:
    with pytest.raises(RunError, match="nearest: 'every layer'"):
        wb.compare("evry layer", runs_dir=root)


@pytest.mark.process
def test_report_is_a_page_and_a_link_to_it(compared: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = compared.report("deep/<page>.html")
    assert page == tmp_path / "deep" / "<page>.html"
    assert "every layer" in page.read_text()
    assert 'href="deep/%3Cpage%3E.html"' in page._repr_html_()
    assert "<page>" not in page._repr_html_()
    beside = compared.report()
    assert beside.parent == compared.runs[0].folder.path.parent
    assert beside == compared.report(), "the same runs, the same file"


@pytest.mark.process
def test_in_a_notebook(root: Path, tmp_path: Path) -> None:
    """Static where nobody looks or nothing goes on, else the live view, with the knobs in either case."""
    run_folder(root / "20260103-000000-going-aaaaaa-0001", name="going", optimizer={"lr": 0.3})
    with live_kernel(tmp_path) as kernel:
        ask = f"import workbench as wb; wb.compare('every layer', {{}}, runs_dir={str(root)!r})"

        def shown(other: str, page: bool = True) -> list[dict[str, Any]]:
            heard = kernel.run(ask.format(repr(other)), page=page)
            return [message["content"]["data"] for message in heard if message["msg_type"] == "display_data"]

        (static,) = shown("<b>dropping")
        assert static["image/png"]
        assert "&lt;b&gt;dropping" in static["text/html"]
        assert re.search(r"Knobs that differ.*optimizer\.lr.*0\.1.*0\.2", static["text/html"], re.DOTALL)
        assert not re.search("<script|<style", static["text/html"])
        (headless,) = shown("going", page=False)
        assert "image/png" in headless
        assert WIDGET not in headless
        live = shown("going")
        assert sum(WIDGET in output for output in live) == 1
        assert "optimizer.lr" in live[-1]["text/html"]


def test_the_name_of_a_race_is_told_from_that_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = SimpleNamespace(kind=SimpleNamespace(noun="race"), folder=SimpleNamespace(command="workbench race mine"))
    monkeypatch.setattr(opening, "matching", lambda text, runs_dir: [held] if text == "mine" else [])
    with pytest.raises(RunError, match=r"name 'mine'.*There is a race of that name: `workbench race mine` shows it"):
        compare("mine", runs_dir=tmp_path)
    with pytest.raises(RunError, match=r"lists them$"):
        compare("yours", runs_dir=tmp_path)
