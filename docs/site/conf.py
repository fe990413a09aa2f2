"""Sphinx's settings of the site that ``docs/site.py`` lays out."""

from __future__ import annotations

from sphinx.application import Sphinx

from workbench import __version__

project = "workbench"
release = __version__
extensions = [
    "myst_nb",  # Markdown and notebooks, with the outputs that they hold
    "sphinx.ext.autodoc",  # the reference, from docstrings
    "sphinx.ext.napoleon",  # whose sections are Google's
    "sphinx_copybutton",
]
html_theme = "furo"
html_title = "workbench"
html_static_path: list[str] = []
html_show_copyright = False
exclude_patterns = ["README_files"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}

nb_execution_mode = "off"
myst_heading_anchors = 3
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_links_external_new_tab = False
# Widgets stand in the notebooks as pictures and text; Plotly's figures are drawn by its own script where there is one.
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
suppress_warnings = [
    "mystnb.unknown_mime_type",  # widgets, whose text is beside them
    "misc.highlighting_failure",  # formulas in plain text
]


def setup(app: Sphinx) -> None:
    """Let a property's docstring keep its first words, which Napoleon would take for a type where a colon ends them."""

    def told(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
        if what == "property" and lines:
            lines[0] = lines[0].replace(": ", " \N{EN DASH} ", 1)

    app.connect("autodoc-process-docstring", told, priority=400)
