"""Measure a GPU in ten minutes: MFU of BERT's shapes, the engine's knobs, what a LANS step costs.

Every part is a process of its own with its own share of the time: one that fails or takes too long loses nobody else's
readings. The file is saved after every part, and a second start does those that are missing. ``--device cpu --scale
0.05`` goes the same way on any machine with models a twentieth as large.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from workbench.base.errors import check_known
from workbench.bench import execution, optimizer_steps
from workbench.bench.contender import TRAINER, note
from workbench.bench.result import ResultsFile, spread
from workbench.bench.rounds import Entrant, take_rounds
from workbench.bench.table import Options
from workbench.choices.data.prepare import prepare
from workbench.choices.execution import Native
from workbench.ops.remembered import device_name
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe
from workbench.store.folder import read_object, write_json
from workbench.store.state import die_with_parent
from workbench.training.machine import gemm_flops, peak_flops, revision

HEAD_WIDTH = 64
"""Shared by all these shapes, also when they are shrunk."""
ROUNDS, WARMUP = 5, 5


class Setting(NamedTuple):
    """Hold the request of a start; parts of an equal one are not repeated.

    Attributes:
        device: ``cuda`` or ``cpu``.
        scale: factor on layers, width, rows and tokens per row.
        steps: timed, per round.
        assignments: ``PATH=VALUE`` changes of every recipe.
    """

    device: str
    scale: float
    steps: int
    assignments: tuple[str, ...]

    def recipe(self, preset: str, layers: int, width: int, rows: int, length: int) -> Recipe:
        """Return a preset in some shape, scaled; one micro-batch is the whole batch."""
        heads = max(1, round(self.scale * width / HEAD_WIDTH))
        shape = {"layers": max(1, round(self.scale * layers)), "heads": heads, "width": heads * HEAD_WIDTH}
        rows, length = max(1, round(self.scale * rows)), max(8, round(self.scale * length / 8) * 8)
        data = {"sequence_length": length, "batch_size": rows}
        fields = {"architecture": shape, "data": data, "execution": {"device": self.device, "micro_batch_size": None}}
        # More than is ever timed, in the unit that no length changes.
        return presets.get(preset).with_(**fields, budget="100000 steps").with_assignments(self.assignments)


def data(setting: Setting, seconds: float) -> dict[str, Any]:
    """Return text of all other parts, tokenized once."""
    prepared = prepare(setting.recipe("bert_tiny", 4, 256, 32, 128).data)
    return {"tokens": prepared.train.tokens, "vocabulary": prepared.vocabulary.size}


def mfu(*shape: int, preset: str = "bert_base") -> Callable[[Setting, float], dict[str, Any]]:
    """Return a part that trains a shape (layers, width, rows, tokens per row) in bf16, packed, as a run does."""

    def part(setting: Setting, seconds: float) -> dict[str, Any]:
        recipe = setting.recipe(preset, *shape)
        mode = recipe.engine().mode
        # Before the contender starts, which would share the device.
        product, sheet = gemm_flops(mode), peak_flops(mode)
        entrants = {preset: Entrant(TRAINER, {"recipe": recipe.to_dict()})}
        held = take_rounds(entrants, rounds=ROUNDS, steps=setting.steps, warmup=WARMUP)
        ready, answers = held.ready[preset], held.answers[preset]
        rate = statistics.median(answer["flops"] / answer["seconds"] for answer in answers)
        return {
            "recipe": recipe.to_dict(), "tokens_per_second": spread(held.rates()[preset]), "flops_per_second": rate,
            "peak_flops": sheet, "mfu": None if sheet is None else rate / sheet, "product_flops": product,
            "share_of_product": rate / product, "memory_bytes": ready["memory_bytes"], "answers": answers,
            "ready": ready,
        }  # fmt: skip

    return part


def ablation(setting: Setting, seconds: float) -> dict[str, Any]:
    """Return the engine's knobs on the tiny shape."""
    recipe = setting.recipe("bert_tiny", 4, 256, 128, 128)
    # The second half of the share is for the group that is under way when the first is over.
    return execution.measure(recipe, rounds=ROUNDS, steps=setting.steps, warmup=WARMUP, seconds=seconds / 2)


