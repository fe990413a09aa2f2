"""Runs in the terminal: a bar with loss and speed where somebody looks, plain lines where nobody does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from workbench.base.text import plain, share_done
from workbench.client.run import Run
from workbench.client.summary import message_of
from workbench.store.measured import progress_parts
from workbench.store.state import FINAL

if TYPE_CHECKING:
    from rich.console import Console

POLL_SECONDS, LINE_SECONDS = 0.2, 10.0


@dataclass(frozen=True)
class Reading:
    """State of a run now; ``progress`` is 0 to 1."""

    run: Run
    status: str
    progress: float
    doing: str
    text: str


def follow(*runs: Run, console: Console | None = None, enough: Callable[[], bool] | None = None) -> None:
    """Show progress until all runs have ended, or one has failed or is lost; on stderr unless a console is given.

    Args:
        enough: asked after every look; true ends this while the runs go on.
    """
    # In here, as everything heavy: `workbench runs` must not wait for it. Stdout holds nothing but the result.
    from rich.console import Console

    console = console or Console(stderr=True)
    with ExitStack() as stack:
        show = _bars(runs, console, stack) if console.is_terminal else _lines(console)
        while True:
            readings = [_reading(run) for run in runs]
            show(readings)
            statuses = {reading.status for reading in readings}
            if statuses <= set(FINAL) or statuses & {"failed", "lost"} or (enough and enough()):
                return
            time.sleep(POLL_SECONDS)


def _reading(run: Run) -> Reading:
    state = run.state
    message = message_of(run.folder, state, state.status)
    text = "  ".join(progress_parts({**asdict(state), "message": message}))
    return Reading(run, state.status, state.progress, state.status + message, text)


def _bars(runs: Sequence[Run], console: Console, stack: ExitStack) -> Callable[[Sequence[Reading]], None]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    # A name or message is data: it must not be read as markup.
    # One line also where the terminal is narrow: a bar that wraps is drawn again below itself.
    name = TextColumn("{task.description}", markup=False)
    text = TextColumn("{task.fields[text]}", markup=False, table_column=Column(no_wrap=True, ratio=1))
    state, share = TextColumn("{task.fields[status]:<9}"), TextColumn("{task.fields[share]:>5}")
    columns = (state, BarColumn(), share, TimeElapsedColumn(), text)
    bars = stack.enter_context(Progress(*([name] if len(runs) > 1 else []), *columns, console=console))
    tasks = [bars.add_task(plain(run.name, 16), total=1.0, status="starting", share="", text="") for run in runs]

    def show(readings: Sequence[Reading]) -> None:
        for task, reading in zip(tasks, readings, strict=True):
            called, share = plain(reading.run.name, 16), share_done(reading.progress)
            said, status = reading.text, reading.status
            bars.update(task, description=called, completed=reading.progress, status=status, share=share, text=said)

    return show


def _lines(console: Console) -> Callable[[Sequence[Reading]], None]:
    from rich.text import Text

    last: list[str] = []
    printed: set[str] = set()
    printed_at = 0.0

    def show(readings: Sequence[Reading]) -> None:
        nonlocal last, printed, printed_at
        doing = [reading.doing for reading in readings]
        # Lines when what they do changes, else every few seconds: a log stays readable.
        if doing != last or time.monotonic() - printed_at >= LINE_SECONDS:
            lines = [
                f"{each.run.id}  {each.status:<9} {share_done(each.progress):>5}  {each.text}" for each in readings
            ]
            # A run that waits says the same for minutes.
            for line in lines:
                if line not in printed:
                    console.print(Text(line), soft_wrap=True)
            last, printed, printed_at = doing, set(lines), time.monotonic()

    return show
