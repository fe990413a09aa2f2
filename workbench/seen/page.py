"""Rows as text, and as HTML that needs no script and nothing from elsewhere; light or dark as what stands around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from workbench.base.text import count, many, plain, plain_lines
from workbench.choices.objectives.preview import MARKS

# Ink and ground are those around it, lines and tints are half transparent: right in either theme.
STYLE = (
    ".wb-rows{line-height:1.5;overflow-wrap:anywhere}"
    ".wb-rows p{margin:4px 0}"
    ".wb-rows .wb-quiet{opacity:.8;font-size:12px}"
    ".wb-rows .wb-row{margin:10px 0;padding-top:6px;border-top:1px solid rgba(128,128,128,.5)}"
    ".wb-rows .wb-piece{display:block;margin:4px 0;padding-left:8px;border-left:3px solid rgba(128,128,128,.8)}"
    ".wb-rows .wb-token{display:inline-block;margin:1px 0 1px 3px;padding:0 3px;border:1px solid rgba(128,128,128,.45);"
    "border-radius:3px;white-space:pre-wrap}"
    ".wb-rows .wb-joined{margin-left:0;border-left-style:dotted}"
    ".wb-rows sup{font-weight:600;line-height:0}"
    ".wb-rows .wb-target{opacity:.85;font-size:85%}"
    + "".join(
        f".wb-rows .wb-{name}{{border-color:{mark.colour};box-shadow:inset 0 -3px {mark.colour};"
        f"background:{mark.colour}26}}"
        for name, mark in MARKS.items()
        if name not in ("read", "next")
    )
    # Every token of a row that is read from the left asks for the next: a line is enough.
    + f".wb-rows .wb-next{{border-bottom:2px dotted {MARKS['next'].colour}}}"
)

SIDES = "Before ? and \u2260 stands the token that the model reads, behind it the true one."


def rows_html(rows: Mapping[str, Any]) -> str:
    """Return rows as HTML, everything from text and names escaped.

    Args:
        rows: as ``Rows.to_dict`` gives them.
    """
    found = rows["rows"]
    notes = "".join(f"<p class='wb-quiet'>{escape(note)}.</p>" for note in rows["notes"])
    return (
        f"<style>{STYLE}</style><div class='wb-rows'><p>{escape(headline(rows))}</p>"
        f"<p class='wb-quiet'>{legend_html(found)} A bar is a document.</p>"
        f"{notes}{''.join(map(row_html, found))}</div>"
    )


def legend_html(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the meaning of the marks in rows, which have ``marks``, as HTML."""
    marks = [mark for mark in MARKS if mark != "read" and any(mark in row["marks"] for row in rows)]
    legend = "; ".join(f"<b>{mark} {MARKS[mark].sign}</b> {escape(MARKS[mark].words)}" for mark in marks)
    sides = f" {SIDES}" if {"masked", "replaced"} & {*marks} else ""
    return f"{legend}.{sides} A box is a token, a dotted left edge continues a word."


def headline(rows: Mapping[str, Any]) -> str:
    """Return which rows these are, in one line."""
    tense = "reads" if not rows["past"] else "has read"
    return (
        f"{plain(rows['name'], 80)} {tense} {many(rows['batch'], 'row')} of {count(rows['length'])} tokens at step "
        f"{rows['step']:,}, after {count(rows['tokens'])} tokens ({rows['epochs']:.2f} epochs)"
    )


def row_html(row: Mapping[str, Any]) -> str:
    """Return one row as HTML."""
    head = f"<p class='wb-quiet'>{escape(row_line(row))}</p>"
    return f"<div class='wb-row'>{head}{''.join(_piece_html(row, piece) for piece in row['pieces'])}</div>"


def row_line(row: Mapping[str, Any]) -> str:
    """Return the place of a row in its run, in one line."""
    return f"step {row['step']:,}, row {row['place']:,} (sample {row['sample']:,}, epoch {row['epoch']:,})"


def piece_line(piece: Mapping[str, Any]) -> str:
    """Return the document that a piece is of, in one line."""
    source = f" ({plain(piece['source'], 80)})" if piece["source"] else ""
    length = piece["end"] - piece["begin"]
    part = "whole" if length == piece["size"] else f"tokens {piece['offset']:,} to {piece['offset'] + length - 1:,}"
    cut = "; it was cut, so positions start at 0 again" if piece["offset"] else ""
    return f"document {piece['document']:,}{source}, {part} of {piece['size']:,}{cut}"


def _piece_html(row: Mapping[str, Any], piece: Mapping[str, Any]) -> str:
    tokens = tokens_html(row, piece["begin"], piece["end"])
    return f"<div class='wb-piece'><span class='wb-quiet'>{escape(piece_line(piece))}</span><br>{tokens}</div>"


def tokens_html(row: Mapping[str, Any], begin: int, end: int) -> str:
    """Return places of a row as HTML.

    Args:
        row: ``texts``, ``marks``, ``targets``, ``joined``, ``positions`` and ``seen``, as of ``Row``.
    """
    return "".join(_token_html(row, place, place == begin) for place in range(begin, end))


