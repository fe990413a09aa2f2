"""``wb.follow``: a run whose folder is not shared, seen and steered from here; ``publish`` brings one to a bucket."""

from __future__ import annotations

from pathlib import Path

from workbench.client.following import EVERY_SECONDS, end, followed, published
from workbench.client.run import Run


def follow(
    url: str, runs_dir: str | Path | None = None, *, every: float = EVERY_SECONDS, checkpoints: bool = False
) -> Run:
    """Follow a run whose folder is elsewhere; returns a run of this runs folder that is watched and steered as any.

    A process copies what is new into this runs folder until the run has ended, and takes requests (pause, stop, set)
    back. While the folder cannot be reached the run says since when there is no news. ``Run(url)`` does the same.

    Args:
        url: of the run's folder: ``ssh://host/path/RUN``, ``s3://bucket/runs/RUN``, ``file:///path/RUN``, or another
            protocol of fsspec. Logins come from SSH's agent, the environment or fsspec's configuration.
        runs_dir: the runs folder of the copy; else ``$WORKBENCH_RUNS``, else ``./runs``.
        every: seconds between two looks, 0.1 to 5.
        checkpoints: copy the newest checkpoint, too; else the copy can be exported or scored only where the run is.

    Raises:
        RunError: no such protocol, its package is missing, the login was refused, it cannot be reached, there is no
            run, or a run of its id is here already.

    Example:
        >>> follow("ssh://cluster/scratch/ada/runs/20260131-081500-mine-0a1b2c-3d4e").watch()  # doctest: +SKIP
    """
    return Run(followed(url, runs_dir, every=every, checkpoints=checkpoints))


def publish(run: Run, url: str, *, every: float = EVERY_SECONDS) -> str:
    """Copy a run to a store that knows no appends, such as a bucket; returns the URL to follow it by.

    Args:
        run: that trains here, or on a disk which is seen from here.
        url: of a folder of runs there. every: seconds between two looks, 0.1 to 5.

    Raises:
        RunError: it cannot be written to, or it is published already.
    """
    return published(run.folder, url, every=every)


def end_copying(run: Run) -> bool:
    """End the process that copies a run from elsewhere or to there; returns whether there was one."""
    return end(run.folder)
