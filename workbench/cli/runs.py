"""``workbench runs`` and the verbs that steer, export and report one run. Imports no torch."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.base.assignments import assignment
from workbench.base.errors import RunError
from workbench.base.text import aligned, plain, plain_lines, utc
from workbench.cli.training import summary as summary_of_result
from workbench.client.knob_checks import check_knob
from workbench.client.run import Run
from workbench.client.run_list import runs as list_runs
from workbench.client.summary import summary
from workbench.plots.terminal import follow
from workbench.store.attempts import lost_event
from workbench.store.folder import read_object
from workbench.store.state import FINAL, read_state
from workbench.telemetry.profile_table import profile_line, profile_table
from workbench.telemetry.streams import read_events

OWN_MODEL_TYPE = "workbench"
"""In a model's ``config.json``: transformers learns it by an import. As in :mod:`workbench.transformers`."""


def runs(options: argparse.Namespace) -> int:
    """List the runs, newest first."""
    if options.limit < 0:
        raise RunError(f"--limit {options.limit} is negative; 0 lists all")
    if options.runs is not None and not Path(options.runs).expanduser().is_dir():
        what = "a file, no folder of runs" if Path(options.runs).expanduser().exists() else "no folder"
        raise RunError(f"--runs '{options.runs}' is {what}; the first run that is launched into one makes it")
    found = list_runs(options.runs)
    if options.tag:
        found = found.tagged(*options.tag)
    shown = found[: options.limit or None]
    if options.json:
        print(json.dumps({"folder": str(found.root), "count": len(found), "runs": [_as_data(run) for run in shown]}))
        return 0
    # A pipe has no width: programs read one line a run.
    print(found.text(options.limit or None, shutil.get_terminal_size().columns if sys.stdout.isatty() else None))
    return 0


def ask(options: argparse.Namespace) -> int:
    """Send a request and wait for the answer.

    Raises:
        TimeoutError: no answer in time; the request stands.
        RunError, RecipeError: the run refused, or `set` names a knob or value that it would refuse.
    """
    run = Run(options.run, options.runs)
    asked = {"run": run.id, "request": options.command}
    if options.command == "profile" and run.status in FINAL and (found := read_object(run.folder.profile)):
        # What was looked into while it trained.
        _print(options, profile_table(found), **asked, state=run.status, answered=True, text=profile_line(found))
        return 0
    arguments = _checked_knob(run, options.assignment) if options.command == "set" else {}
    try:
        if options.command == "resume":
            text = run.resume(options.timeout, take_over=options.take_over)
        else:
            text = run.ask(options.command, options.timeout, take_over=options.take_over, said=_begun, **arguments)
    except TimeoutError as error:
        if not options.json:
            raise
        # The one JSON object on stdout names the run and the request; the handler above knows only the error.
        data = asked | {"state": run.status, "answered": False, "text": str(error)}
        print(json.dumps(data))
        print(f"error: {error}", file=sys.stderr)
        return 1
    _print(options, text, **asked, state=run.status, answered=True, text=text)
    return 0


def _begun(text: str) -> None:
    """Print progress of a request to stderr; the answer alone goes to stdout."""
    print(f"{text} ...", file=sys.stderr, flush=True)


def _checked_knob(run: Run, text: str) -> dict[str, Any]:
    """Return path and value of ``PATH=VALUE``; what the run would refuse is refused here."""
    path, value = assignment(text, "optimizer.lr=1e-4")
    if run.status not in FINAL:
        check_knob(run.folder, path, value)
    return {"path": path, "value": value}


def watch(options: argparse.Namespace) -> int:
    """Follow a run, or the runs of a notebook, until they end; Ctrl-C only ends the watching.

    Raises:
        RunFailed: the run failed or is lost.
    """
    if options.run.endswith(".ipynb"):
        from workbench.cli.headless import watch as watch_notebook

        return watch_notebook(options)
    run = Run(options.run, options.runs)
    try:
        follow(run)
    except KeyboardInterrupt:
        status = run.status
        print(f"\nrun '{run.id}' is {status}" + ("" if status in FINAL else "; it goes on"), file=sys.stderr)
    status = run.status
    if options.json:
        print(json.dumps(run.result.brief))
    elif status in FINAL:
        print(summary_of_result(run, run.outcome()))
    return 1 if status in ("failed", "lost") else 0


def export(options: argparse.Namespace) -> int:
    """Write the model for transformers."""
    run = Run(options.run, options.runs)
    target = run.export(options.target)
    own = read_object(target / "config.json").get("model_type") == OWN_MODEL_TYPE
    needs = "; `import workbench.transformers` before transformers loads it (its README.md says how)" if own else ""
    _print(options, f"exported to {target}{needs}", run=run.id, folder=str(target))
    return 0


def report(options: argparse.Namespace) -> int:
    """Write report.html of a run, a race, a sweep or a tuning."""
    # Slower to import than all that the other verbs need.
    from workbench.experiments.open import held, noun_of

    found = held(options.run, options.runs)
    path = found.report()
    _print(options, str(path), **{noun_of(found): found.id}, report=str(path))
    return 0


def graphs(options: argparse.Namespace) -> int:
    """Print where the files are that the run's engine made of the model.

    Raises:
        RunError: there are none.
    """
    run = Run(options.run, options.runs)
    paths = [str(path) for path in run.graphs]
    if not paths:
        raise RunError(
            f"run '{run.id}' has no graphs: its engine makes none (execution 'onnxruntime' does), or it has not begun"
        )
    _print(options, "\n".join(paths), run=run.id, graphs=paths)
    return 0


def log(options: argparse.Namespace) -> int:
    """Print the last events of the run, then the end of what its process printed; of another process that alone.

    Raises:
        RunError: of less than one line, or no such process.
    """
    if options.lines < 1:
        raise RunError(f"--lines {options.lines} shows nothing; give 1 or more")
    run = Run(options.run, options.runs)
    if options.rank:
        printed = run.tail(options.lines, options.rank)
        _print(options, printed, run=run.id, rank=options.rank, log=printed)
        return 0
    # Of a lost run nobody was there to write down how it ended.
    lost = lost_event(run.folder, read_state(run.folder))
    events = [*read_events(run.folder.telemetry), *([lost] if lost else [])][-options.lines :]
    printed = run.tail(options.lines)
    parts = [aligned([_event_cells(event) for event in events])] if events else []
    if printed.strip():
        parts += ["its process printed:", printed] if events else [printed]
    nothing = f"run '{run.id}' has logged nothing{'' if run.status in FINAL else ' yet'}"
    _print(options, "\n".join(parts) or nothing, run=run.id, events=events, log=printed)
    return 0


def _event_cells(event: Mapping[str, Any]) -> tuple[str, ...]:
    """Return time (UTC), step, kind and text of an event."""
    step, kind, text = (plain(event.get(key, ""), 500) for key in ("step", "kind", "text"))
    return f"{utc(event.get('time'))} UTC", f"step {step}", kind, text


def _as_data(run: Run) -> dict[str, Any]:
    row = summary(run.folder)
    rest = {"name": row["name"], "tags": row["tags"], "notes": row["notes"], "parent": row["parent"]}
    return {"run": run.id, **rest, **asdict(run.state)}


def _print(options: argparse.Namespace, shown: str, /, **data: Any) -> None:
    print(json.dumps(data) if options.json else plain_lines(shown))
