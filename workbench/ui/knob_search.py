"""Finding a knob among hundreds: the words of a search, and the knobs that another choice would bring."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.choices.choice import registry


def words_of(text: str) -> list[str]:
    """A search as lower-case words, all of which must be found; ``_`` and ``.`` separate as blanks do."""
    return text.lower().replace("_", " ").replace(".", " ").split()


def elsewhere(words: list[str], chosen: Mapping[str, str], most: int = 6) -> list[str]:
    """Knobs of choices that are not chosen now, as ``theta (depth: progressive_drop)``.

    Args:
        words: as :func:`words_of` gives them; nothing is found without any.
        chosen: kind by axis.
        most: how many are told.

    Example:
        >>> elsewhere(["theta"], {"depth": "full"})
        ['theta (depth: progressive_drop)']
    """
    homes: dict[tuple[str, str], list[str]] = {}
    for axis, kind in chosen.items():
        for other, model in registry(axis).items():
            for name, info in model.model_fields.items():
                text = f"{name} {info.description or ''}".replace("_", " ").lower()
                if other != kind and name != "kind" and words and all(word in text for word in words):
                    homes.setdefault((name, axis), []).append(other)
    found = [f"{name.replace('_', ' ')} ({axis}: {', '.join(kinds[:4])})" for (name, axis), kinds in homes.items()]
    return found[:most] + ([f"and {len(found) - most} more"] if len(found) > most else [])
