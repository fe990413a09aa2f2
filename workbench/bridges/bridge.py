"""``workbench send RUN --to TOOL``: the contract of a bridge, and the loop that feeds one."""

from __future__ import annotations

import importlib.util
import json
import pkgutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from filelock import FileLock, Timeout

from workbench.base.errors import RunError, check_known
from workbench.bridges.source import Row, Source
from workbench.store.evaluations import BITS_PER_BYTE, HELDOUT_LOSS
from workbench.store.find import find, typed
from workbench.store.folder import RunFolder, read_object, write_json
from workbench.store.view import RunView

TOOLS = {
    "tensorboard": "workbench.bridges.tensorboard:TensorBoard",
    "wandb": "workbench.bridges.wandb:Wandb",
    "mlflow": "workbench.bridges.mlflow:Mlflow",
    "trackio": "workbench.bridges.trackio:Trackio",
    "csv": "workbench.bridges.tables:Csv",
    "parquet": "workbench.bridges.tables:Parquet",
}
FOLLOW_SECONDS = 2.0
"""Between two looks at a run that goes on, and at least ten times as long as the last one computed."""
_NOTES = ".workbench"


@dataclass
class Sent:
    """Notes on what a folder has of a run already, by which a second call adds only what is new.

    Attributes:
        last: last step by name of a series. events: number of events. own: of the tool, such as its id of the run.
    """

    last: dict[str, int] = field(default_factory=dict)
    events: int = 0
    own: dict[str, Any] = field(default_factory=dict)

    def fresh(self, row: Row) -> Row:
        """Return a row without the values that were sent before."""
        values = {name: value for name, value in row.values.items() if row.step > self.last.get(name, -1)}
        self.last.update(dict.fromkeys(values, row.step))
        return row._replace(values=values)

    def cut(self, step: int) -> None:
        """Forget that steps after this one were sent."""
        self.last = {name: min(last, step) for name, last in self.last.items()}


class Bridge(ABC):
    """Writes the rows of one run for one tool.

    Args:
        folder: of the tool. run: its folder. view: the run, without telemetry. sent: what the folder has already.

    Attributes:
        needs: modules that must be there. extra: of this package, which brings them.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""

    def __init__(self, folder: Path, run: RunFolder, view: RunView, sent: Sent) -> None:
        self.folder, self.run, self.view, self.sent = folder, run, view, sent

    @abstractmethod
    def add(self, rows: Iterator[Row]) -> int:
        """Write rows whose steps never fall; returns how many values were new, all of them on disk."""

    def rewind(self, step: int) -> None:  # noqa: B027  (what was sent stays, unless a tool can take it back)
        """Take back what was sent beyond a step, where the tool can: a resumed run repeats it."""

    @abstractmethod
    def end(self, view: RunView) -> None:
        """Write scores and how the run stands, and release the files."""

    @property
    @abstractmethod
    def opened_by(self) -> str:
        """The command that opens what was written."""

    def fresh(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield what the folder does not have, rows without a new value left out."""
        return (row for row in map(self.sent.fresh, rows) if row.values)


def send(
    run: Any, to: str, folder: str | Path | None = None, *, follow: bool = False, said: Callable[[str], None] = print,
    runs_dir: str | Path | None = None,
) -> tuple[Path, str]:  # fmt: skip
    """Write what a run has recorded in the files of another tool; a second call adds what is new.

    Args:
        run: a :class:`workbench.client.run.Run`, or its id, name or folder.
        to: ``tensorboard``, ``wandb`` (offline), ``mlflow``, ``trackio``, ``csv`` or ``parquet``.
        folder: of the tool; None: one of its name in the working folder.
        follow: go on until the run has ended. said: called with a line whenever it has grown by then.
        runs_dir: the runs folder of an id; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Returns:
        The folder, and a command that opens what is in it.

    Raises:
        RunError: no such run or tool, its package is missing, another process sends this run there, or the folder
            is a file.

    Example:
        >>> wb.send(run, to="tensorboard", follow=True)  # doctest: +SKIP
    """
    found = getattr(run, "folder", None)
    own = found if isinstance(found, RunFolder) else find(*typed(run, runs_dir))
    check_known("to", to, TOOLS, RunError)
    tool: type[Bridge] = pkgutil.resolve_name(TOOLS[to])
    if lacking := [name for name in tool.needs if importlib.util.find_spec(name) is None]:
        raise RunError(f"to '{to}' needs {' and '.join(lacking)}: pip install 'workbench[{tool.extra}]'")
    target = Path(folder or to).expanduser().absolute()
    notes = target / _NOTES / f"{own.id}.{to}.json"
    try:
        notes.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(notes.with_suffix(".lock"), timeout=0):
            return target, _fed(tool, own, target, notes, said if follow else None)
    except Timeout:
        raise RunError(f"another process sends run '{own.id}' to '{target}'; wait until it has ended") from None
    except (FileExistsError, NotADirectoryError):
        raise RunError(f"'{target}' is a file; give a folder, which is made if it is missing") from None


def _fed(tool: type[Bridge], run: RunFolder, target: Path, notes: Path, said: Callable[[str], None] | None) -> str:
    """Send once, or with ``said`` until the run has ended."""
    sent = Sent(**read_object(notes))
    source = Source(run)
    bridge = tool(target, run, RunView.read(run, telemetry=False), sent)
    try:
        while True:
            began = time.thread_time()
            ended, rows = source.rows()
            if source.rewound is not None:
                bridge.rewind(source.rewound)
            if (count := bridge.add(rows)) and said:
                said(f"{count:,} values, up to step {max(sent.last.values(), default=0):,}")
            write_json(notes, vars(sent))
            if ended or not said:
                break
            time.sleep(max(FOLLOW_SECONDS, 10 * (time.thread_time() - began)))
    finally:
        # Also after a Ctrl-C: what came so far can be opened.
        bridge.end(RunView.read(run, telemetry=False))
        write_json(notes, vars(sent))
    return bridge.opened_by


def scores_of(view: RunView) -> Iterator[Row]:
    """Yield the scores of a run by step, as ``score/blimp``; held-out losses stand among its scalars."""
    for step, scores in view.scores.items():
        known = {name: score.value for name, score in scores.items() if name not in (HELDOUT_LOSS, BITS_PER_BYTE)}
        yield Row(step, 0.0, {f"score/{name}": value for name, value in known.items() if value is not None})


def recipe_text(view: RunView) -> str:
    """Return the recipe as JSON, indented."""
    return json.dumps(view.recipe, indent=1, ensure_ascii=False)
