"""A resumed run repeats the uninterrupted one bit for bit, for every optimizer and every depth method."""

from __future__ import annotations

import contextlib
import functools
import random
import shutil
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.costs import quick_ones
from tests.training.conftest import LiveRun
from workbench.base.errors import DataError
from workbench.choices.choice import registry
from workbench.choices.progress import Progress
from workbench.recipes.recipe import Recipe
from workbench.recipes.recipe_hash import recipe_hash
from workbench.store.evaluations import read_evaluations
from workbench.store.folder import read_json, write_json
from workbench.training import checkpoint
from workbench.training.loop import Training
from workbench.training.session import Session
from workbench.training.status import Status

Live = Callable[[Recipe], LiveRun]


def train(
    run: LiveRun,
    *,
    resume: bool = False,
    stop_at: int | None = None,
    within: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext,
) -> checkpoint.Checkpoint:
    """Train in this process (a worker would spend seconds on imports), stop after a step if asked to.

    Args:
        within: what every step is taken in.
    """
    status = Status(run.folder)
    session = Session(run.folder, status, resume)
    step = session.training.step

    def counted() -> None:
        with within():
            step()
        if session.training.progress.step == stop_at:
            session.stop("test")

    session.training.step = counted  # type: ignore[method-assign]
    session.run()
    status.close()
    saved = checkpoint.load_latest(run.folder.checkpoints)
    assert saved is not None
    return saved


def assert_same(one: checkpoint.Checkpoint, other: checkpoint.Checkpoint) -> None:
    assert one.step == other.step
    for stem, group in one.tensors.items():
        assert group.keys() == other.tensors[stem].keys()
        for name, tensor in group.items():
            assert torch.equal(tensor, other.tensors[stem][name]), name
    assert one.meta["optimizer"] == other.meta["optimizer"]
    assert one.meta["tokens"] == other.meta["tokens"]


def staged(tiny: Recipe, **changes: object) -> Recipe:
    """Four layers, which every method can split into its stages, and gradients from two micro-batches."""
    return tiny.with_(architecture={"layers": 4}, execution={"micro_batch_size": 8}, **changes)


@pytest.mark.parametrize("optimizer", quick_ones(registry("optimizer"), "lans"))
def test_twenty_steps_equal_ten_and_ten(tiny: Recipe, live: Live, optimizer: str) -> None:
    """With layers that appear, take over weights and state, rest and thaw: whatever state an optimizer has."""
    recipe = staged(tiny, optimizer=optimizer, depth={"kind": "multi_stage", "state": "copy"})
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    assert train(parts, stop_at=10).step == 10
    assert_same(straight, train(parts, resume=True))
    assert [p["step"] for p in read_evaluations(parts.folder)["heldout"]] == [10, 20]
    first, second = (read_evaluations(run.folder)["heldout"] for run in (whole, parts))
    assert [p["loss"] for p in first] == [p["loss"] for p in second]
    assert [s["step"] for s in parts.telemetry.scalars if "loss" in s] == list(range(1, 21))
    losses = [run.telemetry.series("loss")[1] for run in (whole, parts)]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("depth", quick_ones(registry("depth"), "multi_stage", "grow_width"))
def test_resume_in_every_stage_and_at_its_boundaries(tiny: Recipe, live: Live, depth: str) -> None:
    """One run, stopped and resumed before, exactly at and after every boundary, ends as the uninterrupted one."""
    recipe = staged(tiny, depth=depth)
    stages = [recipe.depth.stage(4, Progress(step, 0, 0.0, recipe.budget)) for step in range(20)]
    boundaries = [step for step in range(1, 20) if stages[step] != stages[step - 1]] or [10]
    assert len(set(stages)) == len(recipe.depth.starts()), "no stage is too short for this test"
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    stops = sorted({step for boundary in boundaries for step in (boundary - 1, boundary, boundary + 1)} - {0, 20})
    for place, stop in enumerate(stops):
        assert train(parts, resume=place > 0, stop_at=stop).step == stop
    assert_same(straight, train(parts, resume=True))
    said = [[event["text"] for event in run.telemetry.events if event["kind"] == "stage"] for run in (whole, parts)]
    assert said[0] == said[1], "every change is said once, whoever was stopped where"
    assert len(said[0]) >= len(recipe.depth.starts()) - (len(recipe.depth.starts()) == 1)
    losses = [run.telemetry.series("loss")[1] for run in (whole, parts)]
    assert losses[0] == losses[1]


