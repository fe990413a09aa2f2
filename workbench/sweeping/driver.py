"""The process that carries a sweep forward: ``python -m workbench.sweeping.driver SWEEP_FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from workbench.experiments.driver import drive
from workbench.sweeping.sweep_folder import SweepFolder


def main(argv: list[str] | None = None) -> int:
    """Drive one sweep to its end; returns the exit code."""
    (path,) = sys.argv[1:] if argv is None else argv
    return drive(SweepFolder(Path(path).absolute()), _advance)


def _advance() -> Any:
    from workbench.sweeping.advance import advance

    return advance


if __name__ == "__main__":
    sys.exit(main())
