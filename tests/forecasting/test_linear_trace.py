"""A drawing for any number of rows: what grows with them and what does not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.forecasting.test_trace import VOCABULARY
from workbench import presets
from workbench.forecasting import trace as tracing
from workbench.forecasting.linear_trace import LinearTrace
from workbench.forecasting.meta_tensors import ModelSpec
from workbench.forecasting.trace import shortened, trace


def _linear_trace(**change: Any) -> tuple[Any, LinearTrace]:
    recipe = presets.fast().with_(**change)
    short = shortened(recipe.architecture)
    drawn = tracing._linear_trace(
        ModelSpec(short.architecture, recipe.objective, VOCABULARY, 64), short.runs, 64, recipe.engine().dtype
    )
    return recipe, drawn


@pytest.mark.parametrize("rows", [1, 3, 16])
@pytest.mark.parametrize("change", [{}, {"objective": "causal"}, {"architecture": {"positions": "tupe_r"}}])
def test_the_rows_that_were_traced_do_not_show(
    rows: int, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, drawn = _linear_trace(**change)
    tracing._linear_trace.cache_clear()
    # Another prime: nothing may depend on which it is.
    monkeypatch.setattr(tracing, "PRIMES", (10_039,))
    _, other = _linear_trace(**change)
    tracing._linear_trace.cache_clear()
    sorts = (0,) * (recipe.architecture.layers - 1)
    assert drawn.at(rows, sorts) == other.at(rows, sorts)


def test_weights_do_not_grow_with_rows_and_activations_do() -> None:
    recipe, _ = _linear_trace()
    spec = ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, 64)
    one, two = (trace(spec, rows, 64, torch.float32) for rows in (4, 8))
    assert two.labels == 2 * one.labels
    assert two.head_peak < 2 * one.head_peak
    for few, many in zip(one.layers[0].forward, two.layers[0].forward, strict=True):
        assert many.flops == 2 * few.flops
        assert many.bytes <= 2 * few.bytes
        assert (many.name, many.key, many.kind) == (few.name, few.key, few.kind)


def test_parts_are_kept_apart() -> None:
    _, drawn = _linear_trace()
    assert len(drawn.layers) == 1
    assert any(fixed[0] == "embedding" for fixed, _ in drawn.shared.forward)
    assert any("log_softmax" in fixed[0] for fixed, _ in drawn.head.forward)
    assert not any("softmax" in fixed[0] for fixed, _ in drawn.shared.forward)
