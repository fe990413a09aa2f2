"""Labelled examples out of files: JSON lines, CSV, GLUE's tab-separated files and SQuAD's JSON."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from workbench.base.errors import DataError
from workbench.choices.data.reading import COMPRESSED_ENDINGS, text_lines

Form = Literal["classes", "numbers", "answers"]
ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
SPLITS = {
    "train": "train", "training": "train", "test": "test",
    "dev": "dev", "valid": "dev", "validation": "dev", "dev_matched": "dev",
}  # fmt: skip
"""Parts of a task by the names that files and a column ``split`` give them."""
EVERYTHING = "all"
"""Part of the examples of which nobody says where they belong."""
COLA = ("source", "label", "star", "sentence")
"""Columns of GLUE's one file that does not name them."""


class Answer(NamedTuple):
    """An answer as people gave it: its text, and the character of the passage at which it starts."""

    text: str
    start: int


class Example(NamedTuple):
    """One labelled example.

    Attributes:
        id: of the file, or its place in it.
        split: ``train``, ``dev``, ``test`` or ``all``.
        texts: one or two; question and passage of one that asks for an answer.
        label: name of the class, a number, or the answers.
        group: what must not be divided among splits: an article, or nothing.
    """

    id: str
    split: str
    texts: tuple[str, ...]
    label: Any
    group: str = ""


def is_task_file(path: Path) -> bool:
    """Return whether a file's name is of a kind that holds examples, compressed or not."""
    return ending_of(path) in ENDINGS


def ending_of(path: Path) -> str:
    """Return the ending of a file's name without that of its compression."""
    name = path.name.lower()
    for ending in COMPRESSED_ENDINGS:
        name = name.removesuffix(ending)
    return Path(name).suffix


def stem_of(path: Path) -> str:
    """Return the name of a file without its endings, in small letters.

    Example:
        >>> stem_of(Path("train-v1.1.json.xz")), stem_of(Path("dev_matched.tsv"))
        ('train-v1.1', 'dev_matched')
    """
    name = path.name.lower()
    for ending in (*COMPRESSED_ENDINGS, *ENDINGS):
        name = name.removesuffix(ending)
    return name


def split_in_name(path: Path) -> str | None:
    """Return the part of a task that a file holds by its name; ``all`` where it says none, None for one left out."""
    words = re.split(r"[-.]", stem_of(path))
    if "mismatched" in words[0]:
        return None
    return next((SPLITS[word] for word in words if word in SPLITS), EVERYTHING)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file: JSON lines, a JSON list, CSV or tab-separated lines.

    Raises:
        DataError: unreadable, damaged, not UTF-8, or of another form.
    """
    ending = ending_of(path)
    if ending == ".tsv":
        # GLUE's files quote nothing.
        yield from _table(path, csv.reader(text_lines(path), delimiter="\t", quoting=csv.QUOTE_NONE))
    elif ending == ".csv":
        yield from _table(path, csv.reader(text_lines(path)))
    elif ending == ".json":
        found = _json("".join(text_lines(path)), f"'{path}'")
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise DataError(
                f"'{path}' is no list of objects; give JSON lines, CSV, or question answering as SQuAD has it"
            )
        yield from found
    elif ending in ENDINGS:
        for number, line in enumerate(text_lines(path), 1):
            if not line.isspace():
                found = _json(line, f"'{path}' line {number:,}")
                if not isinstance(found, dict):
                    raise DataError(f"'{path}' line {number:,} holds no object; JSON lines are expected")
                yield found
    else:
        raise DataError(f"'{path}' cannot be read; examples come in files that end in {', '.join(ENDINGS)}")


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON ({error})") from None


def _table(path: Path, lines: Iterator[list[str]]) -> Iterator[dict[str, Any]]:
    names: Sequence[str] | None = None
    for line in filter(None, lines):
        if names is None:
            if stem_of(path) in SPLITS and len(line) == len(COLA) and line[1] in ("0", "1"):
                names = COLA
            else:
                names = line
                continue
        # Files of GLUE have lines that are cut short.
        yield dict(zip(names, line, strict=False))


def read_examples(path: Path, form: Form, text: Sequence[str], label: str) -> Iterator[Example]:
    """Yield the examples of a file, in its order; those of a split that is left out are not read.

    Args:
        text: columns of the texts, one or two. label: column of the label; both unused for answers.

    Raises:
        DataError: unreadable, or without one of the columns; the message lists those that it has.
    """
    here = split_in_name(path)
    if here is None:
        return
    if form == "answers":
        yield from _questions(path, here)
        return
    for number, record in enumerate(records(path), 1):
        where = f"'{path}' record {number:,}"
        split = here if record.get("split") is None else SPLITS.get(str(record["split"]).lower())
        if split is None:
            continue
        if here == "test" and label not in record:
            return  # GLUE keeps these labels for itself
        if missing := [name for name in (*text, label) if name not in record]:
            raise DataError(
                f"{where} has no column {' and no column '.join(map(repr, missing))}; it has: {', '.join(record)}"
            )
        value = _number(record[label], where, label) if form == "numbers" else _class(record[label])
        if value not in ("", None):
            texts = tuple(str(record[name] if record[name] is not None else "") for name in text)
            yield Example(str(record.get("id", number)), split, texts, value)


def _class(value: Any) -> str:
    # JSON's true is 1 in every file of GLUE.
    return str(int(value)) if isinstance(value, bool) else "" if value is None else str(value)


def _number(value: Any, where: str, label: str) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{where}: column '{label}' holds {value!r:.60}, and numbers are asked for")
    return number


def _questions(path: Path, split: str) -> Iterator[Example]:
    """Yield the questions of a file as SQuAD has it; those without an answer (SQuAD 2) are left out."""
    found = _json("".join(text_lines(path)), f"'{path}'")
    try:
        for place, article in enumerate(found["data"]):
            group = str(article.get("title", place))
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    answers = tuple(Answer(each["text"], int(each["answer_start"])) for each in asked["answers"])
                    if answers:
                        texts = (str(asked["question"]).strip(), str(paragraph["context"]))
                        yield Example(str(asked["id"]), split, texts, answers, group)
    except (KeyError, TypeError, AttributeError) as error:
        keys = ", ".join(found) if isinstance(found, Mapping) else type(found).__name__
        raise DataError(
            f"'{path}' is no file of questions as SQuAD has it ({error} is missing; it has: {keys})"
        ) from None