def _token_html(row: Mapping[str, Any], place: int, first: bool) -> str:
    mark, target = row["marks"][place], row["targets"][place]
    joined = " wb-joined" if row["joined"][place] and not first else ""
    told = "" if mark in ("read", "next") else f"<sup>{MARKS[mark].sign}</sup>"
    # What is hidden stands beside what hides it.
    told += f" <span class='wb-target'>{escape(target)}</span>" if target and mark in ("masked", "replaced") else ""
    title = f"position {row['positions'][place]}, id {row['seen'][place]}; {MARKS[mark].words}"
    text = escape(row["texts"][place])
    return f"<span class='wb-token wb-{mark}{joined}' title='{escape(title)}'>{text}{told}</span>"


def found_html(found: Mapping[str, Any]) -> str:
    """Return where a text was found, as HTML, everything escaped.

    Args:
        found: as ``Found.to_dict`` gives it.
    """
    heads = "".join(f"<th style='text-align:left'>{head}</th>" for head in ("document", "read at step", "text"))
    cells = ((place_line(place), readings_line(place), plain(place["text"], 400)) for place in found["places"])
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in row) + "</tr>" for row in cells
    )
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>" if body else ""
    removed = "".join(f"<p>{escape(line)}</p>" for line in removed_lines(found))
    rows = "".join(map(row_html, found["rows"]))
    return f"<style>{STYLE}</style><div class='wb-rows'><p>{escape(found_line(found))}</p>{table}{removed}{rows}</div>"


def found_text(found: Mapping[str, Any]) -> str:
    """Return where a text was found, as text."""
    lines = [found_line(found), *removed_lines(found)]
    for place in found["places"]:
        lines += ["", f"{place_line(place)}: {readings_line(place)}", f"  {plain(place['text'], 400)}"]
    for row in found["rows"]:
        lines += ["", row_line(row), *(f"  {piece_line(piece)}\n    {_words(row, piece)}" for piece in row["pieces"])]
    return plain_lines("\n".join(lines))


def found_line(found: Mapping[str, Any]) -> str:
    """Return how often a text was found, in one line."""
    text = f"'{plain(found['text'], 80)}'"
    if not found["total"]:
        return f"{text} stands nowhere in the prepared text of {plain(found['name'], 80)}; whole words are looked for"
    more = f", the first {len(found['places'])} below" if found["total"] > len(found["places"]) else ""
    return f"{text} stands in {many(found['total'], 'place')} of the text of {plain(found['name'], 80)}{more}"


def removed_lines(found: Mapping[str, Any]) -> list[str]:
    """Return the documents with the text that were left out, and why, a line each."""
    return [
        f"left out by step '{each['kind']}' of the preparation, since {each['reason']}"
        + (f" ({plain(each['detail'], 160)})" if each["detail"] else "")
        + f": document {each['number']:,} of the corpus{_of(each['sources'])}, '{plain(each['text'], 120)}'"
        for each in found["removed"]
    ]


def _of(sources: Sequence[str]) -> str:
    return f" ({plain('/'.join(sources), 80)})" if sources else ""


def place_line(place: Mapping[str, Any]) -> str:
    """Return the document of a place, in one line."""
    side = "held-out" if place["split"] == "heldout" else "training"
    source = f" ({plain(place['source'], 80)})" if place["source"] else ""
    return f"document {place['document']:,} of the {side} text{source}, from token {place['offset']:,}"


def readings_line(place: Mapping[str, Any]) -> str:
    """Return when a place was read and will be, in one line."""
    if place["split"] == "heldout":
        return "never: models are scored on it"
    past = [f"{each['step']:,}" for each in place["readings"] if each["past"]]
    ahead = [f"{each['step']:,}" for each in place["readings"] if not each["past"]]
    parts = [f"read at step {_listed(past, place['times'])}"] if past else []
    parts += [f"to be read at step {_listed(ahead, place['planned'] - place['times'])}"] if ahead else []
    return "; ".join(parts) or "not read: no step of this budget comes to it"


def _listed(steps: Sequence[str], total: int, most: int = 8) -> str:
    return ", ".join(steps[:most]) + (f" and {total - most:,} more" if total > most else "")


def rows_text(rows: Mapping[str, Any]) -> str:
    """Return rows as text: ``[MASK]?true``, ``other\u2260true`` (read, then true), ``same=``."""
    lines = [headline(rows), *rows["notes"]]
    for row in rows["rows"]:
        lines += ["", row_line(row)]
        lines += [f"  {piece_line(piece)}\n    {_words(row, piece)}" for piece in row["pieces"]]
    signs = {mark for row in rows["rows"] for mark in row["marks"]} - {"read", "next"}
    lines += ["", *(f"{MARKS[mark].sign} {MARKS[mark].words}" for mark in MARKS if mark in signs)]
    lines += [SIDES] if {"masked", "replaced"} & signs else []
    return plain_lines("\n".join(lines).rstrip())


def _words(row: Mapping[str, Any], piece: Mapping[str, Any]) -> str:
    words: Sequence[str] = [
        ("" if row["joined"][place] and place > piece["begin"] else " ")
        + row["texts"][place]
        + ("" if (mark := row["marks"][place]) in ("read", "next") else MARKS[mark].sign)
        + (row["targets"][place] if mark in ("masked", "replaced") else "")
        for place in range(piece["begin"], piece["end"])
    ]
    return "".join(words).strip()
