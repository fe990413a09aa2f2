"""Rates of a machine that never was: round numbers, so that prices can be worked out by hand."""

from __future__ import annotations

from workbench.choices.choice import registry
from workbench.forecasting.rates import OptimizerRates, Rates

RATES = Rates(
    device="a machine that never was",
    date="2026-01-01",
    kernels={"product": (0.0, 1e-10, 0.0, 0.0, 0.0), "attention": (0.0, 1e-10, 0.0, 0.0, 0.0), "other": (0.0, 1e-10)},
    attention_choice={"64": "plain", "512": "sdpa"},
    optimizers={
        kind: OptimizerRates(matrix=((128.0, 1e-9), (384.0, 1e-9)), embedding=1e-9, vector=1e-6)
        for kind in registry("optimizer")
    },
    memory_bytes=8 << 30,
)
