"""``workbench rename | tag | note | delete | restore | trash``: what people do beside training. No torch."""

from __future__ import annotations

import argparse
import json
import sys

from workbench.base.errors import RunError
from workbench.base.text import plain, plain_lines
from workbench.client.run import Run
from workbench.store.labels import label, name_of, read_labels
from workbench.store.trash import delete as move_to_trash
from workbench.store.trash import empty, trash_folder, trashed
from workbench.store.trash import restore as bring_back


def rename(options: argparse.Namespace) -> int:
    """Give a run another name; without one, print what it is called."""
    run = Run(options.run, options.runs)
    if options.name is not None:
        run.name = options.name
    print(json.dumps({"run": run.id, "name": run.name}) if options.json else plain_lines(run.name))
    return 0


def tag(options: argparse.Namespace) -> int:
    """Add (``+a`` or ``a``) and remove (``-a``) tags; without any, print those there are."""
    run = Run(options.run, options.runs)
    remove = [text[1:] for text in options.changes if text.startswith("-")]
    add = [text.removeprefix("+") for text in options.changes if not text.startswith("-")]
    tags = label(run.folder, add=add, remove=remove).tags
    print(json.dumps({"run": run.id, "tags": tags}) if options.json else " ".join(tags))
    return 0


def note(options: argparse.Namespace) -> int:
    """Replace the notes of a run; without text, print them."""
    run = Run(options.run, options.runs)
    labels = read_labels(run.folder) if options.text is None else label(run.folder, notes=options.text)
    print(json.dumps({"run": run.id, "notes": labels.notes}) if options.json else plain_lines(labels.notes))
    return 0


def delete(options: argparse.Namespace) -> int:
    """Move runs to the trash; asks first on a terminal.

    Raises:
        RunError: not confirmed where nobody can be asked, or one of the runs is alive; those before it are deleted.
    """
    found = [_run(run, options.runs) for run in options.run]
    names = ", ".join(f"{run.id} ({plain(run.name)})" for run in found)
    if not _confirmed(options, f"Move {names} to the trash?"):
        print("nothing was deleted", file=sys.stderr)
        return 1
    for run in found:
        move_to_trash(run.folder)
        if not options.json:
            print(f"deleted {run.id}; `workbench restore {run.id}` brings it back")
    if options.json:
        print(json.dumps({"deleted": [run.id for run in found]}))
    return 0


def _run(which: str, runs_dir: str | None) -> Run:
    """Return the run to delete; the error for a race, sweep or tuning says how to find its runs."""
    try:
        return Run(which, runs_dir)
    except RunError:
        # Here: it loads what races and sweeps need.
        from workbench.experiments.open import matching

        if not (found := matching(which, runs_dir)):
            raise
        folder = found[0].folder
        raise RunError(
            f"'{plain(which)}' is a {folder.noun}, and what is deleted is runs: "
            f"`workbench runs --tag {folder.tag}` lists those that it has"
        ) from None


def restore(options: argparse.Namespace) -> int:
    """Bring a run back from the trash."""
    folder = bring_back(options.run, options.runs)
    print(json.dumps({"run": folder.id, "folder": str(folder.path)}) if options.json else f"restored {folder.id}")
    return 0


def trash(options: argparse.Namespace) -> int:
    """List the deleted runs, or remove them for good."""
    found = trashed(options.runs)
    if options.empty:
        if found and not _confirmed(options, f"Remove {len(found)} runs in {trash_folder(options.runs)} for good?"):
            print("nothing was removed", file=sys.stderr)
            return 1
        removed = empty(options.runs)
        print(json.dumps({"removed": removed}) if options.json else f"removed {removed} runs")
        return 0
    if options.json:
        print(json.dumps({"runs": [{"run": folder.id, "name": name_of(folder)} for folder in found]}))
    else:
        lines = [f"{folder.id}  {plain(name_of(folder))}" for folder in found]
        print("\n".join(lines) or "the trash is empty")
    return 0


def _confirmed(options: argparse.Namespace, question: str) -> bool:
    if options.yes:
        return True
    # A script must say so itself: a prompt that nobody sees would make it hang.
    if options.json or not sys.stdin.isatty():
        raise RunError(f"{question} There is no terminal to ask on; pass --yes")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
