"""Where runs run: one launcher per file, found by name."""

from __future__ import annotations

from workbench.base.errors import RunError, check_known
from workbench.launchers.inline import InlineLauncher
from workbench.launchers.launcher import Launcher
from workbench.launchers.local import LocalLauncher

LAUNCHERS: dict[str, Launcher] = {launcher.name: launcher for launcher in (LocalLauncher(), InlineLauncher())}


def launcher_named(name: str) -> Launcher:
    """The launcher that ``launch(on=name)`` means.

    Raises:
        RunError: no such launcher; the message lists them.
    """
    check_known("on", name, LAUNCHERS, RunError)
    return LAUNCHERS[name]
