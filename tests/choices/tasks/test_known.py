"""Tasks by name and files of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.choices.tasks.shared_tasks import FOLDER, there
from workbench.base.errors import DataError
from workbench.choices.data.examples import Examples
from workbench.choices.tasks.known import TASKS, find_task

PUBLISHED = {
    "boolq": (8435, 992, 3270), "mrpc": (3668, 408, 1725), "wnli": (574, 61, 71), "stsb_part": (3999, 875, 875),
    "mr_sentence_polarity": (8520, 1068, 1074), "squad": (7588, 1161, 1821),
}  # fmt: skip
"""Examples to train, choose and test on; of BoolQ and WNLI the first two are parts of the published training set."""


@there
@pytest.mark.parametrize("task", PUBLISHED)
def test_tasks_are_found_by_name_and_split(task: str) -> None:
    found = find_task(task, FOLDER)
    data = Examples(task=task, paths=found.paths, form=found.form, text=found.text, label=found.label)
    splits = data.splits()
    assert tuple(map(len, splits.values())) == PUBLISHED[task]
    if task == "squad":
        articles = {name: {each.group for each in part} for name, part in splits.items()}
        assert len(articles["train"] | articles["dev"]) == 38
        assert len(articles["test"]) == 10
        assert not articles["test"] & (articles["train"] | articles["dev"])


def test_glue_folders_are_found_by_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "glue" / "SST-2"
    folder.mkdir(parents=True)
    for part in ("train", "dev"):
        (folder / f"{part}.tsv").write_text("sentence\tlabel\nfine\t1\nawful\t0\n")
    (tmp_path / "glue" / "MRPC").mkdir()
    (tmp_path / "glue" / "MRPC" / "train.tsv").write_text(
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\ta\tb\n"
    )
    found = find_task("sst2", tmp_path)
    assert (len(found.paths), found.text, found.label) == (2, ("sentence",), "label")
    assert find_task("MRPC", tmp_path).text == ("#1 String", "#2 String")


def test_a_file_of_ones_own_says_what_its_labels_are(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text("review,stars,price\na,1,2.5\nb,2,3.0\n")
    assert find_task(path, text="review", label="stars").form == "classes"
    assert find_task(path, text="review", label="price").form == "numbers"
    assert find_task(str(path), text=("review", "stars"), label="price", form="classes").score == "accuracy"


def test_what_is_not_there_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text("review,stars\na,1\n")
    monkeypatch.delenv("WORKBENCH_EVAL", raising=False)
    wrong = [
        ((path,), {}, "say which columns hold one text, or two, and the label.*it has: review, stars"),
        ((path,), {"text": "text", "label": "stars"}, "has no column 'text'; it has: review, stars"),
        (("reviews.csv",), {}, "there is no file 'reviews.csv'"),
        (("boolk", tmp_path), {}, "did you mean 'boolq'"),
        (("boolq",), {}, r"where are the files of 'boolq'\? Give their folder"),
        (("boolq", tmp_path), {}, f"no files of 'boolq' in {tmp_path}"),
        (("boolq", tmp_path / "nowhere"), {}, "no such folder"),
    ]  # fmt: skip
    for arguments, named, message in wrong:
        with pytest.raises(DataError, match=message):
            find_task(*arguments, **named)  # type: ignore[arg-type]
    (tmp_path / "boolq.jsonl").write_text('{"question": "q", "text": "t", "label": 1}\n')
    with pytest.raises(DataError, match=r"lacks columns of boolq \(question, passage.*it has: question, text, label"):
        find_task("boolq", tmp_path)
    assert set(TASKS) >= {"boolq", "squad"}
