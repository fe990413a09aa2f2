"""Two hosts of one run, as network namespaces of this machine that a pair of virtual cables joins; one is cut off."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.launchers.test_nodes import made
from tests.run_folders import processes_of
from tests.tiny_runs import wait_until
from workbench.base.errors import RunFailed
from workbench.client.run import Run
from workbench.launchers import node
from workbench.launchers.processes import child_environment, module_command

ADDRESSES, PORT = ("10.213.77.1", "10.213.77.2"), 29_411


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def hosts() -> Iterator[list[str]]:
    """Names of two namespaces that reach each other, and nothing else."""
    if os.geteuid() or shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("network namespaces need root, iproute2 and unshare")
    names = [f"wb{os.getpid()}{letter}" for letter in "ab"]
    cables = [f"v{name}" for name in names]
    try:
        try:
            for name in names:
                ip("netns", "add", name)
            ip("link", "add", cables[0], "type", "veth", "peer", "name", cables[1])
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
        for name, cable, address in zip(names, cables, ADDRESSES, strict=True):
            ip("link", "set", cable, "netns", name)
            ip("-n", name, "address", "add", f"{address}/24", "dev", cable)
            ip("-n", name, "link", "set", cable, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            with suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)


@pytest.mark.process
@pytest.mark.extended
def test_a_host_that_is_cut_off_is_named_and_the_run_goes_on(hosts: list[str], corpus: Path, root: Path) -> None:
    run = made(corpus, root)
    started = [start(run, number, host) for number, host in enumerate(hosts)]
    wait_until(lambda: run.state.step >= 5 or run.final, 120, "step 5")
    assert run.status == "running", (run.state.error, run.folder.log.read_text())
    run.ask("checkpoint", timeout=60)
    step = run.state.step
    ip("-n", hosts[1], "link", "set", f"v{hosts[1]}", "down")
    with pytest.raises(RunFailed, match=rf"node 1 \({hosts[1]}\) has not been heard from for 30 s.* network is cut"):
        run.wait(timeout=60)
    # Whoever was cut off ends by itself, too: nobody could tell it.
    for each in started:
        assert each.wait(60) != 0
    assert not processes_of(root)
    assert f"node 1 ({hosts[1]}): node 0 has not been heard from for 30 s" in run.folder.log.read_text()
    # With the cable back, from what both have learned.
    ip("-n", hosts[1], "link", "set", f"v{hosts[1]}", "up")
    run.resume()
    assert run.status == "queued"
    for number, host in enumerate(hosts):
        start(run, number, host)
    wait_until(lambda: run.state.step > step + 5 or run.final, 90, "more steps")
    assert run.status == "running", run.state.error
    run.stop(timeout=60)
    run.wait(timeout=60)


@pytest.mark.process
@pytest.mark.extended
@pytest.mark.parametrize(
    ("hidden", "why"),
    [
        ("runs", r"node 1 \({host}\) does not see what this node \({other}\) writes .* on a disk that all nodes share"),
        ("text", r"process 1 of 2 on node 1 \({host}\) ended with exit code 1 .*(?s:.*)corpus.*"),
    ],
)
def test_a_host_without_the_runs_folder_or_the_text_is_named(
    hosts: list[str], corpus: Path, root: Path, tmp_path: Path, hidden: str, why: str
) -> None:
    run = made(corpus, root)
    place = {"runs": root, "text": corpus.parent}[hidden]
    cache = {"WORKBENCH_CACHE": str(tmp_path / "cache of its own")}
    started = [start(run, 0, hosts[0]), start(run, 1, hosts[1], hide=place, **cache)]
    with pytest.raises(RunFailed, match=why.format(host=hosts[1], other=hosts[0])):
        run.wait(timeout=120)
    for each in started:
        each.wait(30)
    assert not processes_of(root)


def start(run: Run, number: int, host: str, hide: Path | None = None, **settings: str) -> subprocess.Popen[bytes]:
    """Start a node on a host.

    Args:
        hide: a folder that is empty there.
    """
    names = [f"--node={number}", "--nodes=2", f"--meeting={ADDRESSES[0]}:{PORT}", "--key=a"]
    command = module_command(node.__name__, str(run.folder.path), *names)
    # With a host name and mounts of its own.
    own = 'echo "$0" > /proc/sys/kernel/hostname && '
    own += f"mount -t tmpfs none {shlex.quote(str(hide))} && " if hide else ""
    isolated = ["unshare", "--uts", "--mount", "sh", "-c", f'{own}exec "$@"', host, *command]
    with run.folder.log.open("ab") as log:
        return subprocess.Popen(
            ["ip", "netns", "exec", host, *isolated], stdout=log, stderr=log, env=child_environment(**settings)
        )
