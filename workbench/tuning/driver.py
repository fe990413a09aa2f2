"""The process that carries a tuning forward: ``python -m workbench.tuning.driver TUNING_FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from workbench.experiments.driver import drive
from workbench.tuning.tuning_folder import TuningFolder


def main(argv: list[str] | None = None) -> int:
    """Drive one tuning to its end; returns the exit code."""
    (path,) = sys.argv[1:] if argv is None else argv
    return drive(TuningFolder(Path(path).absolute()), _advance)


def _advance() -> Any:
    from workbench.tuning.advance import advance

    return advance


if __name__ == "__main__":
    sys.exit(main())
