"""Tasks by their names: which columns their files have, and where the files are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from workbench.base.errors import DataError, unknown
from workbench.base.files import EVALUATION_VARIABLE
from workbench.choices.tasks.files import Form, is_task_file, records, stem_of

_DEPTH = 3
_LOOKED_AT = 20
"""Records by which the form of a user's file is guessed."""


@dataclass(frozen=True)
class Known:
    """A task that is found by its name.

    Attributes:
        text: columns of its texts, in each form in which its files are spread. label: columns of its labels.
        score: by which rates are chosen.
    """

    text: tuple[tuple[str, ...], ...] = ()
    label: tuple[str, ...] = ("label",)
    form: Form = "classes"
    score: str = "accuracy"


_PAIR, _ENTAILED = ("sentence1", "sentence2"), ("premise", "hypothesis")
TASKS = {
    "boolq": Known((("question", "passage"),), ("label", "answer")),
    "cola": Known((("sentence",),), score="matthews"),
    "mnli": Known((_ENTAILED, _PAIR), ("label", "gold_label")),
    "mr_sentence_polarity": Known((("text",),)),
    "mrpc": Known((_PAIR, ("#1 String", "#2 String")), ("label", "Quality"), score="f1"),
    "qnli": Known((("question", "sentence"),)),
    "qnli_from_squad_dev": Known((("question", "sentence"),)),
    "qqp": Known((("question1", "question2"),), ("label", "is_duplicate"), score="f1"),
    "rte": Known((_PAIR, _ENTAILED)),
    "squad": Known(form="answers", score="f1"),
    "sst2": Known((("sentence",),)),
    "stsb": Known((_PAIR,), ("score", "label"), "numbers", "spearman"),
    "stsb_part": Known((_PAIR,), ("score",), "numbers", "spearman"),
    "wnli": Known((_ENTAILED, _PAIR)),
}
SCORE_OF_FORM = {"classes": "accuracy", "numbers": "spearman", "answers": "f1"}


@dataclass(frozen=True)
class TaskFiles:
    """A task and its files.

    Attributes:
        name: for people and scores. form: of its labels. text, label: columns. score: by which rates are chosen.
    """

    name: str
    paths: tuple[str, ...]
    form: Form
    text: tuple[str, ...]
    label: str
    score: str


def find_task(
    task: str | Path, data: str | Path | None = None, text: str | tuple[str, ...] = (), label: str = "",
    form: Form | None = None,
) -> TaskFiles:  # fmt: skip
    """Find a task by its name in a folder, or take a file of the user's own.

    Args:
        task: a name of :data:`TASKS`, or a path of a file with a task of one's own.
        data: the folder with the tasks; None for those of ``$WORKBENCH_EVAL``.
        text, label: columns of one's own file. form: of its labels; None for what they look like.

    Raises:
        DataError: no such task or file, or a file without these columns, which lists those that it has.
    """
    asked = (text,) if isinstance(text, str) and text else tuple(text)
    if Path(task).expanduser().is_file():
        return _own(Path(task).expanduser().absolute(), asked, label, form)
    if is_task_file(Path(task)):
        raise DataError(f"task: there is no file '{task}'")
    name = _plain(str(task))
    found = {_plain(each): each for each in TASKS}.get(name)
    if found is None:
        raise DataError(unknown("task", task, TASKS, "A file of your own: JSON lines, CSV or tab-separated, with the "
                                "columns text= and label="))  # fmt: skip
    paths = _paths_of(found, data)
    known = TASKS[found]
    if known.form == "answers":
        return TaskFiles(found, tuple(map(str, paths)), "answers", (), "", known.score)
    # Of the first that has labels: GLUE keeps those of its test.
    for path in paths:
        columns = next(records(path), {})
        chosen = next((each for each in known.text if all(column in columns for column in each)), None)
        labelled = next((column for column in known.label if column in columns), None)
        if chosen and labelled:
            return TaskFiles(found, tuple(map(str, paths)), known.form, chosen, labelled, known.score)
    wanted = " or ".join(", ".join(each) for each in known.text)
    raise DataError(f"'{paths[0]}' lacks columns of {found} ({wanted}; {' or '.join(known.label)}); it has: "
                    f"{', '.join(columns)}")  # fmt: skip


def _own(path: Path, text: tuple[str, ...], label: str, form: Form | None) -> TaskFiles:
    name = re.sub(r"[^a-z0-9_]+", "_", stem_of(path)).strip("_") or "task"
    if form == "answers" or (path.suffix != ".jsonl" and "squad" in name and not text):
        return TaskFiles(name, (str(path),), "answers", (), "", SCORE_OF_FORM["answers"])
    first = list(islice(records(path), _LOOKED_AT))
    if not first:
        raise DataError(f"'{path}' holds no examples")
    columns = ", ".join(first[0])
    if not text or len(text) > 2 or not label:
        raise DataError(f"'{path}': say which columns hold one text, or two, and the label: text='...', label='...' "
                        f"(`--text`, `--label`); it has: {columns}")  # fmt: skip
    if missing := [each for each in (*text, label) if each not in first[0]]:
        raise DataError(f"'{path}' has no column {' and no column '.join(map(repr, missing))}; it has: {columns}")
    form = form or ("numbers" if any(_fraction(each.get(label)) for each in first) else "classes")
    return TaskFiles(name, (str(path),), form, text, label, SCORE_OF_FORM[form])


def _fraction(value: object) -> bool:
    """Return whether a label is a number with digits behind the point, as no class is."""
    return bool(re.fullmatch(r"-?\d*\.\d+", str(value))) and not str(value).endswith(".0")


def _paths_of(name: str, data: str | Path | None) -> list[Path]:
    """Return the files of a task: those of a folder with its name, else those that begin with its name."""
    given = (
        [str(data)]
        if data is not None
        else [each for each in os.environ.get(EVALUATION_VARIABLE, "").split(os.pathsep) if each]
    )
    roots = [Path(each).expanduser().absolute() for each in given]
    if not roots:
        raise DataError(
            f"where are the files of '{name}'? Give their folder: data=DIR, `--data DIR`, in the Lab '{name} in DIR', "
            f"or ${EVALUATION_VARIABLE}"
        )
    if missing := [str(root) for root in roots if not root.is_dir()]:
        raise DataError(f"no such folder: {', '.join(missing)} (data, `--data`, ${EVALUATION_VARIABLE})")
    files = [path for root in roots for path in sorted(_below(root, _DEPTH)) if is_task_file(path)]
    inside = [path for path in files if _plain(path.parent.name) == name.replace("_", "")]
    named = [path for path in files if _plain(stem_of(path)).startswith(name.replace("_", ""))]
    if name == "squad":
        official = [path for path in files if re.fullmatch(r"(train|dev)-v1\.1", stem_of(path))]
        inside, named = official or [path for path in inside if ".json" in path.suffixes], named
    # A name may begin another's: qnli, and qnli_from_squad_dev.
    exact = [path for path in named if not any(
        _plain(stem_of(path)).startswith(other.replace("_", "")) for other in TASKS
        if other != name and other.startswith(name))]  # fmt: skip
    if not (found := inside or exact):
        raise DataError(f"no files of '{name}' in {', '.join(map(str, roots))}: neither a folder '{name}' nor a file "
                        "whose name begins with it, ending in .jsonl, .csv, .tsv or .json, or packed")  # fmt: skip
    return found


def _below(root: Path, depth: int) -> Iterator[Path]:
    for path in root.iterdir():
        if path.is_dir() and depth > 1 and not path.name.startswith("."):
            yield from _below(path, depth - 1)
        elif path.is_file():
            yield path


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name.lower())
