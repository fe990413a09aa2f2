"""A profile in words."""

from __future__ import annotations

from workbench.telemetry.profile_table import profile_line, profile_table


def test_a_profile_in_words() -> None:
    found = {
        "parts": {"products": 0.7, "rest": 0.3}, "step_seconds": 0.1, "mfu": 0.25, "tokens_per_second": 10240.0,
        "gemm_flops": 2e11, "steps": 20,
    }  # fmt: skip
    assert profile_line(found) == "of 100.0 ms a step: products 70%, rest 30%; MFU 25.0%"
    first, rest, step, told = profile_table(found).splitlines()
    assert rest.endswith("30.0 ms   Python between operations, and small ones")
    assert first == "products           70.0%     70.0 ms"
    assert told.startswith("(as one of 20 takes undisturbed; ")
    assert step.endswith("10,240 tokens/s, MFU 25.0% of the measured matrix product, 200 GFLOP/s")
