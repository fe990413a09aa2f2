"""``workbench engines``: the environments of engines that need a Python of their own."""

from __future__ import annotations

import argparse
import json
import sys

from workbench.base.errors import EngineError, unknown
from workbench.choices.choice import registry
from workbench.choices.execution.environment import STEPS, EngineEnvironment


def environments() -> dict[str, EngineEnvironment]:
    """By the engine's name, of the engines that do not train in this Python."""
    found = {kind: choice.environment for kind, choice in registry("execution").items()}  # type: ignore[attr-defined]
    return {kind: environment for kind, environment in found.items() if environment is not None}


def engines(options: argparse.Namespace) -> int:
    """List, install or remove.

    Raises:
        EngineError: no such engine, or it cannot be installed or removed; the message says why and the way out.
    """
    if options.action == "list":
        return _list(list(environments()) if options.engine is None else [options.engine], options.json)
    if options.engine is None:
        raise EngineError(f"which engine? `workbench engines {options.action} {next(iter(environments()))}`")
    environment = _named(options.engine)
    if options.action == "remove":
        removed = environment.remove()
        answer = f"engine '{environment.name}' is removed" if removed else f"engine '{environment.name}' is not there"
        print(json.dumps({"name": environment.name, "removed": removed}) if options.json else answer)
        return 0
    _install(environment, options.python, quiet=options.json)
    return _list([environment.name], options.json)


def _named(name: str) -> EngineEnvironment:
    found = environments()
    if name not in found:
        hint = "an engine that trains in this Python needs none" if name in registry("execution") else ""
        raise EngineError(unknown("engine with an environment", name, found, hint))
    return found[name]


def _list(names: list[str], as_json: bool) -> int:
    found = [_named(name).describe() for name in names]
    if as_json:
        print(json.dumps({"engines": found}))
        return 0
    for each in found:
        print(f"{each['name']}: {each['state']}")
        if each["folder"]:
            print(f"  {each['folder']}, {each['bytes'] / 2**30:.1f} GiB, Python {each['python']}")
        print(f"  {', '.join(each['packages'])}")
    return 0


def _install(environment: EngineEnvironment, python: str | None, *, quiet: bool) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    columns = (
        TextColumn("{task.fields[step]}"),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        # What pip or the compiler says just now; cut to the terminal, never wrapped.
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)),
    )
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, disable=quiet) as progress:
        task = progress.add_task("", total=len(STEPS), step=STEPS[0])

        def say(done: int, line: str) -> None:
            progress.update(task, completed=done, description=line, step=STEPS[min(done, len(STEPS) - 1)])

        environment.install(say, python)
