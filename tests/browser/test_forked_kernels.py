"""A forked kernel is a kernel like any other: it has loaded nothing of ours, hears signals, leaves nothing behind."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from tests.browser.forked_kernels import command
from tests.browser.kernel_template import template
from tests.jupyter.kernel import SECONDS, Kernel
from tests.tiny_runs import wait_until

pytestmark = [pytest.mark.process, pytest.mark.extended]


@pytest.fixture(scope="module")
def specifications(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelSpecManager]:
    folder = tmp_path_factory.mktemp("forked")
    specification = folder / "kernels" / "python3" / "kernel.json"
    specification.parent.mkdir(parents=True)
    with template(folder) as address:
        written = {"argv": command(address), "display_name": "Forked", "language": "python"}
        specification.write_text(json.dumps(written), encoding="utf-8")
        yield KernelSpecManager(kernel_dirs=[str(folder / "kernels")])


@pytest.fixture
def manager(specifications: KernelSpecManager) -> KernelManager:
    return KernelManager(kernel_spec_manager=specifications)


@pytest.fixture
def kernel(manager: KernelManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("ONLY_HERE", "yes")
    manager.start_kernel(cwd=str(tmp_path))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=SECONDS)
        yield Kernel(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def fork_server(manager: KernelManager) -> psutil.Process:
    """The process that JupyterLab takes for the kernel."""
    return psutil.Process(manager.provisioner.process.pid)  # type: ignore[union-attr]


def test_it_has_our_surroundings_and_nothing_of_ours(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run("import os, sys, threading")
    assert kernel.value("[name for name in sys.modules if name.partition('.')[0] == 'workbench']") == []
    assert kernel.value("'torch' in sys.modules")
    assert kernel.value("(os.getcwd(), os.environ['ONLY_HERE'])") == (str(tmp_path), "yes")
    assert kernel.value("'OPENBLAS_NUM_THREADS' in os.environ") is False


def test_an_interrupt_reaches_it(kernel: Kernel, manager: KernelManager) -> None:
    waits = "print('began')\ntry:\n    __import__('time').sleep(600)\nexcept KeyboardInterrupt:\n    print('heard')"
    cell = kernel.begin(waits)
    kernel.hear(lambda heard: "began" in heard["content"].get("text", ""))
    manager.interrupt_kernel()
    assert any("heard" in said["content"].get("text", "") for said in kernel.finish(cell))


@pytest.mark.parametrize("which", ["kernel", "its fork server"])
def test_neither_outlives_the_other(kernel: Kernel, manager: KernelManager, which: str) -> None:
    own = psutil.Process(kernel.value("__import__('os').getpid()"))
    both = [own, fork_server(manager)]
    # Stopped, as a test has it: even so it can be ended.
    own.send_signal(signal.SIGSTOP)
    (own if which == "kernel" else both[1]).kill()
    wait_until(lambda: not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in both))
