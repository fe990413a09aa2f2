"""Runs: folders that a background process fills and any process may list, read and steer. No torch in here."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.runs.catalogue.run_list import RunList


class _CallablePackage(types.ModuleType):
    """``workbench.runs`` is a package and, for users, also the function ``wb.runs()``.

    The import system sets the attribute ``runs`` of ``workbench`` to this module whenever any ``workbench.runs.x`` is
    imported, over whatever stood there. So the module itself must answer when it is called.
    """

    def __call__(self, runs_dir: str | Path | None = None) -> RunList:
        """See :func:`workbench.runs.catalogue.run_list.runs`."""
        from workbench.runs.catalogue.run_list import runs

        return runs(runs_dir)

    def check_target(self, target_loss: object) -> None:
        """See :func:`workbench.runs.result.check_target`."""
        from workbench.runs.result import check_target

        check_target(target_loss)


sys.modules[__name__].__class__ = _CallablePackage
