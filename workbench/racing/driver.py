"""The process that carries a race forward: ``python -m workbench.racing.driver RACE_FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from workbench.experiments.driver import drive
from workbench.racing.race_folder import RaceFolder


def main(argv: list[str] | None = None) -> int:
    """Drive one race to its end; returns the exit code."""
    (path,) = sys.argv[1:] if argv is None else argv
    return drive(RaceFolder(Path(path).absolute()), _advance)


def _advance() -> Any:
    from workbench.racing.advance import advance

    return advance


if __name__ == "__main__":
    sys.exit(main())
