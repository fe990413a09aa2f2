"""The study: every method against the fully decayed AdamW baseline at equal reference time, resumable at any moment.

Protocol (claim 2 of an honest comparison). Seconds per step of every arm are calibrated side by side; a budget in
reference time then gives each arm its number of steps, and its schedules end exactly there. The learning rate of every
arm whose optimum may move is searched for on a seed and at a budget of their own, by one rule for all, the baseline
included. Then fresh paired seeds, one held-out evaluation at the end of each run, every run listed.
"""

from __future__ import annotations

import math
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.bench.arms import BASELINE, TRIED, Arm, StudySet
from workbench.bench.calibration import calibrate, seconds_per_unit, steps_for
from workbench.bench.contender import Contender
from workbench.bench.result import hardware, revision, versions
from workbench.bench.study_results import StudyResults, definition, essence
from workbench.recipe import Recipe

WORKER = "workbench.bench.study_worker"
TUNING_SEED = 0
EXTENSIONS = 2
"""Factors tried beyond the grid, while the best one is at an end of it."""


@dataclass(frozen=True)
class Task:
    """One run: its key in the results and its recipe."""

    key: str
    recipe: Recipe

    @property
    def definition(self) -> str:
        """What must be equal for a saved run to be this one."""
        return definition(self.recipe)


