"""``python -m workbench.scoring RUN_FOLDER --on NAME,...``: score a run; ``wb.score`` starts it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from workbench.base.errors import WorkbenchError
from workbench.scoring.job import score_job
from workbench.store.folder import RunFolder


def main(argv: list[str] | None = None) -> int:
    """Score a run; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m workbench.scoring", description="score a run on benchmarks")
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--on", required=True, help="names of benchmarks, with commas between")
    parser.add_argument("--fast", action="store_true", help="the first items of each group alone")
    parser.add_argument("--data", type=Path, help="folder with the items")
    parser.add_argument("--step", type=int, help="step of the checkpoint; the newest when left out")
    options = parser.parse_args(argv)
    try:
        folder, on = RunFolder(options.run.absolute()), options.on.split(",")
        score_job(folder, on, options.step, fast=options.fast, data=options.data)
    except (WorkbenchError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
