"""Kernels of small models in training are those of their traces."""

from __future__ import annotations

import pytest
import torch

from workbench.choices.execution import Mode
from workbench.forecasting.kernel_rates import VOCABULARY, SmallModel, models
from workbench.forecasting.meta_tensors import ModelSpec
from workbench.forecasting.trace import trace
from workbench.ops.timing import measure

MODE = Mode("cpu", 1, "bf16", False)


def test_kernels_of_a_model_in_training_are_those_of_its_trace() -> None:
    recipe = models(MODE)[0]
    with SmallModel(recipe) as small:
        timing = measure({"pass": small.pass_seconds}, least_seconds=0.0, limit_seconds=0.0)["pass"]
        readings = small.readings(timing)
        assert [reading.seconds for reading in readings] == list(timing.parts)
        real = sorted(reading.operation.key for reading in readings)
    found = trace(ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, 32), 4, 32, torch.bfloat16)
    parts = [found.shared, *(found.layers[sort] for sort in found.sorts), found.last, found.head]
    traced = sorted(operation.key for part in parts for operation in (*part.forward, *part.backward))
    missing = [key for key in set(real) if key not in traced]
    assert missing == []
    assert len(real) == pytest.approx(len(traced), rel=0.03)
