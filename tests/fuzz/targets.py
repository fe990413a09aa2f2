"""What is fuzzed: for each kind of input a case from a seed, and the readers that must answer it properly."""

from __future__ import annotations

import contextlib
import json
import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from tests.fuzz.mutations import damaged_bytes, damaged_text, json_text, nested
from workbench import presets
from workbench.base.errors import RecipeError
from workbench.base.json_lines import parsed
from workbench.client.comparison import compare
from workbench.client.fork_point import steps_of
from workbench.client.run import Run
from workbench.client.run_list import RunList
from workbench.client.summary import describe
from workbench.jupyter.compose.recipe_text import as_json, read_json
from workbench.jupyter.compose.text_problems import TextError
from workbench.jupyter.feed.track import Track
from workbench.plots.report import report_html
from workbench.recipes.recipe import Recipe
from workbench.store import control
from workbench.store.checkpoints import checkpoints, problem_with, state_of
from workbench.store.folder import RunFolder
from workbench.store.lease import read_lease
from workbench.store.origin import origin_of
from workbench.store.view import RunView
from workbench.telemetry.streams import read_telemetry


class Target(ABC):
    """One kind of input.

    Args:
        scratch: a folder of its own, on a file system in memory where there is one.
    """

    name: ClassVar[str]
    small: ClassVar[int]
    """Cases in the suite: seconds."""
    large: ClassVar[int]
    """Cases of ``make fuzz``."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch

    @abstractmethod
    def case(self, random: Random) -> Any:
        """A case, printable."""

    @abstractmethod
    def check(self, case: Any, random: Random) -> None:
        """Read it as the workbench does; any exception that leaves this is an escape."""


class Recipes(Target):
    """Recipes as fields, as JSON and as ``PATH=VALUE``: a recipe that comes back the same, or a RecipeError."""

    name, small, large = "recipes", 1_500, 1_000_000
    _bases: ClassVar = [presets.get(name).to_dict() for name in presets.names()]

    def case(self, random: Random) -> Any:
        fields = nested(random.choice(self._bases), random)
        way = random.random()
        if way < 0.5:
            return ("fields", fields)
        if way < 0.75:
            text = json_text(fields)
            return ("json", damaged_text(text, random) if random.random() < 0.5 else text)
        edits = list(fields.items()) if isinstance(fields, dict) else []
        picked = random.sample(edits, min(len(edits), 3))
        return ("edits", [damaged_text(f"{key}={json_text(value)}", random) for key, value in picked])

    def check(self, case: Any, random: Random) -> None:
        how, given = case
        with contextlib.suppress(RecipeError):
            if how == "fields":
                # Half of JSON's values are no keywords at all.
                recipe = Recipe(**given) if isinstance(given, dict) else Recipe.from_json(json_text(given))
            else:
                recipe = Recipe.from_json(given) if how == "json" else presets.fast().with_assignments(given)
            assert Recipe.from_json(recipe.to_json()).hash == recipe.hash


class PastedText(Target):
    """JSON pasted into the Lab: a recipe, or problems with their lines."""

    name, small, large = "pasted", 400, 100_000
    _json: ClassVar = [as_json(presets.get(name).to_dict()) for name in presets.names()]

    def case(self, random: Random) -> Any:
        return damaged_text(random.choice(self._json), random)

    def check(self, case: Any, random: Random) -> None:
        with contextlib.suppress(TextError):
            read_json(case)


class Telemetry(Target):
    """Streams of a run: every reader of them draws what can be read and leaves out the rest."""

    name, small, large = "telemetry", 150, 100_000

    def case(self, random: Random) -> Any:
        streams = {}
        for stream, records in _records(random).items():
            lines = [json_text(nested(r, random) if random.random() < 0.2 else r).encode() for r in records]
            block = b"".join(line + b"\n" for line in lines)
            streams[stream] = damaged_bytes(block, random) if random.random() < 0.4 else block
        return streams

    def check(self, case: Any, random: Random) -> None:
        folder = RunFolder(self.scratch / "20260101-000000-a-000000-0000")
        folder.telemetry.mkdir(parents=True, exist_ok=True)
        for stream, block in case.items():
            (folder.telemetry / f"{stream}.jsonl").write_bytes(block)
            parsed(block)
        telemetry = read_telemetry(folder.telemetry)
        for x in ("step", "seconds", "tokens"):
            for name in ("loss", "lr", "heldout_loss"):
                assert len(set(map(len, telemetry.series(name, x)))) == 1
        track = Track(folder)
        track.poll()
        while track.loading:
            track.poll()
        if random.random() < 0.01:
            report_html([RunView.read(folder)])


class RunFolders(Target):
    """Run folders: lists, tables, reports and the verbs that read them show what there is or raise a WorkbenchError."""

    name, small, large = "folders", 100, 100_000

    def case(self, random: Random) -> Any:
        files = _run_files(random)
        for path in random.sample(sorted(files), random.choice((1, 1, 2))):
            value = files[path]
            if isinstance(value, bytes):
                files[path] = damaged_bytes(value, random)
            else:
                text = json_text(nested(value, random)).encode()
                files[path] = text if random.random() < 0.6 else damaged_bytes(json_text(value).encode(), random)
        return {path: value if isinstance(value, bytes) else json_text(value).encode() for path, value in files.items()}

    def check(self, case: Any, random: Random) -> None:
        folder = RunFolder(self.scratch / "20260101-000000-a-000000-0000")
        shutil.rmtree(folder.path, ignore_errors=True)
        for path, data in case.items():
            (folder.path / path).parent.mkdir(parents=True, exist_ok=True)
            (folder.path / path).write_bytes(data)
        run = Run(folder)
        describe(folder), RunList([run], self.scratch).text(), run._repr_html_()
        compare([folder, folder])
        control.pending(folder), control.read_knobs(folder), read_lease(folder)
        for path in checkpoints(folder.checkpoints):
            if problem_with(path) is None:
                state_of(path)
        steps_of(folder), origin_of(folder)
        str(run), repr(run.result), run.result._repr_html_(), run.plan
        view = RunView.read(folder)
        Track(folder).poll()
        if random.random() < 0.01:
            report_html([view])


TARGETS: dict[str, type[Target]] = {each.name: each for each in (Recipes, PastedText, Telemetry, RunFolders)}


def _records(random: Random) -> dict[str, list[dict[str, Any]]]:
    """Twelve steps of a run with three layers."""
    scalars: list[dict[str, Any]] = [
        {"seq": i, "step": i + 1, "seconds": i / 8, "tokens": 256 * i, "loss": 6.0 - i / 10, "lr": 1e-3,
         "heldout_loss": 5.5 if i % 4 == 0 else None, "tokens_per_second": 900.0}
        for i in range(12)
    ]  # fmt: skip
    if random.random() < 0.3:
        scalars.insert(8, {"rewind": 4})
    layers = [
        {"seq": i, "step": i + 1, "state": [1, 1, 0], "keep": [1.0, 0.9, None], "gradient_norm": [0.1, 0.2, 0.3]}
        for i in range(12)
    ]
    events = [
        {"seq": i, "step": i, "kind": kind, "text": f"{kind} now", "time": 1.7e9 + i, "stage": 1}
        for i, kind in enumerate(("start", "stage", "checkpoint", "knob", "evaluation", "end"))
    ]
    return {"scalars": scalars, "layers": layers, "events": events}


def _run_files(random: Random) -> dict[str, Any]:
    """Every JSON file of a finished run by its path in the folder."""
    result = {"steps": 12, "tokens": 3072, "seconds": 1.5, "tokens_per_second": 900.0, "heldout_loss": 5.2,
              "unigram_entropy": 6.1, "train_loss": 5.0, "mfu": 0.2}  # fmt: skip
    request = f"{17 * 10**18:020d}-set-0011aabb"
    records = {
        f"telemetry/{stream}.jsonl": b"".join(json.dumps(record).encode() + b"\n" for record in found)
        for stream, found in _records(random).items()
    }
    files = {
        "recipe.json": presets.get(random.choice(presets.names())).to_dict(),
        "state.json": {"status": "finished", "step": 12, "progress": 1.0, "tokens": 3072, "seconds": 1.5, "loss": 5.0,
                       "heldout_loss": 5.2, "host": "h", "device": "cpu", "heartbeat": 1.7e9, "message": "done"},
        "environment.json": {"packages": {"torch": "2.13"}, "device": "cpu", "data": {"train": {"bytes": 3}},
                             "git": "abc", "unigram_entropy": 6.1},
        "evaluations.json": {"unigram_entropy": 6.1, "heldout": [{"step": 4, "loss": 5.5}], "result": result},
        "labels.json": {"tags": ["good"], "notes": "one", "name": "best"},
        "origin.json": {"run": "20260101-000000-p-000000-0000", "name": "p", "step": 4, "fresh": [],
                        "diff": {"seed": [0, 1]}, "overrides": {}, "checkpoint": "00", "data": None},
        "launched.json": {"on": "local", "folder": "/", "pid": 3, "python": "", "settings": {}},
        "forecast.json": {"parameters": 10, "flops": 1e9, "flops_per_token": 60.0, "memory_bytes": 1000, "seconds": 2.0,
                          "seconds_low": 1.0, "seconds_high": 3.0, "tokens_per_second": 900.0, "steps": 12,
                          "tokens": 3072, "memory": {"weights": 500}, "device_memory_bytes": 10**9, "notes": []},
        "control/knobs.json": [{"path": "optimizer.lr", "value": 1e-3}],
        "control/lease.json": {"controller": "page", "name": "Ann", "epoch": 3, "until": 1.7e9},
        f"control/{request}.request.json": {"verb": "set", "arguments": {"path": "seed", "value": 1}, "by": "a"},
        "checkpoints/step-4/manifest.json": {"format": 1, "sha256": {"state.json": "00"}},
        "checkpoints/step-4/state.json": {"step": 4, "tokens": 1024, "seconds": 0.5, "stage": 0, "knobs": {}},
    }  # fmt: skip
    return {**files, **{path: block for path, block in records.items() if random.random() < 0.3}}
