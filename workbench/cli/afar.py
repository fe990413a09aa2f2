"""``workbench follow`` and ``workbench publish``: runs whose folder is not shared. Imports no torch."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from workbench.base.errors import RunError

EVERY = 2.0


def add(verbs: Any, verb: Callable[..., Any], number: Callable[..., Any]) -> None:
    """Add the verbs to a command line.

    Args:
        verb: makes a parser. number: a reader of numbers.
    """
    text = "copy a run from elsewhere into the runs folder as it goes on, and take requests back; prints its id"
    follow = verb(verbs, "follow", "afar:follow", text)
    follow.take("url URL|RUN", "ssh://host/path/RUN, s3://bucket/RUN, file:///path/RUN, ...; with --end a run's id")
    follow.take("--checkpoints", "copy the newest checkpoint, too")
    text = "copy a run to a bucket as it goes on, for others to follow, and take requests from there; prints its URL"
    publish = verb(verbs, "publish", "afar:publish", text)
    publish.take("run RUN", "a run id, a unique prefix of one, a name, or a run folder")
    publish.take("url URL", "of a folder of runs, such as s3://bucket/runs", nargs="?")
    for parser in (follow, publish):
        parser.take("--every SECONDS", "between two looks (default 2)", type=number("0.1 to 5"), default=EVERY)
        parser.take("--end", "end the copying; the run goes on")


def follow(options: argparse.Namespace) -> int:
    """Follow a run, or end that."""
    from workbench.client.afar import end_copying, follow
    from workbench.client.run import Run

    if options.end:
        return _ended(options, end_copying(Run(_here(options), options.runs)))
    run = follow(options.url, options.runs, every=options.every, checkpoints=options.checkpoints)
    print(json.dumps({"run": run.id, "url": run.state.afar, "status": run.status}) if options.json else run.id)
    return 0


def publish(options: argparse.Namespace) -> int:
    """Publish a run, or end that.

    Raises:
        RunError: no URL.
    """
    from workbench.client.afar import end_copying, publish
    from workbench.client.run import Run

    run = Run(options.run, options.runs)
    if options.end:
        return _ended(options, end_copying(run))
    if options.url is None:
        raise RunError("publish needs the URL of a folder of runs, for example s3://bucket/runs")
    url = publish(run, options.url, every=options.every)
    print(json.dumps({"run": run.id, "url": url}) if options.json else url)
    return 0


def _here(options: argparse.Namespace) -> str:
    """Return the id of the copy: its URL would be followed anew."""
    return str(options.url).rstrip("/").rpartition("/")[2]


def _ended(options: argparse.Namespace, ended: bool) -> int:
    text = "the copying has ended; the run goes on" if ended else "nothing copies it"
    print(json.dumps({"ended": ended}) if options.json else text)
    return 0
