"""A JupyterLab and a Chromium of their own for measurements: nothing between a number and what a user would see."""

from __future__ import annotations

import contextlib
import json
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
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_OPTIONS = ("--no-sandbox", "--disable-background-networking", "--disable-gpu", "--disable-dev-shm-usage")
_START_SECONDS = 120
_CELL_MS = 120_000


@contextlib.contextmanager
def jupyterlab(home: Path) -> Iterator[tuple[str, int]]:
    """JupyterLab on a free port with settings, kernels and notebooks of its own.

    Args:
        home: an empty folder; notebooks are in ``notebooks`` there.

    Yields:
        ``(address with token parameter, pid)``.

    Raises:
        WorkbenchError: it did not start; the message ends with its log.
    """
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    token, notebooks, log = secrets.token_hex(16), home / "notebooks", home / "jupyter.log"
    notebooks.mkdir(parents=True)
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    # The question about news would lie over the page.
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    folders = {"CONFIG_DIR": "config", "DATA_DIR": "data", "RUNTIME_DIR": "runtime"}
    environment = {
        **os.environ,
        **{f"JUPYTER_{key}": str(home / name) for key, name in folders.items()},
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0", f"--ServerApp.root_dir={notebooks}", f"--IdentityProvider.token={token}",
        "--LabApp.news_url=None", "--ServerApp.terminals_enabled=False",
    ]  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT, cwd=home)
    try:
        _wait(f"http://127.0.0.1:{port}/api?token={token}", process, log)
        yield f"http://127.0.0.1:{port}/lab/tree/%s?reset&token={token}", process.pid
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
        process.kill()


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise WorkbenchError(f"JupyterLab did not start: {log.read_text(errors='replace')[-2000:]}")


@contextlib.contextmanager
def chromium(width: int = 1280, height: int = 800) -> Iterator[Any]:
    """A page of Debian's Chromium, or of any other on the PATH.

    Raises:
        WorkbenchError: there is none.
    """
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        raise WorkbenchError(f"none of {', '.join(CHROMIUM_NAMES)} is on the PATH; `make browser` installs one")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_OPTIONS))
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(_CELL_MS)
        try:
            yield page
        finally:
            browser.close()


def write_notebook(path: Path, cells: list[str]) -> None:
    """A notebook of these code cells."""
    code: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    notebook: dict[str, Any] = {
        "cells": [{**code, "id": f"cell-{number}", "source": source} for number, source in enumerate(cells)],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(notebook), encoding="utf-8")


def open_notebook(page: Any, address: str) -> None:
    """Open it and wait for its kernel."""
    page.goto(address)
    page.locator("#jp-main-statusbar", has_text="| Idle").wait_for()
    page.keyboard.press("Control+b")


def run_cell(page: Any, index: int, *, wait: bool = True) -> None:
    """Run a cell with the keyboard; ``wait``: until it has its number."""
    cell = page.locator(".jp-CodeCell").nth(index)
    cell.locator(".cm-content").click()
    before = cell.locator(".jp-InputPrompt").inner_text()
    page.keyboard.press("Control+Enter")
    if wait:
        page.wait_for_function(
            """([index, before]) => {
                const cell = document.querySelectorAll(".jp-CodeCell")[index];
                const prompt = cell.querySelector(".jp-InputPrompt").innerText;
                return prompt !== before && /\\d/.test(prompt);
            }""",
            arg=[index, before],
        )
