"""A real JupyterLab and a real Chromium: nothing between the test and what a user would see."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "test-results"
START_SECONDS = 90
expect.set_options(timeout=30_000)  # two cores that also train
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")


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


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser; CI must have one."""
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        why = f"none of {', '.join(CHROMIUM_NAMES)} is on the PATH (`make browser` installs one on Debian)"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, chromium: str, shared_cache: Path) -> Iterator[Server]:
    """JupyterLab on a free port, with its own settings, workspaces and runs."""
    home = tmp_path_factory.mktemp("jupyter")
    root, runs = home / "notebooks", home / "runs"
    shutil.copytree(REPOSITORY / "notebooks", root, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    found = Server(f"http://127.0.0.1:{free_port()}", secrets.token_hex(16), root, runs)
    environment = {
        **os.environ,
        "WORKBENCH_RUNS": str(runs),
        "WORKBENCH_CACHE": str(shared_cache),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    # The question about news would lie over the page.
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    log = home / "jupyter.log"
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
        f"--ServerApp.port={found.url.rsplit(':', 1)[1]}", "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={root}", f"--IdentityProvider.token={found.token}",
        "--LabApp.news_url=None", "--ServerApp.terminals_enabled=False",
    ]  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT, cwd=home)
    try:
        wait_for(found, process, log)
        yield found
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()


def wait_for(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the server answers; its log tells why it did not."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{server.url}/api?token={server.token}", timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not start: {log.read_text(errors='replace')[-3000:]}")


@pytest.fixture
def page(chromium: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A fresh browser page, 1280 x 800; whatever it shows at the end is kept in test-results/."""
    RESULTS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-background-networking", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(60_000)
        try:
            yield page
        finally:
            page.screenshot(path=RESULTS / f"{request.node.name}-end.png")
            browser.close()
