"""Tags and notes that people give a run, before, while and after it trains: ``labels.json``. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from workbench.errors import RunError
from workbench.runs.folder import RunFolder, read_object, write_json
from workbench.runs.state import exclusive

MOST_TAGS, MOST_NOTES, LONGEST_TAG = 32, 10_000, 40
"""Tags, characters of notes that one run may have, and of one tag."""
# Words of any script; a sign in front stays free to say add or remove, a comma to separate.
_TAG = re.compile(rf"\w[\w.:-]{{0,{LONGEST_TAG - 1}}}")


@dataclass(frozen=True)
class Labels:
    """What people said about a run.

    Attributes:
        tags: in the order in which they were added. notes: free text. Both are data, to be escaped where shown.
    """

    tags: tuple[str, ...] = ()
    notes: str = ""


def read_labels(folder: RunFolder) -> Labels:
    """The labels of a run; none when the file is missing, and of a damaged one what can be read."""
    raw = read_object(folder.labels)
    tags, notes = raw.get("tags"), raw.get("notes")
    legal = [tag for tag in tags if isinstance(tag, str) and _TAG.fullmatch(tag)] if isinstance(tags, list) else []
    return Labels(tuple(dict.fromkeys(legal))[:MOST_TAGS], notes[:MOST_NOTES] if isinstance(notes, str) else "")


def label(
    folder: RunFolder, *, add: Iterable[str] = (), remove: Iterable[str] = (), notes: str | None = None
) -> Labels:
    """Change tags and notes of a run; returns what they are now.

    Args:
        add: tags; one that is there already stays where it is.
        remove: tags; one that is not there is no error. ``add`` wins over it.

    Raises:
        RunError: not a tag, too many of them, notes that are too long or no text; nothing was changed.
    """
    # Lists: a string is iterable, too, and would become one tag per letter.
    adding, removing = _checked(add), _checked(remove)
    if notes is not None:
        _check_notes(notes)
    try:
        # Two who tag at once both succeed.
        with exclusive(folder.path):
            before = read_labels(folder)
            kept = [tag for tag in before.tags if tag not in removing]
            tags = tuple(dict.fromkeys([*kept, *adding]))
            if len(tags) > MOST_TAGS:
                raise RunError(f"run '{folder.id}' would have {len(tags)} tags; at most {MOST_TAGS}")
            after = Labels(tags, before.notes if notes is None else notes)
            if after != before:
                write_json(folder.labels, {"tags": list(after.tags), "notes": after.notes})
    except OSError as error:
        raise RunError(f"labels of run '{folder.id}' could not be written: {error}") from None
    return after


def _checked(tags: Iterable[str]) -> list[str]:
    found = [tags] if isinstance(tags, str) else list(tags)
    for tag in found:
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            raise RunError(
                f"{tag!r} is not a tag: one word of letters, digits, '.', ':', '_' and '-', at most 40 long, that "
                "begins with a letter, digit or '_'"
            )
    return found


def _check_notes(notes: str) -> None:
    if not isinstance(notes, str):
        raise RunError(f"notes are text, got {notes!r}")
    if len(notes) > MOST_NOTES:
        raise RunError(f"notes of {len(notes):,} characters; at most {MOST_NOTES:,}")
    try:
        notes.encode()
    except UnicodeEncodeError:
        raise RunError("the notes hold text that is not Unicode; type it again") from None
