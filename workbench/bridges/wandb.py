"""Weights & Biases, offline: files that `wandb sync` sends when you say so. Nothing leaves this machine before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from workbench.bridges.bridge import Bridge, Sent, scores_of
from workbench.bridges.source import Row
from workbench.store.folder import RunFolder
from workbench.store.view import RunView


class Wandb(Bridge):
    """An offline run per call, all with the run's id: `wandb sync` puts them together."""

    needs, extra = ("wandb",), "wandb"

    def __init__(self, folder: Path, run: RunFolder, view: RunView, sent: Sent) -> None:
        super().__init__(folder, run, view, sent)
        import wandb

        # Nothing of this process belongs into a run that another one trained: no console, host, code or packages.
        quiet = wandb.Settings(
            silent=True, console="off", disable_code=True, disable_git=True, save_code=False, x_disable_meta=True,
            x_disable_stats=True, x_disable_machine_info=True, x_save_requirements=False, reinit="create_new",
        )  # fmt: skip
        self._run = wandb.init(
            mode="offline", dir=str(folder), project="workbench", id=view.id, name=view.name, config=view.recipe,
            tags=view.labels.tags, notes=view.labels.notes, resume="allow", settings=quiet,
        )  # fmt: skip

    def add(self, rows: Iterator[Row]) -> int:
        """Return log a row per record, at its optimizer step."""
        count = 0
        for row in self.fresh(rows):
            count += len(row.values)
            self._run.log({**row.values, "_timestamp": row.time}, step=row.step)
        return count

    def end(self, view: RunView) -> None:
        """Write the newest scores and the status into the summary: W&B's steps cannot go back to those of a score."""
        latest = {name: value for row in scores_of(view) for name, value in row.values.items()}
        self._run.summary.update(latest | {"status": view.status})
        self._run.finish(exit_code=int(view.status in ("failed", "lost")))

    @property
    def opened_by(self) -> str:
        """The command that shows it here; `wandb sync` sends it."""
        return f"wandb leet {self.folder / 'wandb'} (here), or wandb sync {self.folder / 'wandb'}/offline-run-*"
