"""``workbench bench NAME``: the list of benchmarks, and the start of one."""

from __future__ import annotations

import os
from pathlib import Path

from workbench.base.errors import check_known
from workbench.base.heap_settings import TORCH_HUGE_PAGES, heap_settings
from workbench.bench.table import BENCHMARKS


def main(argv: list[str]) -> int:
    """Run one benchmark; returns the exit code.

    Raises:
        WorkbenchError: no benchmark of that name.
    """
    if not argv or argv[0] in ("-h", "--help", "--list"):
        print("usage: workbench bench NAME [options], workbench bench --show FILE")
        for name, spec in BENCHMARKS.items():
            print(f"  {name:<16} {spec.purpose} ({spec.cost})")
        return 0 if argv else 2
    if argv[0] == "--show" and len(argv) == 2:
        from workbench.bench.harness import name_in, run

        return run(name_in(Path(argv[1])), argv)
    name = "gpu" if argv[0] == "--gpu" else argv[0]
    check_known("bench", name, BENCHMARKS)
    # As trainers have it, for every contender alike. The C library of this process has begun without.
    os.environ.update(heap_settings(os.environ))
    if BENCHMARKS[name].here:
        os.environ.update(TORCH_HUGE_PAGES | os.environ)
    # Only when one is asked for: the list of benchmarks must not load torch.
    from workbench.bench.harness import run

    return run(name, argv[1:])
