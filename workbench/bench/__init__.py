"""Benchmarks: ratios measured side by side in one process group, saved as JSON with hardware, versions and date."""

from workbench.bench.command import main

__all__ = ["main"]
