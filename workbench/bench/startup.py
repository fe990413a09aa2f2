"""How long a user waits before anything happens: importing the package, listing runs."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from workbench.bench.result import save, spread

COMMANDS = {
    "import workbench": ["-c", "import workbench"],
    # In every reading below and above: how much of it is the interpreter itself.
    "python alone": ["-c", "pass"],
    "workbench runs": ["-m", "workbench", "runs"],
}


def measure(repeats: int, runs_dir: str) -> dict[str, dict[str, float]]:
    """Wall seconds of each command as a fresh process: median, least, greatest."""
    readings: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(repeats):
        for name, arguments in COMMANDS.items():
            extra = ["--runs", runs_dir] if name == "workbench runs" else []
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments, *extra], check=True, capture_output=True)
            readings[name].append(time.perf_counter() - start)
    return {name: spread(values) for name, values in readings.items()}


def main(argv: list[str]) -> int:
    """``workbench bench startup``."""
    parser = argparse.ArgumentParser(prog="workbench bench startup", description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as empty:
        seconds = measure(options.repeats, empty)
    console = Console()
    for name, value in seconds.items():
        console.print(f"{name}: {value['median']:.2f} s ({value['min']:.2f} to {value['max']:.2f})")
    console.print(f"saved {save('startup', {'seconds': seconds}, options.out)}")
    return 0
