"""The process that carries an experiment forward, as :func:`workbench.experiments.driver.start_driver` starts it."""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path

from workbench.experiments.driver import drive


def main(argv: list[str] | None = None) -> int:
    """Drive one experiment, whose folder's class and path are given, to its end; returns the exit code."""
    kind, path = sys.argv[1:] if argv is None else argv
    return drive(pkgutil.resolve_name(kind)(Path(path).absolute()))


if __name__ == "__main__":
    sys.exit(main())
