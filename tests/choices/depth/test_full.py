"""Full depth: every layer, at any time."""

from __future__ import annotations

from workbench.choices.depth.full import Full
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.progress import Budget, Progress


def test_every_layer_runs_and_trains_at_scale_one() -> None:
    for step in (0, 1, 10**6):
        plan = Full().plan(5, Progress(step, 0, 0.0, Budget()), seed=step, micro_step=step)
        assert plan == LayerPlan((True,) * 5, (1.0,) * 5, (True,) * 5, (1.0,) * 5, 5)
    assert Full().scheduled_values(Progress(0, 0, 0.0, Budget())) == {}
