"""A real kernel without a page: cells are executed as JupyterLab sends them, ids included."""

from __future__ import annotations

import ast
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_client.manager import start_new_kernel

SECONDS = 60


class Kernel:
    """A live kernel and what a page would do with it."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def run(self, code: str, cell: str = "", page: bool = True) -> list[dict[str, Any]]:
        """Execute a cell, under the id that a page would give it; returns what it published.

        Args:
            code: its source.
            cell: its id.
            page: whether somebody could be asked, as in a page; False: as papermill sends cells.

        Raises:
            RuntimeError: the cell failed; its traceback.
        """
        return self.finish(self.begin(code, cell, page))

    def begin(self, code: str, cell: str = "", page: bool = True) -> str:
        """Start a cell and do not wait for it; returns what :meth:`finish` asks for."""
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": page}
        message = self._client.session.msg("execute_request", content, metadata={"cellId": cell} if cell else {})
        self._client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def finish(self, execution: str) -> list[dict[str, Any]]:
        """Wait until a cell is done; returns what it published."""
        said: list[dict[str, Any]] = []
        while True:
            heard = self._client.get_iopub_msg(timeout=SECONDS)
            if heard["parent_header"].get("msg_id") != execution:
                continue
            said.append(heard)
            if heard["msg_type"] == "error":
                raise RuntimeError("\n".join(heard["content"]["traceback"]))
            if heard["msg_type"] == "status" and heard["content"]["execution_state"] == "idle":
                return said

    def send(self, comm: str, message: dict[str, Any], subshell: str | None = None) -> None:
        """Send what the page of a widget says, to the main thread or to a subshell."""
        content = {"comm_id": comm, "data": {"method": "custom", "content": message}}
        sent = self._client.session.msg("comm_msg", content)
        sent["header"]["subshell_id"] = subshell
        self._client.shell_channel.send(sent)

    def subshell(self) -> str | None:
        """Start another thread that hears messages, as JupyterLab does for widgets; None where kernels have none."""
        if "kernel subshells" not in self._client.kernel_info(reply=True)["content"].get("supported_features", ()):
            return None
        self._client.control_channel.send(self._client.session.msg("create_subshell_request", {}))
        return str(self._client.get_control_msg(timeout=SECONDS)["content"]["subshell_id"])

    def hear(self, wanted: Callable[[dict[str, Any]], bool], seconds: float = 20.0) -> dict[str, Any]:
        """The next message that fits, of any cell or thread; those before it are dropped."""
        deadline = time.monotonic() + seconds
        while True:
            heard: dict[str, Any] = self._client.get_iopub_msg(timeout=max(0.01, deadline - time.monotonic()))
            if wanted(heard):
                return heard

    def value(self, expression: str) -> Any:
        """A literal that the kernel computes."""
        printed = [m["content"]["text"] for m in self.run(f"print(repr({expression}))") if m["msg_type"] == "stream"]
        return ast.literal_eval("".join(printed))


@contextmanager
def live_kernel(folder: Path) -> Iterator[Kernel]:
    """Start one that works in ``folder``, and end it."""
    environment = {**os.environ, "IPYTHONDIR": str(folder / "ipython"), "JUPYTER_RUNTIME_DIR": str(folder / "runtime")}
    manager, client = start_new_kernel(startup_timeout=SECONDS, cwd=str(folder), env=environment)
    try:
        yield Kernel(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