@pytest.mark.extended
@pytest.mark.usefixtures("graphs_alone")
def test_resume_with_compiled_blocks(tiny: Recipe, live: Live) -> None:
    """Stages, copies and frozen layers again, with graphs, in bf16.

    All are met ahead, and a resume computes the same.
    """
    # As few graphs as can show it: one layer beneath, one on top, no joint stage.
    recipe = tiny.with_(
        depth={"kind": "multi_stage", "shares": (1, 1), "joint": 0.0}, optimizer="lamb",
        architecture={"layers": 2, "width": 128}, execution={"compile": True, "precision": "bf16"}, budget="10 steps",
    )  # fmt: skip
    whole, parts = live(recipe), live(recipe)
    # Its steps are taken after it was compiled ahead, as in every run.
    straight = train(whole, within=functools.partial(torch.compiler.set_stance, "fail_on_recompile"))
    stages = [event["text"] for event in whole.telemetry.events if event["kind"] == "stage"]
    assert len(stages) == 2, "the second stage has begun, and compiled nothing"
    assert train(parts, stop_at=7).step == 7
    assert_same(straight, train(parts, resume=True))


@pytest.mark.extended
@pytest.mark.process
def test_resume_with_kernels_of_the_compiler(tiny: Recipe, live: Live) -> None:
    """With dropout and in bf16, the fewest graphs that a run can have."""
    recipe = tiny.with_(
        architecture={"layers": 1}, execution={"compile": True, "precision": "bf16"},
        budget={"amount": 4, "evaluations": 1},
    )  # fmt: skip
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    assert train(parts, stop_at=2).step == 2
    assert_same(straight, train(parts, resume=True))


@pytest.mark.parametrize(
    "data",
    [
        {
            "batch_size": {"kind": "linear", "start": 4, "end": 16},
            "sequence_length": {"kind": "stages", "values": (16, 32), "until": (0.5,)},
            "batch_rule": {"kind": "as_scheduled", "lr_scaling": "sqrt"},
            "order": {"kind": "curriculum", "pace_tokens": 1500},
        },
        pytest.param(
            {"sequence_length": {"kind": "linear", "start": 8, "end": 32}, "tokens_limit": 3000},
            marks=pytest.mark.extended,
        ),
        {
            "batch_size": 8,
            "batch_rule": {"kind": "simigrad", "every": 3, "highest": 24, "grow": 1.5, "lr_scaling": "linear"},
        },
    ],
    ids=["ramp and phases", "length warm-up", "simigrad"],
)
def test_batches_that_move_resume_bit_for_bit(tiny: Recipe, live: Live, data: dict[str, Any]) -> None:
    """Stopped between two comparisons, in the middle of a ramp, and at the boundary of two phases."""
    recipe = tiny.with_(data=data, execution={"micro_batch_size": 4})
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    assert train(parts, stop_at=4).step == 4
    assert train(parts, resume=True, stop_at=10).step == 10
    resumed = train(parts, resume=True)
    assert_same(straight, resumed)
    assert straight.meta["batch"] == resumed.meta["batch"]
    for name in ("loss", "data.batch_size", "data.sequence_length"):
        assert whole.telemetry.series(name) == parts.telemetry.series(name), name
    moved = {*whole.telemetry.series("data.batch_size")[1], *whole.telemetry.series("data.sequence_length")[1]}
    assert len(moved) >= 3, "something did move"


@pytest.mark.extended
def test_workers_of_an_optimizer_resume_bit_for_bit(tiny: Recipe, live: Live) -> None:
    combine = {"kind": "adasum", "workers": 2}
    recipe = tiny.with_(optimizer={"combine": combine}, data={"order": {"kind": "sharded", "shards": 2}})
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    assert train(parts, stop_at=7).step == 7
    assert_same(straight, train(parts, resume=True))


@pytest.mark.process
def test_kill_at_a_random_step_and_resume(tiny: Recipe, live: Live) -> None:
    """kill -9 of a real worker, twice; telemetry that ran ahead of the checkpoint is rewound."""
    recipe = tiny.with_(budget={"amount": 150, "unit": "steps", "evaluations": 1, "checkpoint_seconds": 0.2})
    straight, killed = live(recipe), live(recipe).fork()
    step = random.randint(20, 80)
    killed.until(lambda run: run.steps_said >= step and any(run.folder.checkpoints.glob("step-*/manifest.json")))
    assert killed.process is not None
    killed.process.send_signal(signal.SIGKILL)
    killed.wait()
    killed.fork("--resume")
    train(straight)  # while the other process trains
    assert killed.wait() == 0, killed.log
    ends = [checkpoint.load_latest(run.folder.checkpoints) for run in (straight, killed)]
    assert ends[0] is not None
    assert ends[1] is not None
    assert_same(ends[0], ends[1])
    assert killed.telemetry.series("loss") == straight.telemetry.series("loss")


