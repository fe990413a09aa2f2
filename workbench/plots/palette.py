"""Names made safe to draw, and dashes as Plotly takes them. What is drawn in which colour: workbench/quantities.py."""

from __future__ import annotations

import html
from collections.abc import Sequence

from workbench.printable import LONGEST_NAME, plain


def plotly_dash(dash: Sequence[int]) -> str:
    """A dash of :mod:`workbench.quantities` for Plotly.

    Example:
        >>> plotly_dash((9, 4)), plotly_dash(())
        ('9px,4px', 'solid')
    """
    return ",".join(f"{pixels}px" for pixels in dash) or "solid"


def plotly_text(text: object, longest: int = LONGEST_NAME) -> str:
    """``plain`` for Plotly, which reads a subset of HTML in names, titles and annotations.

    Example:
        >>> plotly_text("<b>x")
        '&lt;b&gt;x'
    """
    return html.escape(plain(text, longest), quote=False)


def matplotlib_text(text: object, longest: int = LONGEST_NAME) -> str:
    """``plain`` for matplotlib, which reads ``$...$`` as mathematics and hides legend entries that start with ``_``."""
    line = plain(text, longest).replace("\\", "/").replace("$", r"\$")
    return f" {line}" if line.startswith("_") else line
