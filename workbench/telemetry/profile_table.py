"""A profile in words: where the time of a run's steps went. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STEPS = 20
"""Steps that are timed, and as many that are looked into."""

_TOLD = {"rest": "   Python between operations, and small ones"}


def profile_table(found: Mapping[str, Any]) -> str:
    """Return lines of text from what ``profile.json`` holds.

    Example:
        >>> print(profile_table({"parts": {"products": 0.7, "rest": 0.3}, "step_seconds": 0.1, "mfu": 0.25,
        ...     "tokens_per_second": 10240.0, "gemm_flops": 2e11, "steps": 20}))
        products           70.0%     70.0 ms
        rest               30.0%     30.0 ms   Python between operations, and small ones
        a step            100.0%    100.0 ms   10,240 tokens/s, MFU 25.0% of the measured matrix product, 200 GFLOP/s
        (as one of 20 takes undisturbed; the run's own rate is a mean, with whatever else had the processor)
    """
    milliseconds = 1e3 * found["step_seconds"]
    lines = [
        f"{part:<17}{share:7.1%} {share * milliseconds:8.1f} ms{_TOLD.get(part, '')}"
        for part, share in found["parts"].items()
    ]
    lines.append(
        f"{'a step':<17}{1:7.1%} {milliseconds:8.1f} ms   {found['tokens_per_second']:,.0f} tokens/s, "
        f"MFU {found['mfu']:.1%} of the measured matrix product, {found['gemm_flops'] / 1e9:,.0f} GFLOP/s"
    )
    one = f"(as one of {found['steps']} takes undisturbed; the run's own rate is a mean"
    return "\n".join([*lines, f"{one}, with whatever else had the processor)"])


def profile_line(found: Mapping[str, Any]) -> str:
    """Return the same in one sentence.

    Example:
        >>> profile_line({"parts": {"products": 0.7, "rest": 0.3}, "step_seconds": 0.1, "mfu": 0.25})
        'of 100.0 ms a step: products 70%, rest 30%; MFU 25.0%'
    """
    parts = ", ".join(f"{part} {share:.0%}" for part, share in found["parts"].items())
    return f"of {1e3 * found['step_seconds']:.1f} ms a step: {parts}; MFU {found['mfu']:.1%}"
