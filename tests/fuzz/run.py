"""``python -m tests.fuzz.run [KIND ...] --seed N --cases N`` (``make fuzz``); exit code 1 on an escape."""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random

from tests.fuzz.targets import TARGETS, Target

SAY_SECONDS = 10.0


def main() -> int:
    """Fuzz every kind that is named, or all; print rates, the slowest case and what escaped."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[[], *TARGETS], help="kinds of input (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the first case; case number i has seed + i")
    parser.add_argument("--cases", type=int, help="of each kind (default: a million recipes, 100,000 of each other)")
    options = parser.parse_args()
    # In memory: a case of a run folder writes some fifteen files.
    memory = Path("/dev/shm")
    escapes = 0
    for kind in options.kinds or TARGETS:
        with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as scratch:
            escapes += fuzz(TARGETS[kind](Path(scratch)), options.cases or TARGETS[kind].large, options.seed)
    return 1 if escapes else 0


def fuzz(target: Target, cases: int, seed: int) -> int:
    """Run so many cases; returns how many of them escaped."""
    began = spoken = time.monotonic()
    slowest, slowest_seed = 0.0, seed
    escapes: collections.Counter[str] = collections.Counter()
    for number in range(cases):
        before = time.monotonic()
        if escape := escape_of(target, seed + number):
            escapes[escape] += 1
            if escapes[escape] == 1:
                print(f"{target.name}: seed {seed + number}: {escape}", flush=True)
        now = time.monotonic()
        if now - before > slowest:
            slowest, slowest_seed = now - before, seed + number
        if now - spoken > SAY_SECONDS or number == cases - 1:
            spoken = now
            done = number + 1
            print(
                f"{target.name}: {done:,} of {cases:,} cases, seeds {seed} to {seed + number}, "
                f"{done / max(now - began, 1e-9):,.0f} a second, {sum(escapes.values())} escapes of {len(escapes)} "
                f"sorts, slowest {slowest:.2f} s (seed {slowest_seed})",
                flush=True,
            )
    return sum(escapes.values())


def escape_of(target: Target, seed: int) -> str:
    """Return the error that left the readers at this case, with its place; empty when nothing did."""
    random = Random(seed)
    case = target.case(random)
    try:
        target.check(case, random)
    # Everything that is not the readers' own error is what we look for; what pydantic raises from Rust, too.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        *_, frame = traceback.extract_tb(error.__traceback__)
        return f"{type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}: {str(error)[:120]!a}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
