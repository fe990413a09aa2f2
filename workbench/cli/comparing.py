"""``workbench compare``: runs side by side."""

from __future__ import annotations

import argparse
import json
import sys

from workbench import compare as side_by_side
from workbench.base.text import plain_lines


def compare(options: argparse.Namespace) -> int:
    """Print what the runs achieved and the knobs in which they differ.

    Raises:
        RunError: there is no such run, or the report could not be written.
    """
    found = side_by_side(*options.run, runs_dir=options.runs)
    report = None if options.report is None else str(found.report(options.report))
    if options.json:
        print(json.dumps({"runs": found.rows, "knobs": found.knobs, "report": report}))
    else:
        print(plain_lines(repr(found)))
        if report:
            print(f"report: {report}", file=sys.stderr)
    return 0
