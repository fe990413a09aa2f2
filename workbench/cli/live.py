"""A run in the terminal: a bar with loss and speed where somebody looks, plain lines where nobody does."""

from __future__ import annotations

import sys
import time

from workbench.printable import plain
from workbench.runs.run import Run
from workbench.runs.state import FINAL, RunState, actual_status, message_of, read_state

POLL_SECONDS, LINE_SECONDS = 0.2, 10.0


def follow(run: Run) -> None:
    """Show a run's progress on stderr until it ends."""
    # Progress goes to stderr, so that stdout holds nothing but the result.
    if sys.stderr.isatty():
        _follow_bar(run)
    else:
        _follow_lines(run)


def reading_text(state: RunState, status: str) -> str:
    """Loss, held-out loss and speed of a reading of the state; what it is doing, when it says so."""
    parts = [f"step {state.step:,}"]
    if state.loss is not None:
        parts.append(f"loss {state.loss:.3f}")
    if state.heldout_loss is not None:
        parts.append(f"held-out {state.heldout_loss:.3f}")
    if state.tokens_per_second:
        parts.append(f"{state.tokens_per_second:,.0f} tokens/s")
    if message := message_of(state, status):
        parts.append(plain(message, 200))
    return "  ".join(parts)


def _follow_bar(run: Run) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    columns = (TextColumn("{task.fields[status]:<9}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    # A name or message is data: it must not be read as markup.
    # One line also where the terminal is narrow: a bar that wraps is drawn again below itself.
    text_column = TextColumn("{task.fields[text]}", markup=False, table_column=Column(no_wrap=True, ratio=1))
    with Progress(*columns, text_column, console=Console(stderr=True)) as bar:
        task = bar.add_task(run.id, total=1.0, status="starting", text="")
        while True:
            state = read_state(run.folder)
            status = actual_status(run.folder, state)
            bar.update(task, completed=state.progress, status=status, text=reading_text(state, status))
            if status in FINAL:
                return
            time.sleep(POLL_SECONDS)


def _follow_lines(run: Run) -> None:
    last, printed_at = "", 0.0
    while True:
        state = read_state(run.folder)
        status = actual_status(run.folder, state)
        # One line when what it does changes, else one every few seconds: a log stays readable.
        change = status + message_of(state, status)
        if change != last or time.monotonic() - printed_at >= LINE_SECONDS:
            text = reading_text(state, status)
            print(f"{run.id}  {status:<9} {state.progress:4.0%}  {text}", file=sys.stderr, flush=True)
            last, printed_at = change, time.monotonic()
        if status in FINAL:
            return
        time.sleep(POLL_SECONDS)
