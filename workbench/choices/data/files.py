"""Local text, JSON lines and parquet files."""

from __future__ import annotations

import difflib
import glob
import hashlib
import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

from workbench.base.errors import DataError
from workbench.base.text import many
from workbench.choices.choice import Problem, knob
from workbench.choices.data.archives import EXPANSION
from workbench.choices.data.bad_text import BadText, BadTextRule
from workbench.choices.data.data import Say, Sourced
from workbench.choices.data.reading import format_of, legal_endings, not_utf8, read_documents
from workbench.choices.data.stream import Streamed

NAMED_FILES = 16
"""Files that a fingerprint lists by name; the digest beside them covers all."""
LOOKED_AT = 10_000
"""Files among which a form looks for one that can be read: it must not wait for a disk full of others."""
_SAVED_BY_DATASETS = ("dataset_info.json", "dataset_dict.json")


class Files(Streamed):
    """Text, jsonl, csv, tsv (also .gz, .xz, .zst) and parquet files, or folders of them."""

    kind: Literal["files"] = "files"
    # One file may hold any share of the text: its documents are split, and it is named to those who look at rows.
    split_by_source: ClassVar[bool] = False
    paths: tuple[str, ...] = knob(..., "files, folders (recursive) or glob patterns", min_length=1)
    field: str = knob("text", "name of the text field in JSON lines, parquet and tables", min_length=1)
    heldout_paths: tuple[str, ...] = knob((), "held-out files, folders or patterns; empty: a share of the documents")
    document_characters: int = knob(
        8000, "text files are cut at blank lines into documents of at least this length; 0: one per file",
        unit="characters", ge=0, le=1 << 30,
    )  # fmt: skip
    bad_text: BadTextRule = knob(
        "refuse", "a line or record that is no Unicode text: refuse the file, skip it, or replace what is broken"
    )
    expansion: int = knob(
        EXPANSION, "times its size that a compressed file may hold, beyond 64 MiB; a larger one is refused",
        ge=1, le=1 << 20, scale="log",
    )  # fmt: skip

    def documents(self) -> Iterator[str]:
        """Yield documents of every training file, in the order of the sorted file names.

        Files that are held out are left out, also where ``paths`` covers them.

        Raises:
            DataError: missing path, no readable file, damaged archive, not UTF-8, no such field.
        """
        return (text for _, text in self.sourced_documents())

    def sourced_documents(self) -> Iterator[Sourced]:
        """Yield the documents with the file of each, named below the deepest folder that holds all files."""
        return islice(self._read(self.files(), BadText(self.bad_text)), self.stream or None)

    def open_stream(self, first: int) -> Iterator[str]:
        """See :meth:`Streamed.open_stream`; what stands before is read over."""
        return (text for _, text in islice(self._read(self.files(), BadText(self.bad_text)), first, None))

    def heldout_documents(self) -> Iterator[str] | None:
        """Yield documents of ``heldout_paths``, or None when there are none."""
        if not self.heldout_paths:
            return None
        files = find_files(self.heldout_paths, "data.heldout_paths")
        return (text for _, text in self._read(files, BadText(self.bad_text)))

    def collect(self, say: Say) -> None:
        """Read all of it once to say where there is no text, if that is skipped or replaced."""
        if self.bad_text != "refuse":
            bad = BadText(self.bad_text)
            heldout = find_files(self.heldout_paths, "data.heldout_paths") if self.heldout_paths else []
            deque(islice(self._read(self.files(), bad), self.stream or None), maxlen=0)
            deque(self._read(heldout, bad), maxlen=0)
            if bad.count:
                say(bad.told())

    def _read(self, files: list[Path], bad: BadText) -> Iterator[Sourced]:
        folder = os.path.commonpath([path.parent for path in files]) if files else ""
        for path in files:
            name = (path.relative_to(folder).as_posix(),)
            for text in read_documents(path, self.field, self.document_characters, bad, self.expansion):
                yield name, text

    def sources(self) -> dict[str, Any]:
        """Return number, bytes, names and a digest of (path, size, time of change) of the files; reads none of them."""
        heldout = find_files(self.heldout_paths, "data.heldout_paths") if self.heldout_paths else []
        return {
            "train": listing(self.files()),
            "heldout": listing(heldout),
            "field": self.field,
            "document_characters": self.document_characters,
            **({} if self.bad_text == "refuse" else {"bad_text": self.bad_text}),
            **({"stream": self.stream} if self.stream else {}),
        }

    def problems_here(self) -> Iterator[Problem]:
        """Refuse paths of this machine that are not there or hold nothing that can be read."""
        yield from super().problems_here()
        found = False
        for name in ("paths", "heldout_paths"):
            try:
                check_paths(getattr(self, name), f"data.{name}", encoding=self.bad_text == "refuse")
            except DataError as error:
                yield Problem(f"data.{name}", str(error).partition(": ")[2])
                found = True
            except OSError as error:
                yield Problem(f"data.{name}", f"cannot be looked at: {error}")
                found = True
        if not found:
            yield from self._problems_of_field()

    def located(self) -> dict[str, Any]:
        """Return the tokenizer's path and those of the text, patterns among them."""
        given = {"paths": self.paths, "heldout_paths": self.heldout_paths}
        return super().located() | {
            name: [str(Path(path).expanduser().absolute()) for path in paths] for name, paths in given.items()
        }

    def _problems_of_field(self) -> Iterator[Problem]:
        """Yield why the first file of records of a path has no text in ``field``."""
        for text in (*self.paths, *self.heldout_paths):
            readable = (path for path in islice(_candidates(text, "data.paths"), LOOKED_AT) if format_of(path))
            for path in _data_files(readable)[:1]:
                stat = path.stat()
                if why := _field_problem(path, stat.st_mtime_ns, stat.st_size, self.field, self.bad_text):
                    yield Problem("data.field" if "field" in why else "data.paths", why)
                    return

    def notices(self) -> Iterator[Problem]:
        """Yield the tokenizer's, and texts of a folder that are left out, since records stand beside them."""
        yield from super().notices()
        for name in ("paths", "heldout_paths"):
            for text in getattr(self, name):
                with suppress(DataError, OSError):
                    readable = [path for path in islice(_candidates(text, name), LOOKED_AT) if format_of(path)]
                    used = {*_data_files(iter(readable))}
                    if left := sorted(path.name for path in readable if path not in used and path.is_file()):
                        names = ", ".join(left[:3]) + (", ..." if len(left) > 3 else "")
                        yield Problem(f"data.{name}", f"of '{text}' {many(len(used), 'file')} of records will be read, "
                                      f"not {many(len(left), 'other')} ({names}): name those outright to read them, "
                                      "too")  # fmt: skip

    def files(self) -> list[Path]:
        """Return the training files, sorted; those that are held out are left out.

        Raises:
            DataError: a path that is missing or holds no readable file, or nothing is left.
        """
        files = find_files(self.paths, "data.paths")
        if not self.heldout_paths:
            return files
        heldout = set(find_files(self.heldout_paths, "data.heldout_paths"))
        files = [path for path in files if path not in heldout]
        if not files:
            raise DataError("every file of data.paths is also in data.heldout_paths; nothing is left to train on")
        return files


