"""``on="slurm"``: one job of a Slurm cluster, on one node or many.

``sbatch``, ``scontrol`` and ``scancel`` are called with arguments alone. What submitit would add (pickled functions,
results, a folder of each job) is in the run folder already, and it asks ``sacct``, which small clusters lack.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from typing import Any, Literal

from pydantic import Field

from workbench.base.errors import RunError
from workbench.base.text import many
from workbench.launchers.launched import launch_environment_of, working_folder
from workbench.launchers.launcher import Handle, Launcher
from workbench.launchers.nodes import software
from workbench.launchers.processes import child_environment, module_command
from workbench.store.folder import RunFolder
from workbench.store.state import write_state

JOB = "workbench.launchers.slurm_job"
ASK_SECONDS = 40.0
"""Longest wait for an answer of Slurm's controller, for which its programs themselves wait about 20."""
LOOK_SECONDS = 5.0
"""Between two questions about the same job: a page looks several times a second, and a controller serves many users."""
ENDED = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT",
}  # fmt: skip
"""States in which a job stays."""
_WORD = r"[\w.,:@+\[\]&|=/-]*"


class Slurm(Launcher):
    """A job that waits for its nodes, trains on them, and goes back into Slurm's queue when they are taken from it."""

    kind: Literal["slurm"] = "slurm"
    nodes: int = Field(1, ge=1, description="machines that train one run together")
    processes: int = Field(1, ge=1, description="on each node")
    cores: int | None = Field(None, ge=1, description="of each process; empty: execution.threads, else one")
    partition: str = Field("", pattern=_WORD, description="where the job waits; empty: the cluster's default")
    time_minutes: int | None = Field(
        None, ge=1, description="of one job, after which the run goes back into the queue; empty: the partition's"
    )
    memory_gib: int | None = Field(None, ge=1, description="of each node; empty: the partition's default")
    gpus: int = Field(0, ge=0, description="of each node")
    account: str = Field("", pattern=_WORD, description="that pays; empty: yours by default")
    qos: str = Field("", pattern=_WORD, description="quality of service; empty: the default")
    constraint: str = Field("", pattern=_WORD, description="features that the nodes must have")
    requeues: int = Field(1000, ge=0, description="times that the run goes back into the queue by itself")
    warn_seconds: int = Field(120, ge=10, description="before the end of its time, in which it keeps a checkpoint")

    def check(self, recipe: Any) -> None:
        """See :meth:`Launcher.check`. Slurm is asked whether it would take such a job."""
        if self.nodes * self.processes > 1:
            recipe.check_together(self.nodes * self.processes)
        _ask(["sbatch", "--test-only", *self._options(self._cores(recipe.execution.threads)), "--wrap=true"])

    def submit(self, folder: RunFolder, resume: bool) -> Handle:
        """See :meth:`Launcher.submit`. The job's output is beside the run's logs."""
        threads = json.loads(folder.recipe.read_bytes()).get("execution", {}).get("threads")
        python, settings = launch_environment_of(folder)
        command = [python, *module_command(JOB, str(folder.path))[1:]]
        command += ["--nodes", str(self.nodes), "--processes", str(self.processes), "--requeues", str(self.requeues)]
        if python == sys.executable:
            command += ["--software", json.dumps(software())]
        script = f"#!/bin/sh\nexec {shlex.join(command)}\n"
        options = [
            "--parsable",
            "--requeue",
            f"--job-name={folder.id}",
            f"--chdir={working_folder(folder)}",
            f"--output={folder.path}/slurm-%j.log",
            "--open-mode=append",
            f"--signal=USR1@{self.warn_seconds}",
        ]
        try:
            said = _ask(
                ["sbatch", *options, *self._options(self._cores(threads))], script, child_environment(**settings)
            )
        except RunError as error:
            raise OSError(str(error)) from None
        job, _, cluster = said.strip().partition(";")
        where = f"Slurm (job {job})"
        write_state(folder, status="queued", message=f"waiting in {where}")
        return {"job": job, "cluster": cluster, "where": where, "nodes": self.nodes}

    def alive(self, handle: Handle) -> bool | None:
        """See :meth:`Launcher.alive`; at most :data:`LOOK_SECONDS` old."""
        state = facts_of(handle).get("JobState")
        return None if state is None else state not in ENDED

    def cancel(self, handle: Handle) -> None:
        """See :meth:`Launcher.cancel`."""
        if job := str(handle.get("job", "")):
            _ask(["scancel", *_cluster(handle), job])
            _LOOKS.pop(job, None)

    def takes_back(self) -> str:
        """See :meth:`Launcher.takes_back`. Slurm sends the same signal to a job that somebody cancels."""
        facts = facts_of({"job": os.environ.get("SLURM_JOB_ID", "")}, fresh=True)
        again = int(facts.get("Restarts", 0)) > int(os.environ.get("SLURM_RESTART_COUNT", 0))
        # A job that is cancelled is COMPLETING until its processes have ended, and so is one that waits anew.
        cancelled = facts.get("JobState") in {*ENDED, "COMPLETING"} and not again
        return "" if cancelled else "Slurm took its nodes for another job"

    def ending(self, handle: Handle) -> tuple[str, str]:
        """See :meth:`Launcher.ending`."""
        facts, job = facts_of(handle), handle.get("job")
        state = facts.get("JobState", "")
        if state == "CANCELLED":
            return "stopped", f"cancelled in Slurm (job {job})"
        if state not in ENDED:
            return "", ""
        nodes = facts.get("NodeList", "").replace("(null)", "")
        parts = (f"exit code {facts.get('ExitCode', 'unknown')}", nodes and f"on {nodes}")
        return "failed", (
            f"Slurm job {job} ended as {state} ({', '.join(filter(None, parts))}) before it could say why: "
            f"{nodes or 'its node'} may not see the run's folder, or its Python; what it said is in slurm-{job}.log "
            "there"
        )

    def notice(self, folder: RunFolder, handle: Handle) -> str:
        """See :meth:`Launcher.notice`."""
        return f"waiting in {handle['where']}"

    def _cores(self, threads: int | None) -> int:
        return self.cores or threads or 1

    def _options(self, cores: int) -> list[str]:
        named = {
            "partition": self.partition,
            "time": self.time_minutes,
            "mem": self.memory_gib and f"{self.memory_gib}G",
            "gpus-per-node": self.gpus,
            "account": self.account,
            "qos": self.qos,
            "constraint": self.constraint,
        }
        # One task, which starts the trainers of its node.
        fixed = [f"--nodes={self.nodes}", "--ntasks-per-node=1", f"--cpus-per-task={cores * self.processes}"]
        return [*fixed, *(f"--{name}={value}" for name, value in named.items() if value)]

    def __str__(self) -> str:
        return f"Slurm, {many(self.nodes, 'node')} with {many(self.processes, 'process')} each"