def test_damaged_newest_checkpoint_is_said_and_survived(tiny: Recipe, live: Live) -> None:
    run, whole = live(tiny), live(tiny)
    straight = train(whole)
    train(run, stop_at=5)
    train(run, resume=True, stop_at=10)
    newest = run.folder.checkpoints / "step-10" / "optimizer.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    assert_same(straight, train(run, resume=True))
    warnings = [event["text"] for event in run.telemetry.events if event["kind"] == "warning"]
    assert len(warnings) == 1
    assert "step-10 is damaged" in warnings[0]
    assert "resuming from step-5" in warnings[0]
    assert (run.folder.checkpoints / "step-10.damaged").exists()


def test_resume_without_a_checkpoint_starts_anew(tiny: Recipe, live: Live) -> None:
    run, whole = live(tiny), live(tiny)
    assert_same(train(whole), train(run, resume=True))


def test_a_changed_recipe_is_refused(tiny: Recipe, live: Live) -> None:
    run = live(tiny)
    train(run, stop_at=2)
    tiny.with_(seed=1).save(run.folder.recipe)
    with pytest.raises(checkpoint.CheckpointError, match=r"restore recipe\.json"):
        train(run, resume=True)


def test_seeds_differ_and_one_seed_repeats(tiny: Recipe, build: Callable[..., Training]) -> None:
    weights = [torch.cat([p.flatten() for p in build(tiny.with_(seed=seed)).model.parameters()]) for seed in (0, 0, 1)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_turned_knobs_survive_a_resume(tiny: Recipe, live: Live) -> None:
    from workbench.store import control

    run = live(tiny)
    control.send(run.folder, "set", path="optimizer.lr", value=1e-4)
    assert train(run, stop_at=3).meta["overrides"] == {"optimizer.lr": 1e-4}
    end = train(run, resume=True)
    assert end.meta["overrides"] == {"optimizer.lr": 1e-4}
    assert max(run.telemetry.series("lr")[1]) <= 1e-4
    assert Recipe.load(run.folder.recipe).optimizer.lr == tiny.optimizer.lr


def test_a_run_of_an_earlier_version_resumes(tiny: Recipe, live: Live) -> None:
    """Its recipe lacks a field of today, so its checkpoints hold another hash than the recipe read from it has."""
    run = live(tiny.with_(depth="progressive_drop"))
    fields = read_json(run.folder.recipe)
    del fields["depth"]["dropped"]
    write_json(run.folder.recipe, fields)
    before = recipe_hash(fields)
    assert train(run, stop_at=3).meta["recipe_hash"] == before != Recipe.load(run.folder.recipe).hash
    assert train(run, resume=True, stop_at=6).step == 6


@pytest.mark.parametrize(
    "heldout",
    quick_ones([None, 3, "x", [1, {}, {"step": None}, {"step": "x"}]], [1, {}, {"step": None}, {"step": "x"}]),
)
def test_damaged_evaluations_are_left_out(tiny: Recipe, live: Live, heldout: object) -> None:
    run = live(tiny)
    train(run, stop_at=11)
    for damaged in ({"heldout": heldout}, heldout):
        write_json(run.folder.evaluations, damaged)
        status = Status(run.folder)
        session = Session(run.folder, status, True)
        for part in (session.training, session.writer, status):
            part.close()
        assert read_evaluations(run.folder)["heldout"] == []


def test_without_its_text_a_run_is_told_what_is_still_possible(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    run = live(tiny)
    train(run, stop_at=1)
    fields = read_json(run.folder.recipe)
    fields["data"]["paths"] = [str(tmp_path / "deleted.txt")]
    write_json(run.folder.recipe, fields)
    with pytest.raises(DataError, match=r"deleted\.txt.* needs its text again; to evaluate, export or report it"):
        train(run, resume=True)
    # Nor is its folder enough where it has no checkpoint.
    shutil.rmtree(run.folder.checkpoints)
    for resume in (False, True):
        with pytest.raises(DataError, match=r"deleted\.txt") as error:
            train(run, resume=resume)
        assert "its text again" not in str(error.value)


@pytest.mark.parametrize("state", quick_ones(["keep", "fresh"], "keep"))
def test_resume_in_every_phase_of_the_objective_and_at_the_border(tiny: Recipe, live: Live, state: str) -> None:
    """Stopped and resumed before, at and after the border: weights, moments, scores and what is said are the same."""
    phases = {"kind": "phases", "parts": ["causal", "hybrid"], "until": [0.5], "optimizer_state": state}
    recipe = tiny.with_(objective=phases, depth="progressive_drop")
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    for place, stop in enumerate((9, 10, 11)):
        assert train(parts, resume=place > 0, stop_at=stop).step == stop
    assert_same(straight, train(parts, resume=True))
    taken = {int(float(tensor)) for name, tensor in straight.tensors["optimizer"].items() if name.endswith("step")}
    assert max(taken) == (20 if state == "keep" else 10)
    for run in (whole, parts):
        assert [event["text"] for event in run.telemetry.events if event["kind"] == "phase"] == [
            "phase 2: objective 'hybrid'" + (", with a fresh optimizer" if state == "fresh" else "")
        ]
        assert list(run.telemetry.series("objective.phase")[1]) == [1.0] * 10 + [2.0] * 10
        found = read_evaluations(run.folder)
        assert found["score"]["kind"] == "masked-only"
        assert ["next_token_loss" in point["scores"] for point in found["points"]] == [True, True]
    assert whole.telemetry.series("masked_rows")[1] == parts.telemetry.series("masked_rows")[1]


def points_of_a_run_stopped_at_three(live: Live, recipe: Recipe) -> list[dict[str, Any]]:
    """Train a recipe straight and in two parts; return its evaluations, which are the same in both, as are weights."""
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    assert train(parts, stop_at=3).step == 3
    assert_same(straight, train(parts, resume=True))
    found = [read_evaluations(run.folder)["points"] for run in (whole, parts)]
    assert [point["scores"] for point in found[0]] == [point["scores"] for point in found[1]]
    return found[0]


@pytest.mark.parametrize(("kind", "score"), [("hybrid", "next_token_loss"), ("masked_permuted", "permuted_loss")])
def test_resume_where_columns_do_not_all_see_the_same(tiny: Recipe, live: Live, kind: str, score: str) -> None:
    """Rows and orders follow from the samples: a run that was stopped ends as one that was not, scores included."""
    recipe = tiny.with_(objective=kind, depth="progressive_drop", budget="6 steps")
    found = points_of_a_run_stopped_at_three(live, recipe)
    assert found[-1]["scores"][score]["unit"] == "nats"


_LINE = {"kind": "linear", "start": 0.9, "end": 0.1}
OBJECTIVES: list[dict[str, Any]] = [
    {"kind": "causal", "further_tokens": 3, "further_weight": _LINE},
    {"kind": "causal", "sampled_words": 16},
    {"kind": "masked", "selection": "whole_word", "mask_rate": {"kind": "linear", "start": 0.3, "end": 0.15}},
    {"kind": "masked", "selection": "ngram", "sampled_words": 16},
    {"kind": "hybrid", "causal_share": _LINE},
    {"kind": "replaced_token", "embeddings": "separate", "main_weight": {"kind": "linear", "start": 50, "end": 10}},
    {"kind": "meta_controller", "choices": 5},
    {"kind": "masked_permuted", "selection": "span"},
    {"kind": "diffusion"},
]


@pytest.mark.parametrize("objective", quick_ones(OBJECTIVES, OBJECTIVES[0]), ids=lambda each: " ".join(map(str, each)))
def test_an_objective_with_its_options_resumes_bit_for_bit(tiny: Recipe, live: Live, objective: dict[str, Any]) -> None:
    points_of_a_run_stopped_at_three(live, tiny.with_(objective=objective, budget="6 steps"))


@pytest.mark.parametrize("objective", quick_ones(["masked", "diffusion"], "masked"))
def test_notes_of_rare_words_resume_bit_for_bit(tiny: Recipe, live: Live, objective: str) -> None:
    """With two micro-batches a step and layers that are dropped; notes are in the checkpoint."""
    notes = {"kind": "rare_words", "fewest": 2, "most": 10_000, "words": 64}
    recipe = staged(tiny, objective=objective, depth="progressive_drop").with_(architecture={"notes": notes})
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    assert train(parts, stop_at=10).step == 10
    assert_same(straight, train(parts, resume=True))
    assert straight.tensors["model"]["backbone.notebook.written_W"].any()
