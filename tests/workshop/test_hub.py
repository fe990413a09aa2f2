"""A real JupyterHub, with local processes and with systemd: what of a learner's run survives a stopped server and hub.

Skipped without JupyterHub and its proxy: ``pip install jupyterhub`` and ``npm install -g configurable-http-proxy``.
The test with systemd is skipped where systemd does not run or ``jupyterhub-systemdspawner`` is missing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.browser.servers import REPOSITORY, free_port
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.client.run import Run
from workbench.client.run_list import runs

pytest.importorskip("jupyterhub")
if shutil.which("configurable-http-proxy") is None:
    pytest.skip("configurable-http-proxy is not on the PATH", allow_module_level=True)

_CONFIGURATION = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.auth_token = "secret"
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.allow_all = True
{spawner}
c.Spawner.args = ["--allow-root"]
c.Spawner.cmd = [{python!r}, "-m", "jupyterhub.singleuser"]
c.Spawner.environment = {environment!r}
c.Spawner.http_timeout = c.Spawner.start_timeout = 240
c.JupyterHub.services = [{{"name": "test", "api_token": "of-the-test"}}]
c.JupyterHub.load_roles = [{{"name": "test", "scopes": ["admin:users", "admin:servers", "access:servers"], "services": ["test"]}}]
"""  # noqa: E501
_PROCESSES = """
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {home!r}
"""
_SYSTEMD = """
c.JupyterHub.spawner_class = "systemd"
c.SystemdSpawner.username_template = "root"
c.SystemdSpawner.user_workingdir = {home!r}
c.SystemdSpawner.unit_name_template = "workbench-test-{unit}"
"""
_LAUNCH = 'import workbench as wb; wb.launch(wb.Recipe.load("recipe.json"), say=None)'


class Hub:
    """A hub as a process, and what its services ask of it and of ada's server."""

    def __init__(self, folder: Path, port: int, process: subprocess.Popen[bytes]) -> None:
        self.folder, self.port, self.process = folder, port, process

    def ask(self, path: str, method: str = "GET", body: object = None) -> Any:
        """The JSON of an address below the hub's root; None where it answers nothing."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": "token of-the-test", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read()
        return json.loads(text) if text else None

    def answers(self, path: str) -> bool:
        """Say if an address can be asked."""
        with suppress(OSError):
            self.ask(path)
            return True
        return False

    def start_server(self) -> psutil.Process:
        """Start ada's server, as her login does; returns its process."""
        with suppress(urllib.error.HTTPError):  # she is known already
            self.ask("hub/api/users/ada", "POST", {})
        self.ask("hub/api/users/ada/server", "POST", {})
        wait_until(lambda: self.answers("user/ada/api/status"), 240, "ada's server")
        return next(each for each in psutil.process_iter() if _in_place(each, self.folder / "home"))

    def launch(self, known: int) -> Run:
        """Launch a run in a kernel of ada's server, as a cell does, by the kernel's own files."""
        from jupyter_client.blocking.client import BlockingKernelClient

        kernel = self.ask("user/ada/api/kernels", "POST", {})["id"]
        client = BlockingKernelClient()
        client.load_connection_file(str(self.folder / "runtime" / f"kernel-{kernel}.json"))
        client.start_channels()
        # Not `wait_for_ready`, which gives a kernel a second to begin.
        message = client.execute(_LAUNCH)
        while (reply := client.get_shell_msg(timeout=240))["parent_header"].get("msg_id") != message:
            pass
        client.stop_channels()
        assert reply["content"]["status"] == "ok", reply["content"]
        root = self.folder / "home" / "runs"
        assert len(runs(root)) == known + 1
        run = runs(root)[0]
        wait_until(lambda: run.status == "running" and run.state.step > 3, 240, "training")
        return run

    def listed(self) -> dict[str, str]:
        """The status of each run, as the list in ada's page asks her server."""
        return {row["id"]: row["status"] for row in self.ask("user/ada/workbench/api/runs")["runs"]}


