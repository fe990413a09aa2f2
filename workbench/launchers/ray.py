"""``on="ray"``: nodes of a Ray cluster, which Ray places, starts again and cleans up; all else is in the run's folder.

Ray is loaded by processes of their own (:mod:`workbench.launchers.ray_job`), never by a notebook or a page. Whoever
looks at a run asks no cluster: the run's keeper there touches a file in its folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from workbench.base.errors import RunError
from workbench.launchers.launched import launch_environment_of
from workbench.launchers.launcher import Handle, Launcher
from workbench.launchers.nodes import software
from workbench.launchers.processes import child_environment, module_command
from workbench.store.folder import RunFolder, read_object
from workbench.store.state import write_state

JOB = "workbench.launchers.ray_job"
ASK_SECONDS = 60.0
"""Longest wait for a cluster's answer; most of it is the loading of Ray."""
SILENT_SECONDS = 120.0
"""After which a run's keeper is gone for good. Ray takes half a minute to see that a node died and start another."""
BEAT = "ray.alive"
"""File of a run's folder that its keeper touches."""


class Ray(Launcher):
    """Nodes that Ray finds; when one dies, the run goes on from its checkpoint on others."""

    kind: Literal["ray"] = "ray"
    address: str = Field("auto", pattern=r"[\w.:-]+", description="HOST:PORT of the head; auto: as $RAY_ADDRESS says")
    nodes: int = Field(1, ge=1, description="machines that train one run together")
    processes: int = Field(1, ge=1, description="on each node")
    cores: int | None = Field(None, ge=1, description="of each process; empty: execution.threads, else one")
    gpus: int = Field(0, ge=0, description="of each node")
    restarts: int = Field(1000, ge=0, description="times that the run goes on by itself after it lost a node")
    grows: bool = Field(False, description="the cluster adds nodes by itself: wait for some that are not there yet")

    def check(self, recipe: Any) -> None:
        """See :meth:`Launcher.check`. The cluster is asked for nodes of that size."""
        if self.nodes * self.processes > 1:
            recipe.check_together(self.nodes * self.processes)
        self._ask("check", *self._size(recipe.execution.threads), *(["--grows"] if self.grows else []))

    def submit(self, folder: RunFolder, resume: bool) -> Handle:
        """See :meth:`Launcher.submit`."""
        threads = read_object(folder.recipe).get("execution", {}).get("threads")
        _, settings = launch_environment_of(folder)
        write_state(folder, status="queued", message=f"waiting in Ray ({self.address})")
        beat = folder.path / BEAT
        beat.touch()
        try:
            found = self._ask(
                "submit",
                *self._size(threads),
                f"--folder={folder.path}",
                f"--restarts={self.restarts}",
                f"--settings={json.dumps(settings)}",
                f"--software={json.dumps(software())}",
            )
        except RunError as error:
            raise OSError(str(error)) from None
        return {**found, "where": f"Ray ({found.get('address')})", "beat": str(beat)}

    def alive(self, handle: Handle) -> bool | None:
        """See :meth:`Launcher.alive`."""
        try:
            return time.time() - os.stat(str(handle.get("beat"))).st_mtime < SILENT_SECONDS
        except OSError:
            return False if Path(str(handle.get("beat"))).parent.is_dir() else None

    def cancel(self, handle: Handle) -> None:
        """See :meth:`Launcher.cancel`."""
        self._ask("cancel", f"--job={handle.get('job')}")

    def notice(self, folder: RunFolder, handle: Handle) -> str:
        """See :meth:`Launcher.notice`."""
        return f"waiting in {handle['where']}"

    def _size(self, threads: int | None) -> list[str]:
        cores = (self.cores or threads or 1) * self.processes
        return [f"--nodes={self.nodes}", f"--processes={self.processes}", f"--cores={cores}", f"--gpus={self.gpus}"]

    def _ask(self, verb: str, *arguments: str) -> dict[str, Any]:
        """Return what a process that has loaded Ray prints.

        Raises:
            RunError: Ray is not installed here, the cluster is not reached, or it refuses.
        """
        command = module_command(JOB, verb, f"--address={self.address}", *arguments)
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, env=child_environment(), timeout=ASK_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise RunError(f"Ray at {self.address} gave no answer within {ASK_SECONDS:.0f} s") from None
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        answer = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
        if "error" in answer or done.returncode:
            said = done.stderr.decode("utf-8", "replace")
            last = said.strip().rpartition("\n")[2]
            # Ray's own error is only that it could not connect.
            if "InvalidAuthToken" in said:
                raise RunError(
                    f"the Ray cluster at {self.address} does not let us in: its token is missing here or another "
                    "($RAY_AUTH_MODE=token and $RAY_AUTH_TOKEN_PATH, or ~/.ray/auth_token)"
                )
            raise RunError(answer.get("error") or f"Ray at {self.address}: {last or f'exit code {done.returncode}'}")
        return dict(answer)
