"""The list of runs: newest first, tolerant, escaped, fast, and callable as ``wb.runs()`` whatever was imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import workbench
from workbench.client.run_list import runs
from workbench.store.find import run_ids
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import label
from workbench.store.state import boot_id, take_lock, write_state


def make(root: Path, run_id: str, status: str = "finished", name: str = "mine", step: int = 1) -> RunFolder:
    folder = RunFolder(root / run_id)
    folder.path.mkdir(parents=True)
    folder.recipe.write_text(json.dumps({"name": name}))
    state = {"status": status, "step": step, "loss": 2.5, "progress": 0.5, "tokens_per_second": 12_345.6}
    folder.state.write_text(json.dumps(state))
    return folder


def test_newest_first(tmp_path: Path) -> None:
    for day in (2, 3, 1):
        make(tmp_path, f"2026010{day}-000000-a-000000-0000")
    assert [run.id[7] for run in runs(tmp_path)] == ["3", "2", "1"]


def test_the_table_says_what_the_state_says(tmp_path: Path) -> None:
    make(tmp_path, "20260101-000000-a-000000-0000", status="running", step=1234)
    found = runs(tmp_path)
    assert found.table()[0] == {
        "why": "its processes ended without saying why",
        "run": "20260101-000000-a-000000-0000",
        "name": "mine",
        "status": "lost",
        "progress": "50%",
        "step": "1,234",
        "loss": "2.500",
        "tokens/s": "12,346",
    }
    assert "12,346" in repr(found)


def test_the_reason_of_a_failure_is_one_short_line(tmp_path: Path) -> None:
    make(tmp_path, "20260103-000000-a-000000-0000")
    assert "why" not in repr(runs(tmp_path)), "nothing failed"
    failed = make(tmp_path, "20260102-000000-a-000000-0000")
    write_state(failed, status="failed", error=f"the corpus is {'far ' * 40}too small\nIts last words:\n  more")
    broken = make(tmp_path, "20260101-000000-a-000000-0000")
    broken.state.write_text("{")
    found = runs(tmp_path)
    lines = found.text().splitlines()
    assert len(lines) == 4, "a program reads one line a run"
    assert lines[2].endswith("…")
    assert "  the corpus is far" in lines[2]
    assert "more" not in found.text()
    assert lines[3].endswith("state.json is missing or damaged")
    for width in (60, 100):
        lines = found.text(width=width).splitlines()
        assert max(map(len, lines)) <= width
        below = next(line for line in lines[lines.index(next(x for x in lines if x.startswith(failed.id))) + 1 :]
                     if "the corpus" in line)  # fmt: skip
        assert below.startswith("  the corpus is far"), "a line of its own"
    assert "the corpus is far" in found._repr_html_()


def test_a_stalled_run_says_for_how_long(tmp_path: Path) -> None:
    folder = make(tmp_path, "20260101-000000-a-000000-0000", status="running")
    lock = take_lock(folder)
    try:
        write_state(folder, heartbeat_monotonic=time.monotonic() - 100, boot_id=boot_id(), pid=7)
        assert runs(tmp_path).table()[0]["why"].startswith("no sign of life for 1")
    finally:
        os.close(lock)


def test_damaged_runs_are_listed(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    broken = make(tmp_path, "20260101-000000-a-000000-0000")
    broken.recipe.write_bytes(b"\xff\x00")
    broken.state.write_text("{")
    (tmp_path / "20260102-000000-b-000000-0000").mkdir()
    (tmp_path / "20260102-000000-b-000000-0000" / "recipe.json").mkdir()
    assert {row["status"] for row in runs(tmp_path).table()} == {"lost"}
    assert len(runs(tmp_path)) == 3


def test_names_are_data(tmp_path: Path) -> None:
    make(tmp_path, "20260101-000000-a-000000-0000", name="<img src=x onerror=alert(1)>")
    html = runs(tmp_path)._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html
    assert "<img" not in runs(tmp_path)[0]._repr_html_()


def test_no_runs_is_said(tmp_path: Path) -> None:
    assert repr(runs(tmp_path / "gone")).startswith("no runs in")
    assert "no runs in" in runs(tmp_path / "gone")._repr_html_()


def test_scores_on_different_texts_are_not_listed_without_a_word(tmp_path: Path) -> None:
    made = [make(tmp_path, f"2026010{day}-000000-a-000000-0000") for day in (1, 2, 3)]
    data = {"sources": {"packages": {"numpy": "1"}}, "split": {}, "heldout": {"sha256": "a"}, "tokenizer_sha256": "b"}
    for folder, found in zip(made, (data, data, {**data, "sources": {}, "heldout": {"sha256": "c"}}), strict=True):
        assert "different texts" not in repr(runs(tmp_path)) + runs(tmp_path)._repr_html_()
        write_json(folder.environment, {"data": found}, durable=False)
    assert repr(runs(tmp_path)).endswith("scored on 2 different texts or tokenizers: held-out losses compare within "
                                         "one alone")  # fmt: skip
    assert "scored on 2 different texts" in runs(tmp_path)._repr_html_()


@pytest.mark.extended
def test_a_thousand_runs_take_ten_times_as_long_as_a_hundred(tmp_path: Path) -> None:
    took = {}
    for count in (100, 1000):
        for index in range(count):
            folder = make(tmp_path / str(count), f"20260101-{index:06d}-a-000000-0000", status="running")
            write_json(folder.labels, {"tags": ["base"], "notes": ""}, durable=False)
            write_json(folder.origin, {"run": "parent", "step": index, "diff": {}, "fresh": []}, durable=False)
        began = time.process_time()
        found = runs(tmp_path / str(count))
        rows = found.table()
        took[count] = time.process_time() - began
    # How long it takes in seconds is a matter of the machine (`python -m tests.browser.page_times --parts runs`).
    assert took[1000] < 25 * took[100]
    assert len(rows) == 1000
    assert repr(found).endswith("... and 970 older")


@pytest.mark.parametrize(
    "before",
    [
        "pass",
        "import workbench.store.folder",
        "import workbench.client.run_list",
        "from workbench.client.launch import launch",
        "wb.Run",
    ],
)
@pytest.mark.process
def test_runs_can_be_called_whatever_was_imported(tmp_path: Path, before: str) -> None:
    code = (
        f"import workbench as wb; {before}; found = wb.runs({str(tmp_path)!r}); "
        f"import workbench.store.view; print(type(found).__name__, len(wb.runs(runs_dir={str(tmp_path / 'none')!r})))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["RunList", "0"]
    assert workbench.runs(tmp_path) == []


def test_runs_are_runs(tmp_path: Path) -> None:
    folder = make(tmp_path, "20260101-000000-a-000000-0000")
    run = runs(tmp_path)[0]
    assert run.folder == folder
    write_state(folder, status="failed", error="because")
    write_json(folder.evaluations, {})
    assert run.status == "failed"
    assert run == runs(tmp_path)[0]
    assert len({run, runs(tmp_path)[0]}) == 1


def test_what_no_run_has_said_is_no_column(tmp_path: Path) -> None:
    folder = make(tmp_path, "20260101-000000-a-000000-0000", status="failed")
    write_state(folder, loss=None, tokens_per_second=None)
    head, _ = runs(tmp_path).text().splitlines()
    assert head.split() == ["run", "name", "status", "progress", "step"]
    make(tmp_path, "20260102-000000-a-000000-0000")
    assert runs(tmp_path).text().splitlines()[0].split()[-2:] == ["loss", "tokens/s"]


def test_tags_filter_and_rare_columns_show_only_where_they_say_something(tmp_path: Path) -> None:
    folders = [make(tmp_path, f"2026010{day}-000000-a-000000-0000") for day in (1, 2, 3)]
    assert "tags" not in repr(runs(tmp_path))
    label(folders[0], add=["base", "good"])
    label(folders[1], add=["base"])
    write_json(folders[2].origin, {"run": folders[0].id, "step": 7})
    found = runs(tmp_path)
    assert f"{folders[0].id} at 7" in repr(found)
    assert found.tagged("base").table()[1]["tags"] == "base good"
    assert [run.folder for run in found.tagged("base", "good")] == [folders[0]]
    assert found.tagged("bas") == []
    assert "forked from" not in found.tagged("base").table()[0]


def test_owners_are_shown_once_there_are_two(tmp_path: Path) -> None:
    for owner in ("ann", "ann", "bob"):
        assert "owner" not in "".join(runs(tmp_path).table()[0] if runs(tmp_path) else [])
        folder = RunFolder(tmp_path / f"20260101-00000{len(run_ids(tmp_path))}-a-000000-0000")
        folder.path.mkdir()
        write_state(folder, status="finished")
        write_json(folder.launched, {"settings": {"WORKBENCH_OWNER": owner}})
    assert [row["owner"] for row in runs(tmp_path).table()] == ["bob", "ann", "ann"]
