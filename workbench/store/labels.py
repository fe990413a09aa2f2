"""Name, tags and notes that people give a run, before, while and after it trains: ``labels.json``. Standard library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.base.errors import RunError
from workbench.base.text import many
from workbench.store.folder import RunFolder, read_object, write_json
from workbench.store.state import exclusive

MOST_TAGS, MOST_NOTES, LONGEST_TAG = 32, 10_000, 40
"""Tags, characters of notes that one run may have, and of one tag."""
LONGEST_NAME = 80
"""Characters of a name, as in recipes."""
# Words of any script; a sign in front stays free to say add or remove, a comma to separate.
_TAG = re.compile(rf"\w[\w.:-]{{0,{LONGEST_TAG - 1}}}")


@dataclass(frozen=True)
class Labels:
    """Name, tags and notes of a run.

    Attributes:
        tags: in the order in which they were added. notes: free text.
        name: that it was given after its launch; empty: its recipe's counts. All are data, to be escaped where shown.
    """

    tags: tuple[str, ...] = ()
    notes: str = ""
    name: str = ""


def read_labels(folder: RunFolder) -> Labels:
    """Read the labels of a run; none when the file is missing, and of a damaged one the legal part."""
    raw = read_object(folder.labels)
    tags, notes, name = raw.get("tags"), raw.get("notes"), raw.get("name")
    legal = [tag for tag in tags if isinstance(tag, str) and _TAG.fullmatch(tag)] if isinstance(tags, list) else []
    return Labels(
        tuple(dict.fromkeys(legal))[:MOST_TAGS],
        notes[:MOST_NOTES] if isinstance(notes, str) else "",
        name.strip() if isinstance(name, str) and not _fault(name) else "",
    )


def name_of(folder: RunFolder, recipe: Mapping[str, Any] | None = None, labels: Labels | None = None) -> str:
    """Return the name of a run: the one it was given, else its recipe's, else its id. Data, to be escaped where shown.

    Args:
        recipe, labels: of the run, where they have been read.
    """
    given = (read_labels(folder) if labels is None else labels).name
    name = given or (read_object(folder.recipe) if recipe is None else recipe).get("name")
    return name if isinstance(name, str) and name else folder.id


def label(
    folder: RunFolder,
    *,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    notes: str | None = None,
    name: str | None = None,
) -> Labels:
    """Change tags, notes and name of a run; returns what they are now.

    Args:
        add: tags; one that is there already stays where it is.
        remove: tags; one that is not there is no error. ``add`` wins over it.
        name: that the run has from now on; an empty one brings its recipe's back.

    Raises:
        RunError: not a tag, too many of them, notes or a name that are too long or no text; nothing was changed.
    """
    # Lists: a string is iterable, too, and would become one tag per letter.
    adding, removing = _checked(add), _checked(remove)
    if notes is not None:
        _check_notes(notes)
    if name is not None and (fault := _fault(name)):
        raise RunError(
            f"{name!r} is no name for a run: {fault}; a name is one printable line of at most {LONGEST_NAME} "
            "characters, and an empty one brings the recipe's back"
        )
    try:
        # Two who tag at once both succeed.
        with exclusive(folder.path):
            before = read_labels(folder)
            kept = [tag for tag in before.tags if tag not in removing]
            tags = tuple(dict.fromkeys([*kept, *adding]))
            if len(tags) > MOST_TAGS:
                raise RunError(f"run '{folder.id}' would have {len(tags)} tags; at most {MOST_TAGS}")
            called = before.name if name is None else name.strip()
            after = Labels(tags, before.notes if notes is None else notes, called)
            if after != before:
                write_json(folder.labels, {"tags": list(after.tags), "notes": after.notes, "name": after.name})
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


def _fault(name: object) -> str:
    """Return why a value is no name; empty where it is one."""
    if not isinstance(name, str):
        return "it is no text"
    if odd := next((sign for sign in name.strip() if not sign.isprintable()), ""):
        return f"{odd!r} is not printable"
    longer = len(name.strip()) - LONGEST_NAME
    return f"it is {many(longer, 'character')} too long" if longer > 0 else ""