_LOOKS: dict[str, tuple[float, dict[str, str]]] = {}


def facts_of(handle: Handle, *, fresh: bool = False) -> dict[str, str]:
    """Return what Slurm says of a job; ``JobState`` is missing where it says nothing, COMPLETED once it forgot."""
    job = str(handle.get("job", ""))
    known = _LOOKS.get(job)
    if known and not fresh and time.monotonic() - known[0] < LOOK_SECONDS:
        return known[1]
    try:
        said = _ask(["scontrol", *_cluster(handle), "show", "job", "--oneliner", job])
        facts = dict(part.split("=", 1) for part in said.split() if "=" in part)
    except RunError as error:
        facts = {"JobState": "COMPLETED"} if "Invalid job id" in str(error) else {}
    _LOOKS[job] = time.monotonic(), facts
    return facts


def _cluster(handle: Handle) -> list[str]:
    return [f"--clusters={handle['cluster']}"] if handle.get("cluster") else []


def _ask(command: list[str], script: str = "", environment: dict[str, str] | None = None) -> str:
    """Return what a program of Slurm prints.

    Raises:
        RunError: it is not installed, its controller cannot be reached, or it refuses; the message has its words.
    """
    if shutil.which(command[0]) is None:
        raise RunError(
            f"on: slurm needs Slurm's `{command[0]}`, which this machine lacks: launch where you would call it yourself"
        )
    try:
        done = subprocess.run(
            command, input=script, capture_output=True, text=True, timeout=ASK_SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"Slurm's controller gave `{command[0]}` no answer within {ASK_SECONDS:.0f} s") from None
    if done.returncode:
        words = [line.removeprefix(f"{command[0]}: ").removeprefix("error: ") for line in done.stderr.splitlines()]
        said = "; ".join(filter(None, words)) or f"exit code {done.returncode}"
        raise RunError(
            f"Slurm refuses: {said}; `sinfo` says whether there is a cluster here, and on='local' needs none"
        )
    return done.stdout
