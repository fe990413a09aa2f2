"""A real Jupyter server with the extension, behind a hub's prefix, with a token, and clients that really ask it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.run_folders import root
from workbench.jupyter.feed.registered_roots import register

__all__ = ["root"]
BASE_URL, TOKEN = "/user/ada/", "a-token-of-the-tests"


@dataclass
class Answer:
    """Status, headers and body of an answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """Asks the server, as somebody with a token or as a page with cookies."""

    port: int
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """One request; ``path`` goes out as it is, dots and all."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, self.headers | named)
            answer: HTTPResponse = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **query: Any) -> Answer:
        """GET below the extension's address."""
        question = "?" + urlencode(query, doseq=True) if query else ""
        return self.ask("GET", f"{BASE_URL}workbench/api{path}{question}")

    def post(self, path: str, value: Any, **headers: str) -> Answer:
        """POST of JSON below the extension's address."""
        body = json.dumps(value).encode()
        return self.ask("POST", f"{BASE_URL}workbench/api{path}", body, Content_Type="application/json", **headers)


@dataclass
class Server:
    """A running server: its process, its runs folder, a folder that a kernel has registered."""

    process: subprocess.Popen[bytes]
    port: int
    runs: Path
    elsewhere: Path
    key: str
    log: Path

    @property
    def client(self) -> Client:
        """Somebody with the token."""
        return Client(self.port, {"Authorization": f"token {TOKEN}"})

    @property
    def stranger(self) -> Client:
        """Somebody without."""
        return Client(self.port)

    def page(self) -> Client:
        """A browser that has logged in: cookies, no token. Its XSRF token stands in ``headers``."""
        client = Client(self.port)
        form = client.ask("GET", f"{BASE_URL}login")
        xsrf = re.findall(r"_xsrf=([^;]+)", form.headers["set-cookie"])[0]
        login = client.ask(
            "POST",
            f"{BASE_URL}login",
            urlencode({"password": TOKEN, "_xsrf": xsrf}).encode(),
            Cookie=f"_xsrf={xsrf}",
            Content_Type="application/x-www-form-urlencoded",
        )
        assert login.status == 302, login.body
        session = login.headers["set-cookie"].partition(";")[0]
        return Client(self.port, {"Cookie": f"{session}; _xsrf={xsrf}", "X-XSRFToken": xsrf})


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests: its start takes two seconds."""
    home = tmp_path_factory.mktemp("server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    elsewhere = home / "notebooks" / "runs"
    elsewhere.mkdir(parents=True)
    key = register(home / "runtime" / "workbench", elsewhere)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "WORKBENCH"))}
    environment |= {
        "HOME": str(home),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        # What is installed on this machine must decide nothing here.
        "JUPYTER_NO_CONFIG": "1",
        # Of the runs that it starts: prepared text as every test has it, and no reports.
        **{name: os.environ[name] for name in ("WORKBENCH_CACHE", "WORKBENCH_REPORT")},
    }
    options = {
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "ServerApp.base_url": BASE_URL,
        "ServerApp.root_dir": home,
        "ServerApp.jpserver_extensions": "workbench.jupyter.server=True",
        "IdentityProvider.token": TOKEN,
    }
    command = [sys.executable, "-m", "jupyter_server", *(f"--{name}={value}" for name, value in options.items())]
    log = home / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environment, cwd=home, stdout=file, stderr=file)
    try:
        found = Server(process, port, home / "runs", elsewhere, key, log)
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            try:
                found.client.get("")
                break
            except OSError:
                time.sleep(0.1)
        yield found
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def client(server: Server) -> Client:
    return server.client
