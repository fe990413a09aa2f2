"""The process that carries an experiment forward, as :func:`workbench.experiments.driver.start_driver` starts it."""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path

from workbench.experiments.driver import drive


def main(argv: list[str] | None = None) -> int:
    """Drive one experiment, given its class and its folder, to its end; returns the exit code."""
    kind, path = sys.argv[1:] if argv is None else argv
    held = pkgutil.resolve_name(kind)
    return drive(held(held.kind(Path(path).absolute())))


if __name__ == "__main__":
    sys.exit(main())
