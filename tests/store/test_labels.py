"""Names, tags and notes: changed whole, by several at once, and refused before anything is written."""

from __future__ import annotations

import subprocess
import sys

import pytest

from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import Labels, label, name_of, read_labels


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


def test_a_given_name_counts_before_the_recipes_until_it_is_taken_back(folder: RunFolder) -> None:
    write_json(folder.recipe, {"name": "recipe's"})
    run = Run(folder)
    assert run.name == "recipe's"
    run.name = "  Größte Rate, β = 0.99 "
    label(folder, add=["kept"], notes="kept")
    assert (run.name, str(run).split(":")[0]) == ("Größte Rate, β = 0.99", "Größte Rate, β = 0.99")
    assert run.view().name == run.result.name == name_of(folder) == run.name
    assert f">{run.name}</td>" in run._repr_html_()
    run.name = " "
    assert (run.name, run.tags, run.notes) == ("recipe's", ("kept",), "kept")
    folder.recipe.unlink()
    assert run.name == folder.id
    run.name = "x" * 80
    assert run.name == "x" * 80


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (
            "two\nlines",
            r"'two\\nlines' is no name for a run: '\\n' is not printable; .* empty one brings the recipe's back",
        ),
        ("\x1b[31mred", r"'\\x1b' is not printable"),
        ("\ud800", r"'\\ud800' is not printable"),
        ("x" * 82, "it is 2 characters too long; a name is one printable line of at most 80 characters"),
        (7, "7 is no name for a run: it is no text"),
    ],
)
def test_what_is_no_name_changes_nothing(folder: RunFolder, name: str, fault: str) -> None:
    label(folder, name="kept")
    with pytest.raises(RunError, match=fault):
        label(folder, name=name, notes="lost")
    assert read_labels(folder) == Labels(name="kept")


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


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"tags": "abc", "notes": 3, "name": 4}', '{"tags": [3, "-x", null], "name": "a\\nb"}',
     f'{{"name": "{"x" * 81}"}}'],
)  # fmt: skip
def test_a_damaged_file_reads_as_what_is_left_of_it(folder: RunFolder, text: str) -> None:
    folder.labels.write_text(text)
    assert read_labels(folder) == Labels()
    assert label(folder, add=["a"]).tags == ("a",)


@pytest.mark.process
def test_several_processes_tag_at_once(folder: RunFolder) -> None:
    code = (
        "import sys; from pathlib import Path; from workbench.store.folder import RunFolder; "
        "from workbench.store.labels import label\n"
        f"for n in range(8): label(RunFolder(Path({str(folder.path)!r})), add=[f'{{sys.argv[1]}}{{n}}'])"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "abc"]
    assert [writer.wait(30) for writer in writers] == [0, 0, 0]
    assert sorted(read_labels(folder).tags) == sorted(f"{name}{n}" for name in "abc" for n in range(8))
