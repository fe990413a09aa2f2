"""Documents out of one file: text, JSON lines and parquet, compressed or not, as a stream."""

from __future__ import annotations

import codecs
import csv
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.base.errors import DataError, unknown
from workbench.choices.data.archives import COMPRESSED_ENDINGS, EXPANSION, EXTRA, raw_lines
from workbench.choices.data.bad_text import REFUSED, BadText
from workbench.choices.data.cutting import cut

TEXT_ENDINGS = (".txt", ".md", ".rst")
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
PARQUET_ENDINGS = (".parquet",)
TABLE_ENDINGS = (".csv", ".tsv")
_FLAT = "text inside other fields is brought up by: jq -c '{text: .meta.text}' nested.jsonl > flat.jsonl"
_OTHER = 'Set data.field to the one that holds the text; where none does, write lines of {"text": ...} first'
_LONGEST_CELL = 1 << 30
_JSON_TYPES = {str: "text", int: "number", float: "number", bool: "true or false", list: "list", type(None): "null"}
BEGINNING_BYTES = 4096
"""Bytes of a text that are looked at to tell its encoding."""
_SECOND_CONTROLS = re.compile("[\x80-\x84\x86-\x9f]")
"""Not U+0085, which some systems end lines with."""
FEWEST_CONTROLS, MOST_CONTROLS = 16, 1 / 5000
"""Large corpora hold a few by accident; of a wrongly converted text, quotes and dashes are one in a hundred."""
MOST_STRANGE = 0.02
"""Share of control and unknown characters up to which bytes count as text: random ones have more than four times it."""