class Study:
    """A study set on one text, filling one results file.

    Args:
        study: what is compared.
        base: its recipe, on the text to use; None for its own.
        results: where finished runs are kept.
        only: names or sections of arms; empty means all. The baseline is always among them.
        say: told what happens, one line at a time.
    """

    def __init__(
        self,
        study: StudySet,
        results: StudyResults,
        base: Recipe | None = None,
        only: Sequence[str] = (),
        say: Callable[[str], None] = print,
    ) -> None:
        self.study, self.results, self.say = study, results, say
        self.base = base or study.base()
        wanted = [arm for arm in study.arms if not only or {arm.name, arm.section} & set(only)]
        # With all that they are compared with, and cost as much as.
        names = {BASELINE} | {n for arm in wanted for n in (arm.name, arm.against, arm.costs_as) if n}
        chosen = [arm for arm in study.arms if arm.name in names]
        self.missing = {arm.name: why for arm in chosen if (why := arm.unavailable(self.base))}
        self.arms = [arm for arm in chosen if arm.name not in self.missing]
        self._rate: Future[float] = Future()
        self._children: set[Contender] = set()
        self._stopping = threading.Event()

    # --- what is to be done -------------------------------------------------------------------------------------

    def uncalibrated(self) -> dict[str, Recipe]:
        """Arms whose steps have not been timed yet and cannot be taken to cost what others cost."""
        known = self.results.data.get("calibration", {}).get("arms", {})
        timed = [arm for arm in self.arms if arm.name != BASELINE and arm.tokens is None and arm.costs_as is None]
        return {
            arm.name: arm.recipe(self.base).with_(budget={"unit": arm.unit})
            for arm in timed
            # An arm that could not be timed is tried again: it may have been mended.
            if "ratio" not in known.get(arm.name, {})
        }

    def budget(self, arm: Arm, share: float = 1.0) -> dict[str, Any]:
        """Budget of one run: ``share`` of the study's reference time in the arm's unit, or its fixed tokens."""
        if arm.tokens is not None:
            return {"unit": "tokens", "amount": arm.tokens}
        calibration, seconds = self.results.data["calibration"], self.seconds * share
        tokens = self.base.data.most_rows * self.base.data.longest if arm.unit == "tokens" else None
        per_unit = seconds_per_unit(calibration, arm.costs_as or arm.name, tokens)
        return {"unit": arm.unit, "amount": steps_for(seconds, per_unit)}

    @property
    def seconds(self) -> float:
        """Reference time of a run: what the baseline takes for the study's number of steps."""
        return self.study.steps * seconds_per_unit(self.results.data["calibration"], BASELINE)

    def tuning(self, arm: Arm, start: float, factor: float) -> Task:
        """A run of the search for an arm's learning rate."""
        return self._task(arm, f"tune/{factor:g}", start * factor, TUNING_SEED, self.study.tuning_share)

    def final(self, arm: Arm, lr: float, seed: int) -> Task:
        """A run that counts."""
        return self._task(arm, f"seed/{seed}", lr, seed, 1.0)

    def seeds(self, arm: Arm) -> range:
        """Fresh seeds of an arm, from 1 on."""
        return range(1, (arm.seeds or self.study.seeds) + 1)

    def _task(self, arm: Arm, key: str, lr: float, seed: int, share: float) -> Task:
        # Six digits: a rate that is written, read and written again must stay the same recipe.
        changes: dict[str, Any] = {"optimizer.lr": float(f"{lr:.6g}"), "seed": seed, "budget": self.budget(arm, share)}
        return Task(f"{arm.name}/{key}", arm.recipe(self.base).with_(**changes))

    # --- doing it -----------------------------------------------------------------------------------------------

    def calibrate(self, **options: Any) -> None:
        """Time the steps of all arms that have not been timed; kept group by group."""
        todo, data = self.uncalibrated(), self.results.data
        if not todo and "calibration" in data:
            return
        before = dict(data.get("calibration", {"arms": {}}))

        def keep(found: dict[str, Any]) -> None:
            merged = {**found, "arms": {**before["arms"], **found["arms"]}}
            # The reference of the first calibration stays: budgets of runs already made were cut from it.
            for name in ("baseline_seconds_per_step", "busy", "load", "date"):
                if before.get(name):
                    merged[name] = before[name]
            self.results.put(calibration=merged)

        keep(calibrate(self.base, todo, say=self.say, keep=keep, **options))

    def run(self, jobs: int = 2) -> int:
        """Run all that is missing on ``jobs`` worker processes; returns how many arms failed.

        Raises:
            KeyboardInterrupt: stopped by the user; finished runs are kept.
        """
        self._describe()
        # Compilation in the worker's own process: two pools of compilers would fight for the cores.
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        with tempfile.TemporaryDirectory() as logs, ThreadPoolExecutor(jobs) as pool:
            # In the table's order, the baseline first: others wait for its learning rate.
            futures = {arm.name: pool.submit(self._arm, arm, Path(logs)) for arm in self.arms}
            try:
                failed = [name for name, future in futures.items() if not future.result()]
            except BaseException:
                self._stop(futures.values())
                raise
        return len(failed)

    def _stop(self, futures: Any) -> None:
        self._stopping.set()
        for future in futures:
            future.cancel()
        if not self._rate.done():
            self._rate.cancel()
        for child in list(self._children):
            child.kill()

    def _arm(self, arm: Arm, logs: Path) -> bool:
        """Everything an arm still lacks; False when it could not be finished."""
        log = logs / f"{self.arms.index(arm)}.log"
        try:
            calibration = self.results.data["calibration"]["arms"].get(arm.costs_as or arm.name, {})
            if "error" in calibration:
                raise RuntimeError(f"its steps could not be timed: {calibration['error']}")
            with self._worker(arm, log) as loss_of:
                start = self._start(arm)
                lr = self._search(arm, start, loss_of) if arm.tuned else start
                if arm.name == BASELINE:
                    self._rate.set_result(lr)
                for seed in self.seeds(arm):
                    loss_of(self.final(arm, lr, seed))
        # Of any kind: one arm that cannot be trained must not cost the others.
        except Exception as error:
            if not self._stopping.is_set():
                # The last line only: a traceback names folders of this machine, and the file is meant to be shared.
                self.results.fail(arm.name, (str(error) or repr(error)).splitlines()[-1])
                self.say(f"{arm.name} FAILED: {error}")
                if arm.name == BASELINE and not self._rate.done():
                    self._rate.set_exception(RuntimeError("the baseline failed, and its learning rate is not known"))
            return False
        return True

    def _start(self, arm: Arm) -> float:
        """The rate an arm begins with: its own, or the baseline's tuned one (waits for it)."""
        own = "optimizer" in arm.changes or arm.name == BASELINE
        rate: float = arm.recipe(self.base).optimizer.lr if own else self._rate.result()
        return rate

    def _search(self, arm: Arm, start: float, loss_of: Callable[[Task], float]) -> float:
        factor = best_factor(lambda factor: loss_of(self.tuning(arm, start, factor)))
        if factor is None:
            raise RuntimeError(f"diverged at every learning rate tried around {start:g}")
        return float(f"{start * factor:.6g}")

    @contextmanager
    def _worker(self, arm: Arm, log: Path) -> Iterator[Callable[[Task], float]]:
        """Yields what runs a task, or looks its result up; the process is started by the first that must be run."""
        child: Contender | None = None

        def loss_of(task: Task) -> float:
            nonlocal child
            known = self.results.loss(task.key, task.definition)
            if known is not None:
                return known
            if self._stopping.is_set():
                raise RuntimeError("stopped")
            if child is None:
                child = Contender(WORKER, {"name": arm.name, "recipe": task.recipe.to_dict()}, log)
                self._children.add(child)
                self.results.put(unigram_entropy=child.ready["unigram_entropy"])
            answer = child.ask({"recipe": task.recipe.to_dict()})
            phase, what = task.key.removeprefix(f"{arm.name}/").split("/")
            record = {
                "arm": arm.name, "phase": phase, "lr": task.recipe.optimizer.lr, "seed": task.recipe.seed,
                "budget": str(task.recipe.budget), "definition": task.definition, **answer,
            }  # fmt: skip
            self.results.add(task.key, record if phase == "seed" else {**record, "factor": float(what)})
            loss = math.inf if answer["loss"] is None else float(answer["loss"])
            outcome = answer.get("diverged") or f"held-out loss {loss:.4f}"
            self.say(f"{task.key}: {outcome} ({answer['steps']} steps, {answer['wall_seconds']:.0f} s)")
            return loss

        try:
            yield loss_of
        finally:
            if child is not None:
                self._children.discard(child)
                child.kill()

    def _describe(self) -> None:
        shared = essence(self.base)
        self.results.put(
            set=self.study.name, note=self.study.note, seconds=round(self.seconds, 2), base=shared,
            # Names only: where somebody keeps a corpus is nobody else's business.
            text=sorted(Path(path).name for path in getattr(self.base.data, "paths", ())) or self.base.data.kind,
            arms={arm.name: {"section": arm.section, "changes": arm.resolved(self.base)} for arm in self.arms},
            missing=self.missing, hardware=hardware(), versions=versions(), revision=revision(),
        )  # fmt: skip


def best_factor(loss_of: Callable[[float], float]) -> float | None:
    """The factor on a learning rate with the least loss: a small grid, extended while the best is at its end.

    Args:
        loss_of: held-out loss in nats at a factor; infinite where training diverged.

    Returns:
        the factor; None when every one diverged.
    """
    losses = {factor: loss_of(factor) for factor in TRIED}
    for _ in range(EXTENSIONS):
        best = min(losses, key=losses.__getitem__)
        if best not in (min(losses), max(losses)):
            break
        # min() of equals is the first: when all diverged, that is the lowest rate, and the search goes down.
        further = best / 2 if best == min(losses) else best * 2
        losses[further] = loss_of(further)
    best = min(losses, key=losses.__getitem__)
    return best if math.isfinite(losses[best]) else None
