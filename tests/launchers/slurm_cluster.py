"""A Slurm cluster of three nodes on this machine, for the tests of a module: munge, a controller, three slurmd."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.tiny_runs import wait_until
from workbench.store.state import die_with_parent

HIDDEN = "not-shared"
"""Folder beside its configuration that the node of the partition ``blind`` does not see."""
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun")
# Two jobs that ask for all cores of a node cannot run beside each other; a partition's jobs give way to those of
# another. A credential that expires soon lets a job that was put back begin again at once.
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1
KillWait=25
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 State=UNKNOWN
NodeName=n3 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[3]} CPUs=2 State=UNKNOWN
PartitionName=low Nodes=n1,n2 Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=60 State=UP
PartitionName=high Nodes=n1,n2 PriorityTier=10 PreemptMode=OFF State=UP
PartitionName=blind Nodes=n3 State=UP
"""


def why_not() -> str:
    """Return why no cluster can be started here; empty where it can."""
    if os.geteuid():
        return "a Slurm cluster of one's own needs root"
    missing = [each for each in PROGRAMS if shutil.which(each) is None]
    return f"needs Debian's packages slurm-wlm and munge (no {', '.join(missing)})" if missing else ""


@contextmanager
def cluster(folder: Path) -> Iterator[Path]:
    """Start it; yields its configuration, which ``SLURM_CONF`` names, and leaves no process behind."""
    if why := why_not():
        pytest.skip(why)
    (folder / "state").mkdir()
    # munged wants its socket in a folder into which others can look.
    folder.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    host = socket.gethostname().partition(".")[0]
    sockets = [socket.socket() for _ in range(4)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    configuration = folder / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(host=host, folder=folder, ports=ports))
    place = [f"--{name}={folder}/munge.{end}" for name, end in (("socket", "sock"), ("key-file", "key"))]
    place += [f"--{name}={folder}/munged.{name[:4]}" for name in ("pid-file", "log-file", "seed-file")]
    commands = [["munged", "--force", "--foreground", *place], ["slurmctld", "-D", "-f", str(configuration)]]
    # The third finds one folder empty.
    (folder / HIDDEN).mkdir()
    blind = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {folder / HIDDEN} && exec "$@"', "sh"]
    for name in ("n1", "n2", "n3"):
        own = ["slurmd", "-D", "-N", name, "-f", str(configuration)]
        commands.append(blind + own if name == "n3" else own)
    started: list[subprocess.Popen[bytes]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(configuration))
        try:
            with (folder / "output.log").open("wb") as log:
                for command in commands:
                    started.append(
                        subprocess.Popen(
                            command, stdout=log, stderr=log, start_new_session=True, preexec_fn=die_with_parent
                        )
                    )
                    if command[0] == "munged":
                        wait_until((folder / "munge.sock").exists, 10, "munge's socket")
            wait_until(lambda: "idle" in ask("sinfo", "--noheader", "--format=%T"), 60, "idle nodes")
            yield configuration
        finally:
            ask("scancel", "--signal=KILL", "--user=root")
            deadline = time.monotonic() + 10
            while ask("squeue", "--noheader") and time.monotonic() < deadline:
                time.sleep(0.2)
            for process in reversed(started):
                end(process)


def ask(*command: str) -> str:
    """Return what a program of Slurm prints; empty where it fails."""
    return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()


def end(process: subprocess.Popen[bytes]) -> None:
    """End a daemon with all that it started."""
    with suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):
                child.send_signal(signal.SIGKILL)
    process.kill()
    process.wait()
