"""Events of kind stage, as a newcomer reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.recipes.recipe import Recipe
from workbench.telemetry.streams import TelemetryWriter, read_telemetry
from workbench.training.loop import Training
from workbench.training.stage_event import spans


def test_spans_count_from_one() -> None:
    assert spans([0, 1, 2, 6]) == "1-3, 7"
    assert spans([4]) == "5"
    assert spans([]) == ""


SAID = {
    "full": [],
    "progressive_drop": [],
    "multi_stage": [
        "stage 1 of 3: layers 1-2 of 4 exist",
        "stage 2 of 3: layers 3-4 added as copies of 1-2; 1-2 frozen",
        "stage 3 of 3: all 4 layers train",
    ],
    "stacking": ["stage 1 of 2: layers 1-2 of 4 exist", "stage 2 of 2: layers 3-4 added as copies of 1-2"],
    "freeze": ["layer 1 frozen", "layers 1-2 frozen", "all 4 layers train"],
    "grow_width": [
        "stage 1 of 2: all 4 layers run and train",
        "stage 2 of 2: width 16 to 32, heads 1 to 2, inner width 64 to 128",
    ],
    "raptr": ["stage 1 of 2: 2 of 4 layers run on average", "stage 2 of 2: all 4 layers run and train"],
}  # fmt: skip
KNOBS = {
    "multi_stage": {"shares": (1, 1)},
    "stacking": {"shares": (1, 1)},
    "freeze": {"share": {"kind": "stages", "values": (0.0, 0.25, 0.5, 0.0), "until": (0.25, 0.5, 0.75)}},
    "raptr": {"lengths": (0.5, 1.0), "shares": (1, 1)},
}


@pytest.mark.parametrize("kind", SAID)
def test_what_a_run_says(kind: str, tiny: Recipe, build: Callable[..., Training], tmp_path: Path) -> None:
    recipe = tiny.with_(architecture={"layers": 4}, depth={"kind": kind, **KNOBS.get(kind, {})}, budget="8 steps")
    writer = TelemetryWriter(tmp_path)
    training = build(recipe, writer=writer)
    while not training.progress.done:
        training.step()
    writer.close()
    events = [event for event in read_telemetry(tmp_path).events if event["kind"] == "stage"]
    assert [event["text"] for event in events] == SAID[kind]
    for event in events:
        data = event["data"]
        assert 1 <= data["stage"] <= data["stages"] == len(recipe.depth.starts())
        assert data["layers"] <= 4
    if kind == "multi_stage":
        told = [(event["step"], *(event["data"][key] for key in ("layers", "frozen", "copies"))) for event in events]
        assert told == [
            (0, 2, [], []), (4, 4, [1, 2], [[3, 1], [4, 2]]), (7, 4, [], []),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("initial", "words"),
    [
        ("random", "stage 2 of 2: layers 3-4 added freshly initialised; 1-2 frozen"),
        ("zero_output", "stage 2 of 2: layers 3-4 added freshly initialised, silent at first; 1-2 frozen; head frozen"),
    ],
)
def test_words_for_other_beginnings(
    initial: str, words: str, tiny: Recipe, build: Callable[..., Training], tmp_path: Path
) -> None:
    depth = {"kind": "multi_stage", "shares": (1, 1), "joint": 0.0, "initial": initial}
    depth |= {"head": "frozen"} if "head" in words else {}
    writer = TelemetryWriter(tmp_path)
    training = build(tiny.with_(architecture={"layers": 4}, depth=depth, budget="4 steps"), writer=writer)
    for _ in range(3):
        training.step()
    writer.close()
    assert [e["text"] for e in read_telemetry(tmp_path).events if e["kind"] == "stage"][1] == words
