"""The script of a run's Slurm job, on its first node: ``python -m workbench.launchers.slurm_job RUN_FOLDER``.

It starts one process per node with srun, and has Slurm put the job back into its queue where the run gave way. By hand,
since Slurm does so by itself only where it kills a job: one that has ended well before that, with its checkpoint, is
done in Slurm's eyes.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from workbench.base.errors import RunError
from workbench.launchers.giving_way import AGAIN, wait_again
from workbench.launchers.processes import child_environment, module_command
from workbench.launchers.slurm import facts_of
from workbench.store.folder import RunFolder
from workbench.store.reached import tail
from workbench.store.state import read_state, take_lock, write_state

NODE = "workbench.launchers.node"
_LOG_LINES = 10


def main(argv: list[str] | None = None) -> int:
    """Carry a run's job out; returns the exit code."""
    parser = argparse.ArgumentParser(prog="workbench.launchers.slurm_job")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--requeues", type=int, default=0)
    parser.add_argument("--software", default="")
    options = parser.parse_args(argv)
    # Slurm tells all processes of a job; the run's supervisor is one of them, and this one waits for it.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    folder = RunFolder(options.folder.absolute())
    job, count = os.environ["SLURM_JOB_ID"], int(os.environ.get("SLURM_RESTART_COUNT", 0))
    if not folder.recipe.exists():
        print(f"{socket.gethostname()}: there is no run in {folder.path}: it must lie on a disk that all nodes share")
        return 1
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    again = count < options.requeues
    code = subprocess.call(
        [
            "srun",
            f"--nodes={options.nodes}",
            "--ntasks-per-node=1",
            f"--cpus-per-task={os.environ.get('SLURM_CPUS_PER_TASK', '1')}",
            # A node that fails tells the first one, which writes down why, and ends the others.
            "--kill-on-bad-exit=0",
            *module_command(NODE, str(folder.path)),
            f"--nodes={options.nodes}",
            f"--processes={options.processes}",
            f"--meeting=:{port}",
            f"--key={job}-{count}",
            f"--software={options.software}",
            *(["--again"] if again else []),
        ],
        env=child_environment(),
    )
    waits = code == AGAIN and read_state(folder).status == "queued"
    if code and again and not waits:
        with suppress(RunError, OSError):
            waits = read_state(folder).heartbeat_monotonic > 0 and wait_again(folder, "its processes were killed")
    if waits:
        # Unless Slurm, which takes the nodes away, has done so.
        if int(facts_of({"job": job}, fresh=True).get("Restarts", count)) <= count:
            subprocess.run(["scontrol", "requeue", job], check=False)
        return 0
    _tell(folder, job, code)
    return code


def _tell(folder: RunFolder, job: str, code: int) -> None:
    """Have the state say that the job has ended, where no supervisor was there to do so."""
    with suppress(RunError, OSError):
        lock = take_lock(folder)
        if not read_state(folder).final:
            words = tail(folder.path / f"slurm-{job}.log", _LOG_LINES)
            error = f"Slurm job {job} ended with exit code {code} before it trained. Its last words:\n{words}"
            write_state(folder, status="failed", error=error)
        os.close(lock)


if __name__ == "__main__":
    sys.exit(main())
