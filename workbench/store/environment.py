"""What a run wrote down about where it trains. Standard library only."""

from __future__ import annotations

from typing import Any

from workbench.base.text import plain

LONGEST_SHOWN = 80


class Environment(dict[str, Any]):
    """Versions, device, measured rates and data of a run: a dict that shows itself without its long parts.

    Example:
        >>> Environment(cores=2, packages=["numpy"] * 100)
        {'cores': 2,
         'packages': <100 entries>}
    """

    def __repr__(self) -> str:
        return "{" + ",\n ".join(f"{key!r}: {_short(value)}" for key, value in self.items()) + "}"


def _short(value: Any) -> str:
    text = repr(value)
    if len(text) <= LONGEST_SHOWN:
        return text
    return f"<{len(value)} entries>" if isinstance(value, dict | list) else plain(text, LONGEST_SHOWN)