@contextmanager
def hub(folder: Path, spawner: str = _PROCESSES, more: str = "") -> Iterator[Hub]:
    """A hub that is told to end with the block, by SIGTERM as a service manager does."""
    port, hub_port, proxy_port = free_port(), free_port(), free_port()
    environment = {
        "PYTHONPATH": str(REPOSITORY), "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_CONFIG_PATH": str(REPOSITORY / "jupyter-config"), "PATH": os.environ["PATH"],
        **{name: value for name, value in os.environ.items() if name.startswith(("WORKBENCH_", "OMP_"))},
    }  # fmt: skip
    environment.pop("WORKBENCH_RUNS", None)
    path = folder / "jupyterhub_config.py"
    chosen = spawner.format(home=str(folder / "home"), unit=port) + more
    path.write_text(_CONFIGURATION.format(
        spawner=chosen, port=port, hub_port=hub_port, proxy_port=proxy_port, python=sys.executable,
        environment=environment,
    ))  # fmt: skip
    with (folder / "hub.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(path)], cwd=folder, stdout=log, stderr=log
        )
        found = Hub(folder, port, process)
        try:
            wait_until(lambda: found.answers("hub/api/users"), 120, "the hub")
            yield found
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=120)


def _in_place(process: psutil.Process, folder: Path) -> bool:
    """Say if a process is the server that a hub has started in a folder."""
    with suppress(psutil.Error):
        return "jupyterhub.singleuser" in process.cmdline() and process.cwd() == str(folder)
    return False


def keep_runs() -> str:
    """Return the lines of a hub's configuration with which docs/workshop.md lets runs outlive a unit."""
    text = (REPOSITORY / "docs" / "workshop.md").read_text()
    return text.split("lines of `jupyterhub_config.py`:\n\n```py\n")[1].split("```")[0]


def goes_on(run: Run) -> bool:
    """Wait for further steps; False if the run ended with them."""
    step = run.state.step
    wait_until(lambda: run.state.step > step + 3, 120, "another step")
    return run.status == "running"


@pytest.mark.process
@pytest.mark.extended
@pytest.mark.timeout(1200)
def test_a_run_outlives_its_server_and_its_hub_and_is_found_after_login(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    tiny_recipe(corpus, steps=1_000_000).save(tmp_path / "home" / "recipe.json")
    with hub(tmp_path) as room:
        server = room.start_server()
        first = room.launch(known=0)
        room.ask("hub/api/users/ada/server", "DELETE")
        wait_until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE, 60, "the server's end")
        assert goes_on(first)
        room.start_server()
        assert room.listed() == {first.id: "running"}
        second = room.launch(known=1)
    assert goes_on(first)
    assert goes_on(second)
    with hub(tmp_path) as room:
        room.start_server()
        assert room.listed() == {first.id: "running", second.id: "running"}
        for run in (first, second):
            run.stop()
        wait_until(lambda: set(room.listed().values()) == {"stopped"}, 120, "the final words in the list")


@pytest.mark.process
@pytest.mark.extended
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mode", ["control-group", "process"])
def test_systemd_ends_a_run_with_a_checkpoint_or_lets_it_go_on(corpus: Path, tmp_path: Path, mode: str) -> None:
    pytest.importorskip("systemdspawner")
    if not Path("/run/systemd/system").exists():
        pytest.skip("systemd does not run here")
    (tmp_path / "home").mkdir()
    tiny_recipe(corpus, steps=1_000_000).save(tmp_path / "home" / "recipe.json")
    with hub(tmp_path, _SYSTEMD, keep_runs() if mode == "process" else "") as room:
        server = room.start_server()
        run = room.launch(known=0)
        room.ask("hub/api/users/ada/server", "DELETE")
        wait_until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE, 60, "the server's end")
        if mode == "process":
            assert goes_on(run)
            room.start_server()
            assert room.listed() == {run.id: "running"}
            run.stop()
        wait_until(lambda: run.status == "stopped", 120, "the final word")
    assert list(run.folder.checkpoints.glob("step-*")), "with a checkpoint"
