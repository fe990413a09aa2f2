"""``workbench send``: runs in the files of other tools."""

from __future__ import annotations

import json
import sys

from workbench.base.text import plain_lines
from workbench.bridges.bridge import TOOLS, send
from workbench.cli.verbs import Parser
from workbench.client.run import Run


def main(argv: list[str]) -> int:
    """Send runs to a tool; Ctrl-C ends the following alone.

    Raises:
        WorkbenchError: no such run or tool, its package is missing, or the folder cannot be used.
    """
    text = "write what runs have recorded in the files of another tool; again: add what is new"
    parser = Parser(prog="workbench send", description=text)
    parser.take("run RUN", "ids or unique prefixes of them, names, or run folders", nargs="+")
    parser.take("--to TOOL", ", ".join(TOOLS), required=True, choices=TOOLS)
    parser.take("--folder DIR", "of the tool (default: a folder of its name here)")
    parser.take("--follow", "go on until the run has ended; of one run")
    parser.take("--json", "print one JSON object and nothing else on stdout")
    parser.take("--runs DIR", "the runs folder (else $WORKBENCH_RUNS, else ./runs)")
    options = parser.parse_args(argv)
    if options.follow and len(options.run) > 1:
        parser.error("--follow takes one run; start one command for each")
    runs = [Run(each, options.runs) for each in options.run]
    opened_by, folder = "", ""
    for run in runs:
        try:
            path, opened_by = send(run, options.to, options.folder, follow=options.follow, said=_said)
        except KeyboardInterrupt:
            print(f"\nrun '{run.id}' is {run.status}; what it had recorded so far is sent", file=sys.stderr)
            return 1
        folder = str(path)
        if not options.json:
            print(plain_lines(f"sent {run.id} to {folder}"))
    found = {"runs": [run.id for run in runs], "to": options.to, "folder": folder, "opened_by": opened_by}
    print(json.dumps(found) if options.json else plain_lines(f"open it with: {opened_by}"))
    return 0


def _said(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
