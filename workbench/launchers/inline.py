"""``on="inline"``: tied to the calling process, as a foreground command, a container or a batch job wants it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from workbench.launchers.launcher import Launcher
from workbench.launchers.local import start_supervisor
from workbench.store.folder import RunFolder


class InlineLauncher(Launcher):
    """A supervisor that ends when the process that launched it ends; nothing is left behind."""

    name: ClassVar[str] = "inline"

    def start(self, folder: RunFolder, descriptors: Mapping[str, int], working_folder: Path, resume: bool) -> int:
        """See :meth:`Launcher.start`."""
        options = ["--with-parent", str(os.getpid()), *(["--resume"] if resume else [])]
        return start_supervisor(folder, descriptors, working_folder, options, own_session=False)