def format_of(path: Path) -> str | None:
    """Return ``text``, ``json``, ``parquet`` or ``table`` by the file's name, compression stripped;
    None for all others.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED_ENDINGS:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    for name, endings in (("text", TEXT_ENDINGS), ("json", JSON_ENDINGS), ("parquet", PARQUET_ENDINGS),
                          ("table", TABLE_ENDINGS)):  # fmt: skip
        if last in endings:
            return name
    return None


def read_documents(
    path: Path, field: str, document_characters: int, bad: BadText = REFUSED, expansion: int = EXPANSION
) -> Iterator[str]:
    """Yield every document of one file, in order.

    Args:
        field: of JSON lines and parquet, the field that holds the text.
        document_characters: where text files are cut, as in :func:`cut_text`.
        bad: decides about text that is no Unicode. expansion: of archives, as in :func:`raw_lines`.

    Raises:
        DataError: unreadable, damaged, not UTF-8, not JSON, or without the field.
    """
    kind = format_of(path)
    if kind == "parquet":
        yield from _parquet(path, field, bad)
    elif kind == "json":
        yield from _json_lines(path, field, bad, expansion)
    elif kind == "table":
        yield from _table(path, field, bad, expansion)
    elif kind == "text":
        yield from cut_text(text_lines(path, bad, expansion), document_characters)
    else:
        raise DataError(f"'{path}': {unknown('file name ending', path.suffix, legal_endings())}")


def legal_endings() -> list[str]:
    """Return every ending that can be read; text and JSON lines also with a compressed ending after it."""
    return [
        *TEXT_ENDINGS,
        *JSON_ENDINGS,
        *PARQUET_ENDINGS,
        *TABLE_ENDINGS,
        *(f".jsonl{ending}" for ending in COMPRESSED_ENDINGS),
    ]


def cut_text(lines: Iterator[str], characters: int) -> Iterator[str]:
    """Cut a text at blank lines into documents of at least ``characters`` characters.

    A whole book in one file could not be split into train and held-out otherwise. Text without blank lines is cut at
    the end of a line once a document has twice as many characters, and a line of such a length within itself.

    Args:
        lines: with their line ends.
        characters: 0 keeps the text in one piece.
    """
    kept: list[str] = []
    size = 0
    pieces = (piece for line in lines for piece in cut(line, characters)) if characters else lines
    for line in pieces:
        kept.append(line)
        size += len(line)
        if characters and size >= characters and (line.isspace() or size >= 2 * characters):
            yield "".join(kept).strip()
            kept, size = [], 0
    rest = "".join(kept).strip()
    if rest:
        yield rest


def text_lines(path: Path, bad: BadText = REFUSED, expansion: int = EXPANSION) -> Iterator[str]:
    """Yield lines of a text file; a byte-order mark at its start is dropped.

    A line that ``bad`` leaves out becomes an empty one, so that lines keep their numbers.
    """
    lines = raw_lines(path, expansion)
    texts = _strict(path, lines, bad.way_out) if bad.refused else (
        bad.line(line, f"'{path}' line {number:,}") for number, line in enumerate(lines, start=1))  # fmt: skip
    for number, text in enumerate(texts):
        yield with_line_feeds(text.removeprefix("\ufeff") if number == 0 else text)


def _strict(path: Path, lines: Iterator[bytes], way_out: str) -> Iterator[str]:
    """Decode lines; refuse the first that is no text, with the likely encoding and the way out."""
    begin = 0
    controls = characters = 0
    for number, line in enumerate(lines):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            where = f"byte 0x{line[error.start]:02x} at offset {begin + error.start:,} of its (uncompressed) content"
            where += f", in line {number + 1:,}"
            advice = _advice(_beginning(line, lines), "convert it, for example with")
            raise DataError(f"'{path}' is not UTF-8: {where}; {advice}{way_out}") from None
        if "\0" in text:
            # Letters of UTF-16 without a mark at its start are valid UTF-8, with a zero beside each.
            advice = _advice(_beginning(line, lines), "if it is UTF-16, convert it with")
            raise DataError(f"'{path}' is no plain text: a zero byte in line {number + 1:,}; {advice}{way_out}")
        controls += 0 if text.isascii() else len(_SECOND_CONTROLS.findall(text))
        characters += len(text)
        if controls >= FEWEST_CONTROLS and controls > MOST_CONTROLS * characters:
            raise DataError(
                f"'{path}' up to line {number + 1:,} holds {controls} control characters (U+0080 to U+009F), which a "
                "text converted from the wrong encoding has: convert the original with iconv -f cp1252 -t utf-8, or "
                "remove them with perl -CSD -pi -e 's/[\\x{80}-\\x{9f}]//g'"
            )
        yield text
        begin += len(line)


def with_line_feeds(text: str) -> str:
    """Return a text whose lines end in ``\\n``, so that it means the same from every system."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def not_utf8(path: Path) -> str:
    """Return why the first bytes of a file show that it is no UTF-8 text; empty if it may be.

    Raises:
        OSError: it cannot be opened.
    """
    if format_of(path) not in ("text", "json") or path.suffix.lower() in COMPRESSED_ENDINGS:
        return ""
    with path.open("rb") as file:
        head = file.read(BEGINNING_BYTES)
    if b"\0" not in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ""
    return f"'{path}' is no UTF-8 text; {_advice(head, 'convert it, for example with')}"


def encoding_of(data: bytes) -> str:
    """Return the likely encoding of bytes that are no UTF-8, as iconv calls it; empty if they are hardly text."""
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        likely = "utf-32"
    elif data.startswith((b"\xff\xfe", b"\xfe\xff")):
        likely = "utf-16"
    elif b"\0" in data:
        # Of western letters the upper half is zero: before them in big endian, after them in little.
        likely = "utf-16be" if data[::2].count(0) > data[1::2].count(0) else "utf-16le"
    else:
        # latin1 has control characters where cp1252 has quotes and dashes, and gaps, and others have letters.
        western = ("latin1",) if not any(0x80 <= byte <= 0x9F for byte in data) else ("cp1252", "cp1251", "latin1")
        return next((encoding for encoding in western if _is_text(data, encoding)), "")
    return likely if _is_text(data, likely) else ""


def _is_text(data: bytes, encoding: str) -> bool:
    """Return whether bytes read in an encoding are nearly all characters that occur in texts."""
    try:
        # A letter may be cut off at the end.
        text = codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeDecodeError:
        return False
    strange = ("Cc", "Cn", "Co", "Cs") if encoding != "latin1" else ()
    found = sum(not c.isspace() and (c < " " or c == "\x7f" or unicodedata.category(c) in strange) for c in text)
    return found <= MOST_STRANGE * len(text)


def _advice(data: bytes, convert: str) -> str:
    """Return what to do about bytes that are not UTF-8."""
    if encoding := encoding_of(data):
        return f"{convert}: iconv -f {encoding} -t utf-8"
    return "it does not look like text in any encoding; leave it out, and name the files that hold the text"


