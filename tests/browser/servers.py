"""JupyterLab as a process: on a port of its own, with its own settings and kernels that keep runs where they are told.

Notebook 7 and Voila answer on the same port (``/notebooks/...``, ``/voila/render/...``) where they are installed.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from ipykernel.kernelspec import get_kernel_dict

from tests.browser.forked_kernels import command as command_of

REPOSITORY = Path(__file__).resolve().parents[2]
START_SECONDS = 90
TURNED_OFF = (
    "jupyter_server_config.d/workbench.jupyter.server.json",
    {"ServerApp": {"jpserver_extensions": {"workbench.jupyter.server": False}}},
)
"""The file and JSON that ``jupyter server extension disable --user workbench.jupyter.server`` writes."""
# Kernels inherit the server's environment, which is older than the folder whose runs they are to show.
_STARTUP = """
import os, pathlib
os.environ["WORKBENCH_RUNS"] = pathlib.Path({current!r}).read_text(encoding="utf-8")
"""
# The question about news would lie over the page.
_NO_NEWS = '{"fetchNews": "false", "checkForUpdates": false}'


@dataclass(frozen=True)
class Server:
    """A running JupyterLab.

    Attributes:
        url: of its root, without the token.
        token: what it asks for.
        root: the folder it serves: a copy of notebooks/.
        runs: the runs folder of its kernels.
    """

    url: str
    token: str
    root: Path
    runs: Path

    def ask(self, path: str, method: str = "GET", body: object = None) -> Any:
        """Its REST interface (``api/kernels``): the JSON it answers, None where it answers nothing."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            text = response.read()
        return json.loads(text) if text else None

    def shut_kernels_down(self) -> None:
        """End every kernel."""
        for kernel in self.ask("api/kernels"):
            with suppress(urllib.error.HTTPError):  # it died by itself in the meantime
                self.ask(f"api/kernels/{kernel['id']}", "DELETE")


def find_kernel(kernel_id: str) -> psutil.Process:
    """The process of a kernel, or the one that stands for it."""
    for process in psutil.process_iter(["cmdline"]):
        if any(kernel_id in part for part in process.info["cmdline"] or ()):
            return process
    raise AssertionError(f"no process of kernel {kernel_id}")


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def jupyterlab(
    home: Path, runs: Path, *, base_url: str = "/", extension: bool = True, template: str = "", **variables: str
) -> Iterator[Server]:
    """A JupyterLab that ends with the block.

    Args:
        home: an empty folder for its notebooks, settings and log.
        runs: the runs folder of kernels that start from now on; :func:`keep_runs_in` names another one.
        base_url: of the server, as a hub gives one to each user.
        extension: whether ours is on.
        template: the address of one that its kernels are forked from (:mod:`tests.browser.kernel_template`), if any.
        variables: of its environment.

    Raises:
        RuntimeError: it did not start; the end of its log.
    """
    root = home / "notebooks"
    shutil.copytree(REPOSITORY / "notebooks", root, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    port = free_port()
    server = Server(f"http://127.0.0.1:{port}{base_url.rstrip('/')}", secrets.token_hex(16), root, runs)
    keep_runs_in(server, runs)
    startup = home / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-runs.py").write_text(_STARTUP.format(current=str(_note(server))), encoding="utf-8")
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(_NO_NEWS, encoding="utf-8")
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
        f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--ServerApp.base_url={base_url}",
        f"--ServerApp.root_dir={root}", f"--IdentityProvider.token={server.token}",
        # Kernels that stand still on purpose are given up after five seconds else, which each test would wait for.
        "--KernelManager.shutdown_wait_time=2",
        "--LabApp.news_url=None", "--LabApp.expose_app_in_browser=True", "--ServerApp.terminals_enabled=False",
    ]  # fmt: skip
    if not extension:
        name, off = TURNED_OFF
        (home / "config" / name).parent.mkdir(parents=True)
        (home / "config" / name).write_text(json.dumps(off), encoding="utf-8")
    if template:
        specification = home / "installed" / "share" / "jupyter" / "kernels" / "python3" / "kernel.json"
        specification.parent.mkdir(parents=True)
        specification.write_text(json.dumps({**get_kernel_dict(), "argv": command_of(template)}), encoding="utf-8")
    log = home / "jupyter.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=_environment(home) | variables, stdout=out, stderr=subprocess.STDOUT, cwd=home
        )
    try:
        _wait_for(server, process, log)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()


def keep_runs_in(server: Server, runs: Path) -> None:
    """Kernels that start from now on keep their runs in this folder."""
    _note(server).write_text(str(runs), encoding="utf-8")


def _note(server: Server) -> Path:
    return server.root.parent / "runs-of-kernels"


def _environment(home: Path) -> dict[str, str]:
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    own = {name: str(home / folder) for name, folder in folders.items()}
    # Both extensions are there as an installed package brings them, also where this one, or an older one, is installed.
    installed = install_shared_data(home / "installed")
    for name, folder in (("JUPYTER_CONFIG_PATH", "etc/jupyter"), ("JUPYTER_PATH", "share/jupyter")):
        own[name] = os.pathsep.join(filter(None, [str(installed / folder), os.environ.get(name, "")]))
    return {**os.environ, **own}


def install_shared_data(prefix: Path) -> Path:
    """Put what installing the package puts outside of it (pyproject.toml) below ``prefix``, which is returned."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    for source, target in project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"].items():
        place = prefix / target
        if (REPOSITORY / source).is_dir():
            shutil.copytree(REPOSITORY / source, place, dirs_exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPOSITORY / source, place)
    return prefix


def _wait_for(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{server.url}/api?token={server.token}", timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start: {log.read_text(errors='replace')[-3000:]}")
