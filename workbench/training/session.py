"""One attempt of a run: the loop, and all that happens between its steps: requests, evaluations, checkpoints."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from workbench.base.errors import FREE_SPACE, RunError
from workbench.choices.execution.ranks import Ranks
from workbench.choices.progress import Progress
from workbench.recipes.recipe import Recipe
from workbench.store.evaluations import BITS_PER_BYTE, HELDOUT_LOSS, point_of
from workbench.store.folder import RunFolder, write_json
from workbench.store.full_disk import fill_reserve, unwritable
from workbench.store.state import mean_speed, read_state
from workbench.telemetry.baselines import References
from workbench.telemetry.profile_table import profile_line
from workbench.telemetry.streams import TelemetryWriter
from workbench.training import checkpoint, machine, together
from workbench.training.evaluate import Evaluation, evaluated, points_passed
from workbench.training.forks import done_before
from workbench.training.loop import Training
from workbench.training.profiling import profiled
from workbench.training.recorder import NotFinite
from workbench.training.requests import Requests
from workbench.training.start import Start
from workbench.training.status import Status
from workbench.training.task import RecipeTask, Task
from workbench.training.warmup import compile_ahead, usual_time


class Session:
    """Trains the recipe in a run's folder until its budget is spent or somebody asks it to stop.

    Args:
        folder: of the run; holds ``recipe.json``.
        task: what to train; None for what the recipe describes.
        ranks: says how many processes train, of which this is the first; None for this one alone.

    Attributes:
        stop_reason, pause_reason: why the run ends or stands still, or is about to; empty while it trains.
        knob_overrides: knobs that are not as ``recipe.json`` has them.
    """

    def __init__(
        self, folder: RunFolder, status: Status, resume: bool, task: Task | None = None, ranks: Ranks | None = None
    ) -> None:
        self.folder, self.status, self.ranks = folder, status, ranks or Ranks()
        self.stop_reason = self.pause_reason = ""
        # A full or read-only disk must not cost the run: it stands still until it can write.
        self.writer = TelemetryWriter(folder.telemetry, on_full=self.pause)
        checkpoint.remove_leftovers(folder.checkpoints)
        start = Start.of(folder, status, resume, task)
        self.launched, self.task, self._recipe_hash = start.launched, start.task, start.recipe_hash
        self.engine, held_before = start.engine(self.ranks)
        self.assembled, self._references = start.assemble(self.engine)
        saved, self.knob_overrides = start.restore(self.assembled, self.writer)
        self.environment = start.describe(self.assembled, self._references, held_before)
        self.training = self._training(saved.meta if saved else {}, saved.step if saved else 0)
        self.requests = Requests(self)
        progress = self.training.progress
        self._evaluations = start.rewind(progress.step if resume else 0, self._references, self.writer)
        # What an earlier attempt has evaluated is not due again.
        self._passed = points_passed(progress)
        # monotonic: a clock that is set must neither stop checkpoints nor rain them.
        self._saved_at = time.monotonic()
        self._rechecks_at: int | None = progress.step + machine.SETTLED_STEPS

    def run(self) -> str:
        """Train to the end; returns the final status, ``finished`` or ``stopped``.

        Raises:
            NotFinite: the loss became NaN or infinite.
            Exception: whatever else made it impossible to go on; the last checkpoint is whole.
        """
        self._compile()
        self.status.follow(self.training)
        self.status.stage("", status="running", started=read_state(self.folder).started or time.time())
        self.environment["start_seconds"] = self.status.stages
        write_json(self.folder.environment, self.environment)
        self.requests.write_knobs()
        # Of optimizers whose step may be a fused kernel: the same run takes longer without it.
        path = getattr(self.assembled.optimizer, "path", None)
        stages = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.status.stages.items())
        parts = (f"before that: {stages}", str(self.ranks), path and f"optimizer step by {path}", self.task.note)
        text = f"training on {self.environment['device']}" + "".join(f"; {part}" for part in parts if part)
        begun = self.training.progress.step
        # Whether what was turned at this very step is still turned.
        self.writer.event(begun, "start", text, optimizer_path=path, turned=self.knob_overrides.step == begun)
        try:
            while not self.training.progress.done and not self.stop_reason:
                self.status.check_folder()
                self.requests.answer()
                if self.pause_reason:
                    self._stand_still(self.pause_reason)
                    continue
                # A profile takes steps of its own.
                if not self.training.progress.done:
                    self.training.step()
                    self._keep_up()
            return self._end()
        except NotFinite as error:
            step, text = self.knob_overrides.way_on(self.folder.checkpoints)
            self.status.write(resume_step=step, repeats=step is None and isinstance(self.task, RecipeTask))
            error.args = (f"{error}; {text}",)
            raise
        finally:
            self.training.close()
            self.writer.close()

    @property
    def _peak_flops(self) -> float:
        """Return the rate that MFU is a share of, FLOP/s."""
        return float(self.environment["peak_flops"] or self.environment["gemm_flops"]) * self.ranks.size

    def stop(self, why: str) -> None:
        """End after the present step, with a checkpoint (also called from a signal handler)."""
        self.stop_reason = self.stop_reason or why

    def pause(self, why: str) -> None:
        """Stand still after the present step until somebody says resume (also called from other threads)."""
        self.pause_reason = self.pause_reason or why

    def unpause(self) -> bool:
        """Go on after a pause; whether there was one."""
        paused, self.pause_reason = bool(self.pause_reason), ""
        return paused

    def turn(self, path: str, value: Any, recipe: Recipe, text: str) -> None:
        """Go on under a recipe that differs in one knob; the next checkpoint holds that, ``recipe.json`` does not."""
        self.knob_overrides.turn(path, value, self.training.progress.step, text)
        self.training.change(recipe)

    def _training(self, meta: Mapping[str, Any], step: int) -> Training:
        """Return the training of what stands here, from what a checkpoint says of its step."""
        # Knobs turned before the checkpoint stay turned; recipe.json stays what was launched.
        recipe = self.launched.with_(**self.knob_overrides.overrides)
        tokens, seconds = int(meta.get("tokens", 0)), float(meta.get("seconds", 0.0))
        progress = Progress(step=step, tokens=tokens, seconds=seconds, budget=recipe.budget)
        training = Training(
            recipe, self.assembled, self.writer, progress, self._peak_flops, float(meta.get("useful_flops", 0.0)),
            meta.get("growth"), meta.get("batch"), meta.get("position"),
        )  # fmt: skip
        # Checkpoints from before there were engines hold a loss scale.
        self.engine.restore(meta.get("engine", meta.get("scaler")) or {})
        return training

    def _compile(self) -> None:
        step, compiled = self.training.progress.step, self.engine.compiled
        self.status.stage("compiling" if compiled else "warming up", usual_time(self.training) if compiled else "")
        together.lead(self.training, self.folder.id, self.launched, self.environment)
        seconds = compile_ahead(self.training)
        self.engine.save_graphs(self.folder.graphs)
        # What the engine has settled since the run was described, too.
        self.environment |= self.engine.described() | {"compile_seconds": round(seconds, 3)}
        text = f"{'compiled and ' * compiled}warmed up in {seconds:.1f} s"
        self.writer.event(step, "compile" if compiled else "warm-up", text, seconds=seconds)

    def _keep_up(self) -> None:
        """Evaluate and save when due. Evaluation first, so that a checkpoint never hides a point that is due."""
        self._recheck()
        progress = self.training.progress
        passed = points_passed(progress)
        if passed > self._passed and not progress.done:
            self._passed = passed
            if self.task.scored:
                self.requests.timed("evaluate", lambda: self.evaluate(final=False))
        if time.monotonic() - self._saved_at >= self.launched.budget.checkpoint_seconds and not progress.done:
            self.requests.timed("checkpoint", self.save)

    def _recheck(self) -> None:
        """Once an attempt, when it has settled: does the machine contradict what is remembered of it? Not charged."""
        progress = self.training.progress
        if self._rechecks_at is None or not (progress.step >= self._rechecks_at or progress.done):
            return
        self._rechecks_at = None
        self.training.settle()
        for found in machine.contradictions(self.engine):
            self.writer.event(
                progress.step, "measurement", found.text, **asdict(found), attention=self.engine.attention
            )
            # From here on MFU is a share of what holds now.
            self.environment["gemm_flops"] = machine.gemm_flops(self.engine.mode)
            self.training.recorder.peak_flops = self._peak_flops
            self._write(self.folder.environment, self.environment)

    def evaluate(self, *, final: bool) -> Evaluation:
        """Return held-out loss now: written to evaluations, telemetry and state; not charged to the budget.

        Raises:
            RunError: the run has no held-out data.
        """
        if not self.task.scored:
            raise RunError(f"run '{self.folder.id}' cannot evaluate: {self.task.note}")
        self.training.settle()
        self.status.write(message="evaluating")
        progress = self.training.progress
        recipe, average = self.training.recipe, self.assembled.average
        result = evaluated(lambda: self.task.evaluate(recipe, final=final), average, self.training.model)
        at = (progress.step, progress.tokens, progress.seconds)
        self._evaluations["points"].append(point_of(*at, result.scores, evaluated_tokens=result.tokens))
        self._write(self.folder.evaluations, self._evaluations)
        bits = {} if result.bits_per_byte is None else {"bits_per_byte": result.bits_per_byte}
        more = {name: score.value for name, score in result.second.items()}
        self.writer.scalars(progress.step, progress.seconds, progress.tokens, heldout_loss=result.loss, **bits, **more)
        self.writer.event(progress.step, "evaluation", result.words, loss=result.loss, evaluated_tokens=result.tokens)
        self.status.write(message=self.pause_reason, heldout_loss=result.loss)
        return result

    def profile(self) -> str:
        """Profile the coming steps and return their time in words; a stop or pause ends it early."""
        self.status.write(message="profiling")
        found = profiled(self.training, self.requests.interruption)
        written = self._write(self.folder.profile, found)
        self.status.write(message=self.pause_reason)
        if not written:
            raise RunError(self.pause_reason)
        return profile_line(found)

    def save(self) -> Path | None:
        """Return checkpoint now. On a full or read-only disk: None, and the run stands still until it can write."""
        self.training.settle()
        training, progress = self.training, self.training.progress
        self._saved_at = time.monotonic()
        model, tied = checkpoint.model_tensors(training.model)
        # A checkpoint is what a resume begins with: weights broken after the last loss would be kept for good.
        if not checkpoint.all_finite(training.model):
            raise training.not_finite(f"the weights hold NaN or infinite values after step {progress.step}")
        tensors, rest = checkpoint.optimizer_tensors(training.optimizer)
        meta = {
            "tokens": progress.tokens,
            "seconds": progress.seconds,
            "useful_flops": training.recorder.useful_flops,
            "optimizer": rest,
            "engine": self.engine.state(),
            "tied": tied,
            "growth": training.growth.state(),
            "batch": training.batch_size.state(),
            "position": training.batches.state(),
            **self.knob_overrides.state(),
            "recipe_hash": self._recipe_hash,
            "torch": torch.__version__,
        }
        try:
            parts = {"model": model, "optimizer": tensors} | self.assembled.averages
            path = checkpoint.save(self.folder.checkpoints, progress.step, parts, meta)
        except checkpoint.CheckpointError as error:
            self.writer.event(progress.step, "warning", str(error))
            self.pause(str(error))
            return None
        checkpoint.prune(self.folder.checkpoints, spare=self.knob_overrides.step)
        self.writer.event(progress.step, "checkpoint", f"saved {path.name}")
        return path

    def _stand_still(self, why: str) -> None:
        """Pause with a checkpoint; waits for resume or stop and answers other requests meanwhile."""
        self.save()
        step = self.training.progress.step
        self.status.write(status="paused", message=why)
        self.writer.event(step, "pause", why)
        while self.pause_reason and not self.stop_reason:
            self.status.check_folder()
            self.requests.answer()
            time.sleep(0.1)
        if not self.stop_reason:
            self._write(self.folder.evaluations, self._evaluations)
            # The pause may have used it; where it cannot be filled the disk is full again, and the next write says so.
            with contextlib.suppress(OSError):
                fill_reserve(self.folder)
            self.status.write(status="running", message="")
            self.writer.event(step, "resume", "going on")

    def _write(self, path: Path, value: Any) -> bool:
        """Replace a file of the run; False on a full or read-only disk: the run stands still until it can write."""
        try:
            write_json(path, value)
        except OSError as error:
            if not unwritable(error):
                raise
            self.pause(f"{path.name} could not be written ({error}); {FREE_SPACE}")
            return False
        return True

    def _end(self) -> str:
        self.training.settle()
        if self.stop_reason:
            self.status.write(status="stopping", message=f"{self.stop_reason}: saving a checkpoint")
            # No final evaluation: whoever stops a run is waiting for it to end.
            self.writer.event(self.training.progress.step, "stop", self.stop_reason)
        elif self.task.scored:
            self.evaluate(final=True)
        while True:
            self._evaluations["result"] = self._result()
            saved = self.save()
            if (self._write(self.folder.evaluations, self._evaluations) and saved) or self.stop_reason:
                break
            # What a full disk refuses now would be lost with the process.
            self._stand_still(self.pause_reason)
        status = "stopped" if self.stop_reason else "finished"
        where = "" if saved else f"; no checkpoint of the end could be saved, {FREE_SPACE}"
        self.writer.event(self.training.progress.step, "finish", f"{status}{where}")
        self.status.write(status=status, message=where.removeprefix("; "), exit_code=0)
        self.ranks.dismiss()
        return status

    def _result(self) -> dict[str, Any]:
        progress, recorder, before = self.training.progress, self.training.recorder, done_before(self.folder)
        last = self._evaluations["points"][-1]["scores"] if self._evaluations["points"] else {}
        loss, bits = (last.get(name, {}).get("value") for name in (HELDOUT_LOSS, BITS_PER_BYTE))
        measured_with = References.of(self._evaluations, {}, causal=self.launched.objective.causal)
        seconds = max(progress.seconds - before["seconds"], 1e-9)
        return {
            "steps": progress.step,
            "tokens": progress.tokens,
            "seconds": progress.seconds,
            "tokens_per_second": mean_speed(progress.tokens - before["tokens"], seconds),
            "train_loss": sum(recorder.recent) / len(recorder.recent) if recorder.recent else None,
            "heldout_loss": loss,
            "bits_per_byte": bits,
            "unigram_entropy": self._references["unigram_entropy"],
            "bigram_entropy": self._references["bigram_entropy"],
            "learned": measured_with.learned(loss),
            "mfu": (recorder.useful_flops - before["useful_flops"]) / seconds / self._peak_flops,
            "parameters": self.assembled.parameters,
            "useful_flops": recorder.useful_flops,
            "stopped_early": bool(self.stop_reason),
        }