def _beginning(line: bytes, others: Iterator[bytes]) -> bytes:
    """Return the first bytes from a line on: one line of what is no text may be short."""
    while len(line) < BEGINNING_BYTES and (more := next(others, b"")):
        line += more
    return line[:BEGINNING_BYTES]


def _json_lines(path: Path, field: str, bad: BadText, expansion: int) -> Iterator[str]:
    """Yield field of every line; empty lines and null values hold no document."""
    for number, line in enumerate(text_lines(path, bad, expansion), start=1):
        if line.isspace():
            continue
        where = f"'{path}' line {number:,}"
        try:
            record = json.loads(line)
        # A RecursionError: nested deeper than Python reads.
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{where} is not JSON ({error}); JSON lines are expected, one object per line; "
                "an array is turned into lines by: jq -c '.[]'"
            ) from None
        if not isinstance(record, dict):
            raise DataError(f"{where} holds a {type(record).__name__}, expected an object with the field '{field}'")
        yield text_of(record, field, where, bad)


def _table(path: Path, field: str, bad: BadText, expansion: int) -> Iterator[str]:
    """Yield column of a .csv or .tsv file, whose first row names the columns."""
    csv.field_size_limit(_LONGEST_CELL)
    rows = csv.reader(text_lines(path, bad, expansion), delimiter="\t" if ".tsv" in path.suffixes else ",", strict=True)
    try:
        names = next(rows, [])
        _check_field(dict.fromkeys(names, "text"), field, f"'{path}'")
        column = names.index(field)
        for row in rows:
            if row and len(row) != len(names):
                raise DataError(
                    f"'{path}' line {rows.line_num:,} has {len(row)} columns, and the first row names {len(names)}: a "
                    "quote that is not closed, a separator within a text without quotes, or another separator"
                )
            if row:
                yield row[column]
    except csv.Error as error:
        raise DataError(f"'{path}' line {rows.line_num:,} is no row of a table: {error}") from None


def _parquet(path: Path, field: str, bad: BadText) -> Iterator[str]:
    """Yield column of a parquet file, a few thousand rows in memory at a time."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise DataError(f"'{path}' needs the package pyarrow; {EXTRA}") from None
    row = 0
    try:
        with parquet.ParquetFile(path) as file:
            types = {each.name: str(each.type) for each in file.schema_arrow}
            _check_field(types, field, f"'{path}'")
            # One column: what stands beside the text is never decoded.
            for batch in file.iter_batches(batch_size=2048, columns=[field]):
                for value in _values(batch.column(0)):
                    row += 1
                    where = f"'{path}' row {row:,}"
                    text = bad.decoded(value, where) if isinstance(value, bytes) else value
                    yield text_of({**types, field: text}, field, where, bad, types)
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"'{path}' is no readable parquet file: {error}") from None


def _values(column: Any) -> list[Any]:
    """Return the values of a column; bytes where a text of it is not UTF-8."""
    import pyarrow

    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return list(column.cast(pyarrow.large_binary()).to_pylist())


def _check_field(types: Mapping[str, str], field: str, where: str) -> None:
    if field not in types:
        hint = _FLAT.capitalize() if "." in field else _OTHER
        raise DataError(f"{where}: {unknown('data.field', field, types, f'{hint}; it has: {_listed(types)}')}")


def _listed(types: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in types.items())


def text_of(
    record: Mapping[str, Any], field: str, where: str, bad: BadText = REFUSED, types: Mapping[str, str] | None = None
) -> str:
    """Return the text of a record, empty where it is null.

    Args:
        types: of its fields, for the message; else those of its values.

    Raises:
        DataError: no such field, no text, or text that is not Unicode; the message begins with ``where``.
    """
    value = record.get(field)
    if isinstance(value, str):
        return with_line_feeds(bad.whole(value, f"{where}: field '{field}'"))
    types = types or {name: _JSON_TYPES.get(type(each), "object") for name, each in record.items()}
    _check_field(types, field, where)
    if value is None:
        return ""
    raise DataError(
        f"{where}: field '{field}' is of type {_JSON_TYPES.get(type(value), 'object')}, expected text; "
        f"it has: {_listed(types)}; {_FLAT}"
    )
