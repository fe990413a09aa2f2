"""A page with tables and figures in one HTML file, readable offline and for good."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import plotly.io
from plotly.offline import get_plotlyjs

from workbench.base.files import write_bytes
from workbench.base.text import plain
from workbench.plots.figure import template
from workbench.plots.forecast_page import STYLE
from workbench.plots.tables import escape

if TYPE_CHECKING:
    import plotly.graph_objects as go

_HERE = Path(__file__).parent


def page_html(title: str, body: str, figures: Mapping[str, go.Figure]) -> str:
    """Return a page with everything in it.

    Args:
        title: plain text. body: HTML, from the header to the footer. figures: by ``place/variant``, see :func:`place`.
    """
    return "\n".join(
        (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # Without an icon of its own a browser asks the server for one.
            f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>',
            f"<style>\n{(_HERE / 'report.css').read_text(encoding='utf-8')}{STYLE}</style>\n</head>\n<body>\n{body}",
            f'<script type="application/json" id="figures">{_figures_json(figures)}</script>',
            f"<script>{get_plotlyjs()}</script>",
            f"<script>\n{(_HERE / 'report.js').read_text(encoding='utf-8')}</script>\n</body>\n</html>\n",
        )
    )


def experiment_page(name: str, lines: Sequence[str], body: str, version: str, figures: Mapping[str, go.Figure]) -> str:
    """Return the page of a race, sweep or tuning.

    Args:
        name, lines: plain text, above the rest. body: HTML between header and footer. version: that began it.
        figures: as :func:`page_html` takes them.
    """
    title, head = plain(name), "</p><p>".join(map(escape, lines))
    return page_html(
        title,
        f"<header><h1>{escape(title)}</h1><p>{head}</p></header>\n<main>{body}</main>\n"
        f'<footer><p class="quiet">workbench {escape(version)}</p></footer>',
        figures,
    )


def write_page(path: str | Path, page: str) -> Path:
    """Write a page whole or not at all; returns its path.

    Raises:
        OSError: the file cannot be written; an older page there is untouched.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, page.encode())
    return path


def place(name: str, variants: dict[str, str], caption: str) -> str:
    """Return where one figure stands, with a choice of its variants (name -> words)."""
    options = "".join(f'<option value="{escape(value)}">{escape(title)}</option>' for value, title in variants.items())
    return (
        f'<figure><div class="controls"><label>show <select>{options}</select></label></div>'
        f'<div data-figure="{name}" role="img" aria-label="{escape(caption)}"></div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _figures_json(figures: Mapping[str, go.Figure]) -> str:
    """Return figures and templates as JSON that no HTML parser can leave: ``<``,
    ``>`` and ``&`` are written as escapes.
    """
    # Both, since the page follows the colour scheme of whoever reads it.
    templates = {"light": template(), "dark": template(dark=True)}
    for figure in figures.values():
        figure.layout.template = None  # the page puts in the one that fits
    whole = {
        "figures": {name: json.loads(plotly.io.to_json(figure)) for name, figure in figures.items()},
        "templates": {name: value.to_plotly_json() for name, value in templates.items()},
    }
    # Names of runs are in here, and an HTML parser ends a script at the first "</script", quoted or not.
    text = json.dumps(whole, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
