"""``workbench prepare``: the text of a recipe made into tokens, and what its preparation steps did."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from workbench import __version__
from workbench.base.text import aligned, many, plain
from workbench.cli.training import recipe_from

MOST_LINES = 20


def prepare(options: argparse.Namespace) -> int:
    """Prepare the text, print a line for each step, or one JSON object.

    Raises:
        RecipeError: the recipe is wrong.
        DataError: the text cannot be read, or a step lacks what it needs.
    """
    from workbench.choices.data.preparation import preparation_of

    if options.datatrove:
        return _at_scale(options)
    found = preparation_of(recipe_from(options), say=lambda line: print(line, file=sys.stderr))
    gone = [] if options.why is None else list(found.removed(options.why))
    if options.html:
        from workbench.plots.page import experiment_page, write_page

        page = experiment_page("Preparation", str(found).splitlines(), found._repr_html_(), __version__, {})
        print(f"page: {write_page(options.html, page)}", file=sys.stderr)
    if options.json:
        print(json.dumps(found.to_dict() | ({} if options.why is None else {"removed": gone})))
        return 0
    print(found)
    if options.why is not None:
        rows = [
            (f"{each['number']}", plain("/".join(each["sources"]), 40), each["kind"], each["reason"], each["detail"],
             plain(each["text"], 60))
            for each in gone
        ]  # fmt: skip
        print(f"{many(len(gone), 'removed document')} with '{plain(options.why)}'")
        if gone:
            print(aligned([("document", "source", "step", "reason", "detail", "text"), *rows[:MOST_LINES]]))
        if len(gone) > MOST_LINES:
            print(f"and {len(gone) - MOST_LINES:,} more; --json prints all")
    return 0


def _at_scale(options: argparse.Namespace) -> int:
    from workbench.choices.data.at_scale import prepare_at_scale
    from workbench.choices.data.workers import available_cores

    data, cores = recipe_from(options).data, available_cores()
    folder = prepare_at_scale(data, Path(options.datatrove), cores, cores, lambda line: print(line, file=sys.stderr))
    ahead = f"train on it with --set 'data.paths={json.dumps([str(folder)])}' --set 'data.steps=[]'"
    print(json.dumps({"documents": str(folder)}) if options.json else ahead)
    return 0
