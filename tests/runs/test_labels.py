"""Tags and notes: added and removed whole, by several at once, and refused before anything is written."""

from __future__ import annotations

import subprocess
import sys

import pytest

from workbench.errors import RunError
from workbench.runs.folder import RunFolder
from workbench.runs.labels import Labels, label, read_labels
from workbench.runs.run import Run


def test_tags_are_added_and_removed_and_notes_replaced(folder: RunFolder) -> None:
    assert read_labels(folder) == Labels()
    assert label(folder, add=["base", "à-revoir"]).tags == ("base", "à-revoir")
    assert label(folder, add=["base", "v1.2"], remove=["à-revoir", "never"]).tags == ("base", "v1.2")
    assert label(folder, notes="two\nlines <b>") == Labels(("base", "v1.2"), "two\nlines <b>")
    assert label(folder, add="whole-word").tags[-1] == "whole-word"
    assert read_labels(folder).notes == "two\nlines <b>"


def test_a_run_has_them_as_attributes(folder: RunFolder) -> None:
    run = Run(folder)
    assert (run.tags, run.notes) == ((), "")
    run.tags = ["b", "a"]
    run.notes = "good"
    run.tags = ["c", "a"]
    assert (run.tags, run.notes) == (("c", "a"), "good")


@pytest.mark.parametrize("tag", ["", "-a", "+a", "two words", "a,b", "x" * 41, "a\n", "<b>", "\ud800", 3])
def test_what_is_no_tag_changes_nothing(folder: RunFolder, tag: str) -> None:
    label(folder, add=["kept"])
    with pytest.raises(RunError, match="is not a tag: one word"):
        label(folder, add=["fine", tag], remove=["kept"])
    assert read_labels(folder).tags == ("kept",)


def test_limits(folder: RunFolder) -> None:
    with pytest.raises(RunError, match="33 tags; at most 32"):
        label(folder, add=[f"t{index}" for index in range(33)])
    with pytest.raises(RunError, match="at most 10,000"):
        label(folder, notes="x" * 10_001)
    with pytest.raises(RunError, match="not Unicode"):
        label(folder, notes="\ud800")
    assert not folder.labels.exists()


@pytest.mark.parametrize("text", ["", "[]", '{"tags": "abc", "notes": 3}', '{"tags": [3, "-x", null]}'])
def test_a_damaged_file_reads_as_what_is_left_of_it(folder: RunFolder, text: str) -> None:
    folder.labels.write_text(text)
    assert read_labels(folder) == Labels()
    assert label(folder, add=["a"]).tags == ("a",)


@pytest.mark.process
def test_several_processes_tag_at_once(folder: RunFolder) -> None:
    code = (
        "import sys; from pathlib import Path; from workbench.runs.folder import RunFolder; "
        "from workbench.runs.labels import label\n"
        f"for n in range(8): label(RunFolder(Path({str(folder.path)!r})), add=[f'{{sys.argv[1]}}{{n}}'])"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "abc"]
    assert [writer.wait(30) for writer in writers] == [0, 0, 0]
    assert sorted(read_labels(folder).tags) == sorted(f"{name}{n}" for name in "abc" for n in range(8))