def find_files(paths: tuple[str, ...], knob_name: str) -> list[Path]:
    """Return absolute paths of every readable file, sorted, each once.

    Folders are searched with everything below them, hidden files left out. In a folder that holds JSON lines or
    parquet, other files are notes about them (a manifest, a licence), not data, and are left out too; so are .txt and
    .md beside .json. A file named outright must be readable.

    Args:
        paths: files, folders or glob patterns (``**`` goes down).

    Raises:
        DataError: a path does not exist (with the nearest name), or holds no readable file.
    """
    found: dict[Path, None] = {}
    for text in paths:
        matches = _data_files(_candidates(text, knob_name))
        if not matches:
            raise _unreadable(text, knob_name)
        # absolute, not resolve: a link keeps the name by which the user knows it.
        found |= dict.fromkeys(sorted(match.absolute() for match in matches))
    return sorted(found)


def check_paths(paths: tuple[str, ...], knob_name: str, *, encoding: bool = True) -> None:
    """Refuse what :func:`find_files` refuses; of a folder only the first :data:`LOOKED_AT` files are looked at.

    Args:
        encoding: also refuse a file with 16 bits a letter.

    Raises:
        DataError: as :func:`find_files`, or every file is empty, or one of the first has 16 bits a letter.
    """
    empty = True
    for text in paths:
        candidates = _candidates(text, knob_name)
        readable = [path for path in islice(candidates, LOOKED_AT) if format_of(path) and path.is_file()]
        # A folder with more in it gets the benefit of the doubt.
        more = next(candidates, None) is not None
        if not readable and not more:
            raise _unreadable(text, knob_name)
        empty = empty and not more and not any(path.stat().st_size for path in readable)
        for path in _data_files(iter(readable))[:NAMED_FILES] if encoding else ():
            if why := not_utf8(path):
                raise DataError(f"{knob_name}: {why}")
    if paths and empty:
        raise DataError(f"{knob_name}: every file of it is empty: {', '.join(paths)}")


