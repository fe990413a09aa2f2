"""Reports of the preparation steps of a corpus, to read: shares, reasons, examples, why a document was left out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from workbench.base.errors import DataError
from workbench.base.text import plain
from workbench.choices.data.after_steps import PREPARATION_FILE, REMOVED_FILE, described
from workbench.choices.data.data import Data, Say
from workbench.choices.data.prepare import prepare

SHOWN_CHARACTERS = 400


class Preparation:
    """The reports of a corpus' preparation steps, as ``workbench.choices.data.after_steps`` writes them.

    Args:
        folder: cache entry of the tokens, with ``preparation.json`` and ``removed.jsonl``; without them there were no
            steps.

    Attributes:
        documents_in, documents_out, characters_in, characters_out: of all steps together; None without steps.
        steps: one report per step, as JSON has it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        path = folder / PREPARATION_FILE
        try:
            self._content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"steps": []}
        except (OSError, ValueError) as error:
            raise DataError(f"'{path}' cannot be read: {error}; delete '{folder}', and it is made again") from None
        self.steps: list[dict[str, Any]] = self._content["steps"]
        names = ("documents_in", "documents_out", "characters_in", "characters_out")
        self.documents_in, self.documents_out, self.characters_in, self.characters_out = map(self._content.get, names)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return dict(self._content)

    def removed(self, search: str | int = "") -> Iterator[dict[str, Any]]:
        """Yield the removed documents, by step, with the reason for which each was left out.

        Args:
            search: number of a document, or a text that its first characters, a source's name or the reason holds.
        """
        path = self._folder / REMOVED_FILE
        if not path.exists():
            return
        with path.open(encoding="utf-8") as file:
            for line in map(json.loads, file):
                held = (line["text"], *line["sources"], line["reason"], line["detail"])
                found = line["number"] == search if isinstance(search, int) else any(search in each for each in held)
                if found:
                    yield line

    def __str__(self) -> str:
        return (
            "\n".join(described(report) for report in self.steps) or "no preparation steps: the text is as it was read"
        )

    def _repr_html_(self) -> str:
        if not self.steps:
            return f"<p>{escape(str(self))}</p>"
        whole = (
            f"{self.documents_in:,} documents came in, {self.documents_out:,} are left ({self._left:.1%} of the text)."
        )
        return f"<p>{whole}</p>{_overview(self.steps)}" + "".join(_section(report) for report in self.steps)

    @property
    def _left(self) -> float:
        return float(self.characters_out or 0) / max(1, self.characters_in or 0)


def preparation_of(source: Any, say: Say = print) -> Preparation:
    """Prepare the text of a recipe, or of data, unless that was done before; return the reports of its steps.

    Raises:
        DataError: as :func:`workbench.choices.data.prepare.prepare`.

    Example:
        >>> from workbench.choices.data import Files, preparation_of
        >>> found = preparation_of(Files(paths=("docs",), steps="exact_duplicates"))  # doctest: +SKIP
        >>> found.steps[0]["removed"], next(found.removed("some words"))["reason"]  # doctest: +SKIP
        (12, 'repeated')
    """
    data: Data = getattr(source, "data", source)
    return Preparation(Path(prepare(data, say).tokenizer_file).parent)


def _overview(steps: list[dict[str, Any]]) -> str:
    heads = ("step", "documents in", "removed", "of the documents", "of the characters", "changed", "seconds")
    rows = [
        (
            report["kind"], f"{report['documents_in']:,}", f"{report['removed']:,}", f"{report['removed_share']:.2%}",
            f"{report['removed_character_share']:.2%}", f"{report['changed']:,}", f"{report['seconds']:g}",
        )
        for report in steps
    ]  # fmt: skip
    return _table(heads, rows)


def _section(report: dict[str, Any]) -> str:
    """Return one step: its settings, its reasons and the texts to read."""
    settings = ", ".join(f"{name} {json.dumps(value)}" for name, value in report["settings"].items())
    parts = [f"<h3>{escape(report['kind'])}</h3><p>{escape(settings)}</p>"]
    if report["reasons"]:
        parts.append(_table(("reason", "documents"), [(why, f"{n:,}") for why, n in report["reasons"].items()]))
    if report["changes"]:
        parts.append(_table(("change", "times"), [(what, f"{n:,}") for what, n in report["changes"].items()]))
    if report["facts"]:
        parts.append(_table(("counted", "number"), [(what, f"{n:,}") for what, n in report["facts"].items()]))
    columns = {
        "removed": ("document", "reason", "detail", "text"),
        "changed": ("document", "before", "text"),
        "kept": ("document", "text"),
    }
    for which, heads in columns.items():
        if examples := report[f"{which}_examples"]:
            rows = [(_name(each), *(_short(each[head]) for head in heads[1:])) for each in examples]
            parts.append(f"<details><summary>{len(examples)} {which}, to read</summary>{_table(heads, rows)}</details>")
    return "".join(parts)


def _name(example: dict[str, Any]) -> str:
    return " ".join([f"{example['number']:,}", "/".join(example["sources"])]).strip()


def _short(text: str) -> str:
    return plain(text, SHOWN_CHARACTERS)


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    # Escaped: texts are anybody's, and must not become markup of this page.
    body = "".join(_row("td", row) for row in rows)
    return f"<table><thead>{_row('th', heads)}</thead><tbody>{body}</tbody></table>"


def _row(tag: str, cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{tag} style='text-align:left'>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