def lans(setting: Setting, seconds: float) -> dict[str, Any]:
    """Return a step of LANS and of LAMB beside fused AdamW's, on BERT-large's shapes."""
    recipe = setting.recipe("bert_base", 24, 1024, 1, 512)
    threads = os.cpu_count() or 1
    return optimizer_steps.measure(recipe, ["lans", "lamb"], rounds=setting.steps, threads=threads)


class Part(NamedTuple):
    """A part: its share of the time in seconds, and what it does in it."""

    seconds: float
    run: Callable[[Setting, float], dict[str, Any]]


PARTS: dict[str, Part] = {
    "data": Part(60, data),
    "bert_base_512": Part(80, mfu(12, 768, 64, 512)),
    "bert_large_512": Part(110, mfu(24, 1024, 32, 512)),
    "tiny_128": Part(40, mfu(4, 256, 32, 128, preset="bert_tiny")),
    "tiny_128_large_batch": Part(40, mfu(4, 256, 512, 128, preset="bert_tiny")),
    "lans": Part(60, lans),
    "execution": Part(200, ablation),
}
"""In the order in which they run; what one leaves of its share goes to those behind it."""


def run_parts(results: ResultsFile, setting: Setting, names: list[str], minutes: float) -> dict[str, dict[str, Any]]:
    """Run the parts that ``results`` lacks, each in a process of its own, and save after each.

    Args:
        results: filled.
        setting: of all parts.
        names: of :data:`PARTS`.
        minutes: for all parts together; shares are stretched to it.

    Returns:
        by name ``state`` (``done``, ``failed``, ``out of time``), ``seconds``, ``setting`` and ``result`` or ``error``.
    """
    parts: dict[str, dict[str, Any]] = results.data.setdefault("parts", {})
    # What the numbers belong to: of another revision or device they are measured anew.
    device = Native(device=setting.device).resolve_device()
    here = {
        **setting._asdict(), "assignments": list(setting.assignments), "revision": revision(),
        "device_name": device_name(device),
    }  # fmt: skip
    stretch = 60 * minutes / sum(part.seconds for part in PARTS.values())
    began, due = time.monotonic(), 0.0
    for name in names:
        if parts.get(name, {}).get("state") == "done" and parts[name]["setting"] == here:
            note(f"{name}: done before")
            continue
        due += stretch * PARTS[name].seconds
        start = time.monotonic()
        found = _in_process(name, setting, due - (start - began))
        parts[name] = {**found, "seconds": round(time.monotonic() - start, 1), "setting": here}
        results.put(parts=parts)
        note(f"{name}: {found['state']} in {parts[name]['seconds']:.0f} s {found.get('error', '')}".rstrip())
    return parts


def _in_process(name: str, setting: Setting, seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path, log = Path(folder) / "result.json", Path(folder) / "log"
        command = [sys.executable, "-m", "workbench.bench.gpu", name, json.dumps(setting), str(seconds), str(path)]
        with log.open("w", encoding="utf-8") as file:
            # A session of its own, so that its contenders end with it.
            child = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
            try:
                code = child.wait(timeout=max(0.0, seconds))
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if code == 0:
            return {"state": "done", "result": read_object(path)}
        words = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
        return {"state": "out of time" if code is None else "failed", "error": words}


def measured(options: Options) -> dict[str, Any]:
    """Run the parts that are named and missing.

    Raises:
        WorkbenchError: a part that does not exist, or a device that is not there.
    """
    for name in options.parts:
        check_known("part", name, PARTS)
    setting = Setting(options.device, options.scale, options.steps, tuple(options.set))
    # Said before the file is locked.
    Native(device=setting.device).resolve_device()
    with options.results.own():
        parts = run_parts(options.results, setting, options.parts or list(PARTS), options.minutes)
    return {"unfinished": [name for name, part in parts.items() if part["state"] != "done"]}


def _part(name: str, setting: str, seconds: str, path: str) -> None:
    """Child process: run one part and leave its result at ``path``."""
    die_with_parent()
    device, scale, steps, assignments = json.loads(setting)
    asked = Setting(device, scale, steps, tuple(assignments))
    write_json(Path(path), PARTS[name].run(asked, float(seconds)))


if __name__ == "__main__":
    _part(*sys.argv[1:])