def _candidates(text: str, knob_name: str) -> Iterator[Path]:
    """Return the files of a path, a folder or a pattern, readable or not, as they are found."""
    path = Path(text).expanduser()
    if path.is_file():
        if format_of(path) is None:
            raise DataError(
                f"{knob_name}: '{text}' cannot be read; legal file names end in {_endings()}; text under another name "
                f"is read once it is called .txt{_arrow(path)}"
            )
        return iter((path,))
    if path.is_dir():
        if any((path / name).is_file() for name in _SAVED_BY_DATASETS) and any(path.rglob("*.arrow")):
            raise DataError(
                f"{knob_name}: '{text}' was written by `save_to_disk` of Hugging Face datasets; read it with "
                f'data={{"kind": "hugging_face", "name": "{text}"}}'
            )
        return (p for p in path.rglob("*") if not _hidden(p.relative_to(path)))
    if glob.has_magic(text):
        return map(Path, glob.iglob(str(path), recursive=True))
    if "://" in text:
        raise DataError(f"{knob_name}: '{text}' is an address, and files are read from this machine: download it, "
                        "or read a dataset of the Hub with data 'hugging_face'")  # fmt: skip
    raise DataError(f"{knob_name}: no such file or folder '{text}'{_nearest(path)}")


def _unreadable(text: str, knob_name: str) -> DataError:
    arrow = _arrow(Path(text).expanduser())
    return DataError(f"{knob_name}: '{text}' matches no readable file; legal file names end in {_endings()}{arrow}")


def _arrow(path: Path) -> str:
    found = path.suffix == ".arrow" or (path.is_dir() and any(path.rglob("*.arrow")))
    return "; a folder of Arrow files is read by data 'hugging_face', with the folder as data.name" if found else ""


def _data_files(candidates: Iterator[Path]) -> list[Path]:
    """Return the readable ones; of a mixture the records, else the .json files, else the tables, else the texts."""
    files = [path for path in candidates if path.is_file() and format_of(path)]
    tables = [path for path in files if format_of(path) == "table"]
    records = [path for path in files if format_of(path) not in ("text", "table")]
    lines = [path for path in records if path.suffix.lower() != ".json"]
    return lines or records or tables or files


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _endings() -> str:
    return ", ".join(legal_endings())


def _nearest(path: Path) -> str:
    """Return a hint with a similar name of the same kind in the deepest folder that exists; else nothing."""
    path = path.absolute()
    missing = path
    while not missing.parent.is_dir() and missing != missing.parent:
        missing = missing.parent
    # Of a path that goes on, or has no ending, a folder may be meant; a file only of one that ends here.
    folder_meant, file_meant = missing != path or not path.suffix, missing == path
    try:
        names = [entry.name for entry in missing.parent.iterdir() if (entry.is_dir() and folder_meant)
                 or (file_meant and format_of(entry) and entry.is_file())]  # fmt: skip
    except OSError:
        names = []
    # At 0.7 a missing or swapped letter is found, and '/opt' is none for '/nope'.
    near = difflib.get_close_matches(missing.name, names, n=1, cutoff=0.7)
    return f"; did you mean '{missing.parent / near[0]}'?" if near else ""


@lru_cache(maxsize=64)
def _field_problem(path: Path, changed: int, size: int, field: str, bad_text: BadTextRule) -> str:
    """Return why a file of records cannot be read by its first record; empty if it can. A form asks at every key."""
    if format_of(path) == "text":
        return ""
    try:
        next(read_documents(path, field, 0, BadText(bad_text)), None)
    except DataError as error:
        return str(error).replace("data.field: ", "")
    return ""


def listing(files: list[Path]) -> dict[str, Any]:
    """Return number, bytes, first names and a digest of (path, size, time of change) of files, for a fingerprint."""
    # Size and time of change instead of content: a terabyte must not be read to find out that nothing changed.
    stats = [(str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in files]
    return {
        "files": len(files),
        "bytes": sum(size for _, size, _ in stats),
        "names": [path.name for path in files[:NAMED_FILES]],
        "digest": hashlib.sha256(repr(stats).encode()).hexdigest(),
    }
