"""Races of a tiny recipe on a machine that never was, and runs that have ended without having trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.begun import Waiting, root, tiny
from tests.forecasting.machine_rates import RATES
from workbench.experiments.experiment_folder import RaceFolder
from workbench.experiments.race.race import Race
from workbench.experiments.race.race_plan import Entry, RacePlan, plan_race
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder, write_json
from workbench.store.state import write_state

__all__ = ["root", "tiny"]
FLOOR = 3.0


@pytest.fixture
def planned(tiny: Recipe, root: Path) -> Callable[..., RacePlan]:
    """``planned(seeds=4, ...)`` -> the plan of a race of ``mine`` against ``baseline``."""

    def plan(arms: dict[str, Any] | None = None, budget: str | None = "200 steps", **options: Any) -> RacePlan:
        arms = arms or {"baseline": tiny, "mine": tiny.with_(optimizer={"lr": 2e-3})}
        return plan_race(arms, budget, **{"runs_dir": root, "rates": RATES, "seeds": 4, **options})

    return plan


def end(plan: RacePlan, entry: Entry, loss: float, floor: float = FLOOR) -> RunFolder:
    """The folder of an entry's run, as one that has finished leaves it."""
    folder = RunFolder(Path(plan.runs_dir) / plan.run_id(entry))
    folder.path.mkdir(parents=True, exist_ok=True)
    points = [{"step": step, "tokens": 256 * step, "seconds": 0.01 * step, "loss": loss + 100 / step}
              for step in (50, 100, 150)]  # fmt: skip
    points.append({"step": 200, "tokens": 51_200, "seconds": 2.0, "loss": loss})
    points = [point | {"bits_per_byte": point["loss"] / 3} for point in points]
    write_json(folder.evaluations, {
        "score": {"kind": "masked-only", "version": 2}, "unigram_entropy": floor, "bigram_entropy": 0.5,
        "heldout": points, "result": {"heldout_loss": loss, "bits_per_byte": loss / 3, "steps": 200, "seconds": 2.0,
                                      "learned": "neighbours"},
    })  # fmt: skip
    write_json(folder.recipe, plan.arms[entry.arm])
    write_json(folder.environment, {"git": "0123456789ab"})
    write_state(folder, status="finished", progress=1.0)
    return folder


class Starter(Waiting):
    """Runs of a race that end when told."""

    def __init__(self, plan: RacePlan, loss: Callable[[Entry], float]) -> None:
        super().__init__()
        self.plan, self.loss = plan, loss
        self.entries = {plan.run_id(entry): entry for entry in plan.entries(len(plan.seeds), plan.others)}

    def note(self, folder: RunFolder, recipe: Recipe) -> None:
        self.launched.append((self.entries[folder.id], recipe))
        self.going.append(self.entries[folder.id])

    def end_all(self) -> None:
        """The runs that are going end."""
        for entry in self.going:
            end(self.plan, entry, self.loss(entry))
        self.going.clear()


def loss(entry: Entry) -> float:
    """Mine is worse by 0.5 nats, with noise of its own."""
    return 2.0 + (entry.arm == "mine") * (0.5 + 0.01 * (entry.seed % 3)) - 0.2 * (entry.ratio - 1)


def written(plan: RacePlan) -> RaceFolder:
    """The folder of a race that nobody drives."""
    folder = RaceFolder(RaceFolder.root(plan.runs_dir) / plan.id)
    folder.path.mkdir(parents=True)
    write_json(folder.plan, plan.to_dict())
    return folder


def held(plan: RacePlan, loss: Callable[[Entry], float] = loss) -> Race:
    """A race that has ended, without a process."""
    folder, starter = written(replace(plan, at_once=100)), Starter(plan, loss)
    while folder.read_state()["status"] == "racing":
        Race(folder).advance(starter)
        starter.end_all()
    return Race(folder)
