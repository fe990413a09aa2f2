"""Removal of training text that stands in evaluation sets, found by runs of 13 words."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from workbench.base.errors import DataError, typed_line
from workbench.base.files import COMPRESSED, EVALUATION_VARIABLE, open_text
from workbench.base.text import many
from workbench.choices.choice import Problem, knob
from workbench.choices.data.cutting import batched
from workbench.choices.data.repeats import RUN_WORDS, looked_up, runs_of, without_runs
from workbench.choices.data.steps.step import Document, Step, Verdict, removed

BATCH_CHARACTERS = 1 << 20
_TEXTS, _RECORDS = (".txt", ".md"), (".jsonl", ".ndjson", ".json")


class Decontaminate(Step):
    """Removes documents, or paragraphs, that share runs of 13 words with evaluation sets.

    Source: Brown et al. 2020 (arXiv 2005.14165), appendix C: 13 words, without case and punctuation.
    """

    kind: Literal["decontaminate"] = "decontaminate"
    paths: tuple[str, ...] = knob((), "files or folders of evaluation sets; empty: those of $WORKBENCH_EVAL")
    by: Literal["document", "paragraph"] = knob("document", "what is removed where it shares a run")
    fewest_runs: int = knob(1, "runs that a document must share at least", ge=1, le=1 << 20)

    def judge(self, documents: Iterable[Document]) -> Iterator[Verdict]:
        """Yield the verdicts; memory holds 10 bytes for each run of the evaluation sets.

        Raises:
            DataError: a file cannot be read, or no text of them has 13 words.
        """
        files = self._files()
        runs_G, file_G = _runs_of_files(files)
        for batch in batched(documents, BATCH_CHARACTERS, size=lambda document: len(document.text)):
            found = runs_of([document.text for document in batch])
            counts_D = np.bincount(found.text_G, minlength=len(batch))
            shared_G, place_G = looked_up(found.hash_G, runs_G)
            shared_D = np.bincount(found.text_G[shared_G], minlength=len(batch))
            # Of each document the file with its first shared run.
            first_D = dict(zip(found.text_G[shared_G][::-1].tolist(), file_G[place_G][::-1].tolist(), strict=True))
            for row, (document, runs, shared) in enumerate(
                zip(batch, counts_D.tolist(), shared_D.tolist(), strict=True)
            ):
                facts = {f"runs of {RUN_WORDS} words": runs, "of them in evaluation sets": shared}
                verdict = Verdict(document, document.text)
                if shared >= self.fewest_runs:
                    said = f"{shared:,} of {runs:,} runs, {files[first_D[row]].name}"
                    verdict = self._without(document, runs_G, said)
                yield verdict._replace(facts=facts)

    def key(self) -> dict[str, Any]:
        """Return the knobs, and a digest of the files' paths, sizes and times of change."""
        stats = [(str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in self._files()]
        return {**super().key(), "files": hashlib.sha256(repr(stats).encode()).hexdigest()}

    def problems_here(self) -> Iterator[Problem]:
        """Yield why there are no evaluation sets to compare with."""
        try:
            self._files()
        except DataError as error:
            yield Problem("paths", str(error))

    def located(self) -> dict[str, Any]:
        """Return the absolute paths."""
        return {"paths": [str(Path(path).expanduser().absolute()) for path in self.paths]} if self.paths else {}

    def _without(self, document: Document, runs_G: np.ndarray, said: str) -> Verdict:
        if self.by == "document":
            return removed(document, "in an evaluation set", said)
        text = without_runs(document.text, runs_G)
        if not text:
            return removed(document, "every paragraph in an evaluation set", said)
        return Verdict(document, text, changes={"document shortened": 1})

    def _files(self) -> list[Path]:
        folder = os.environ.get(EVALUATION_VARIABLE)
        given = self.paths or ((folder,) if folder else ())
        if not given:
            raise DataError(f"name files or folders of evaluation sets, or set ${EVALUATION_VARIABLE}")
        found: dict[Path, None] = {}
        for path in (Path(each).expanduser().absolute() for each in given):
            inside = sorted(path.rglob("*")) if path.is_dir() else [path]
            files = [each for each in inside if each.is_file() and _ending(each) in (*_TEXTS, *_RECORDS)]
            if not files:
                legal = ", ".join((*_TEXTS, *_RECORDS))
                raise DataError(f"'{path}' has no evaluation set: files end in {legal}, also .gz, .xz or .bz2")
            found |= dict.fromkeys(files)
        return list(found)


def _ending(path: Path) -> str:
    return (path.with_suffix("") if path.suffix in COMPRESSED else path).suffix


def _runs_of_files(files: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Return the different runs of all texts, sorted, and the number of the first file that has each."""
    runs_G, file_G = np.empty(0, np.uint64), np.empty(0, np.uint16)
    for number, path in enumerate(files):
        for texts in batched(_texts(path), BATCH_CHARACTERS):
            # Those of earlier files stand first, and unique keeps the first of equal ones.
            runs_G, kept_G = np.unique(np.concatenate([runs_G, runs_of(texts).hash_G]), return_index=True)
            file_G = np.pad(file_G, (0, max(0, int(kept_G.max(initial=0)) + 1 - len(file_G))), constant_values=number)[
                kept_G
            ]
    if not len(runs_G):
        names = ", ".join(path.name for path in files[:3])
        raise DataError(f"no text of {many(len(files), 'evaluation file')} ({names}) has {RUN_WORDS} words")
    return runs_G, file_G


def _texts(path: Path) -> Iterator[str]:
    """Yield every text in a file: the file itself, or all texts in its records, however deep."""
    try:
        with open_text(path) as file:
            if _ending(path) in _TEXTS:
                yield file.read()
            elif _ending(path) == ".json":
                yield from _strings(_records(file.read()))
            else:
                for line in file:
                    if line.strip():
                        yield from _strings(json.loads(line))
    except (OSError, ValueError, EOFError, lzma.LZMAError) as error:
        raise DataError(f"evaluation set '{path}' cannot be read: {typed_line(error)}") from None


def _records(text: str) -> Any:
    """Return the JSON value of a file, or of its lines where each is one."""
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _strings(value: Any) -> Iterator[str]:
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            todo += value.values() if isinstance(value, dict) else value
