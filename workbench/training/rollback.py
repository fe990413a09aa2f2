"""Go back to the last checkpoint, at a lower rate, when a loss is not finite: as often as ``budget.rollbacks`` says."""

from __future__ import annotations

from collections.abc import Callable

from workbench.store.checkpoints import has_checkpoint
from workbench.telemetry.streams import data_of, read_events
from workbench.training.recorder import NotFinite
from workbench.training.session import Session

RATE = 0.5
"""Factor on the launched rate: to repeat the steps as they were would end as before."""


def run(session: Session, again: Callable[[], Session]) -> None:
    """Train to the end, and after a loss that is not finite from the last checkpoint on.

    Args:
        again: resumes the run in a new session.

    Raises:
        NotFinite: no rollback is left, there is no checkpoint, or several processes train the run.
    """
    while True:
        try:
            session.run()
            return
        except NotFinite as error:
            folder, allowed = session.folder, session.launched.budget.rollbacks
            done = 1 + sum("rollback" in data_of(event) for event in read_events(folder.telemetry))
            if done > allowed or session.ranks.size > 1 or not has_checkpoint(folder.checkpoints):
                raise
            why = str(error).partition(";")[0]
        session = again()
        step, rate = session.training.progress.step, session.launched.optimizer.lr * RATE**done
        text = f"optimizer.lr {session.training.recipe.optimizer.lr:g} -> {rate:g}"
        session.turn("optimizer.lr", rate, session.training.recipe.with_(optimizer={"lr": rate}), text)
        session.status.write(repeats=False)
        said = f"{why}; back to step {step:,}, {text} (rollback {done} of {allowed})"
        session.writer.event(step, "knob", said, path="optimizer.lr", value=rate, rollback=done)
