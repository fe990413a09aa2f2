"""``on="hand"``: a run whose nodes somebody else starts, such as an engine that this package does not know."""

from __future__ import annotations

import shlex
from typing import Any, Literal

from pydantic import Field

from workbench.launchers.launcher import Handle, Launcher
from workbench.store.folder import RunFolder
from workbench.store.state import write_state

NODE = "workbench.launchers.node"


class Hand(Launcher):
    """Makes the run and says what to start on each of its nodes; all else is as anywhere."""

    kind: Literal["hand"] = "hand"
    nodes: int = Field(1, ge=1, description="machines that train one run together")
    processes: int = Field(1, ge=1, description="on each node")

    def check(self, recipe: Any) -> None:
        """See :meth:`Launcher.check`."""
        if self.nodes * self.processes > 1:
            recipe.check_together(self.nodes * self.processes)

    def submit(self, folder: RunFolder, resume: bool) -> Handle:
        """See :meth:`Launcher.submit`."""
        write_state(folder, status="queued", message="waiting for somebody to start its nodes")
        return {"where": "nodes started by hand"}

    def alive(self, handle: Handle) -> bool | None:
        """See :meth:`Launcher.alive`."""
        return None

    def cancel(self, handle: Handle) -> None:
        """See :meth:`Launcher.cancel`."""

    def notice(self, folder: RunFolder, handle: Handle) -> str:
        """See :meth:`Launcher.notice`."""
        size = f"--nodes={self.nodes} --processes={self.processes}"
        place = shlex.quote(str(folder.path))
        return (
            f"start on every node `python -m {NODE} {place} {size} --node=NUMBER --meeting=HOST:PORT --key=TEXT`, with "
            "the numbers from 0, an address of node 0 and one text for this start"
        )
