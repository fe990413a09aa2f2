"""Forks of real runs, in processes of their own: from a paused parent, from one that prunes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors.numpy import load_file

from tests.tiny_runs import tiny_recipe, wait_until
from workbench.base.errors import RecipeError, RunError
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.store.checkpoints import checkpoints
from workbench.store.folder import RunFolder, read_json


def weights(run: Run) -> dict[str, bytes]:
    """Every tensor of the last checkpoint, model and optimizer, as bytes."""
    newest = checkpoints(run.folder.checkpoints)[-1]
    return {
        f"{stem}/{name}": tensor.tobytes()
        for stem in ("model", "optimizer")
        for name, tensor in load_file(newest / f"{stem}.safetensors").items()
    }


@pytest.mark.process
def test_a_fork_of_a_running_run_repeats_it_while_the_parent_prunes(corpus: Path, root: Path) -> None:
    recipe = tiny_recipe(corpus, steps=100).with_(budget={"checkpoint_seconds": 0.1})
    parent = launch(recipe, runs_dir=root)
    wait_until(lambda: parent.state.step >= 5, what="training")
    assert "pausing" in parent.pause(timeout=30)
    wait_until(lambda: parent.status == "paused", what="the pause")
    step = parent.state.step
    same, other = parent.fork(step), parent.fork(optimizer={"lr": 1e-4}, budget=f"{step + 20} steps", name="slower")
    parent.resume(timeout=30)
    for run in (parent, same, other):
        run.wait_blocking(timeout=120)
    assert not (parent.folder.checkpoints / f"step-{step}").exists(), "the parent pruned it long ago"
    assert weights(same) == weights(parent)
    after = [pair for pair in zip(*parent.telemetry().series("loss"), strict=True) if pair[0] > step]
    assert list(zip(*same.telemetry().series("loss"), strict=True)) == after
    assert other.state.step == step + 20
    assert weights(other) != weights(parent)
    assert other.origin is not None
    assert (other.origin.run, other.origin.step) == (parent.id, step)
    assert other.origin.diff["optimizer.lr"] == [recipe.optimizer.lr, 1e-4]
    assert other.name == "slower"
    assert read_json(other.folder.launched)["folder"] == read_json(parent.folder.launched)["folder"]
    with pytest.raises(RecipeError, match="spent already"):
        same.fork()

    *_, whole, newest = checkpoints(parent.folder.checkpoints)
    (newest / "model.safetensors").write_bytes(b"half of it")
    said: list[str] = []
    older = parent.fork(budget="200 steps", say=said.append)
    older.stop()
    at = int(whole.name.removeprefix("step-"))
    assert older.origin is not None
    assert older.origin.step == at
    assert said[0].startswith(f"{older.id}: {newest.name}: model.safetensors is damaged")
    assert said[0].endswith(f"it goes on from step {at:,}")
    with pytest.raises(RunError, match=f"cannot be forked from {newest.name}: .* its other checkpoints are .*{at}"):
        parent.fork(int(newest.name.removeprefix("step-")))


def ended(root: Path, corpus: Path) -> Run:
    """A run without a process, and without a checkpoint."""
    folder = RunFolder(root / "20260101-000000-a-000000-0000")
    folder.checkpoints.mkdir(parents=True)
    tiny_recipe(corpus).save(folder.recipe)
    return Run(folder)


def _refuses(path: Path, target: Path) -> None:
    raise PermissionError(13, "Permission denied", str(path))


def test_what_cannot_be_forked_is_said_and_leaves_nothing(
    corpus: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ended(root, corpus)
    with pytest.raises(RunError, match=f"no checkpoint to fork from.*workbench checkpoint {run.id}"):
        run.fork()
    (run.folder.checkpoints / "step-7").mkdir()
    with pytest.raises(RunError, match="no checkpoint of step 3; it has those of 7"):
        run.fork(3)
    with pytest.raises(RunError, match=r"can be forked from \(step-7: its manifest cannot be read"):
        run.fork()
    with pytest.raises(RunError, match="did you mean 'local'"):
        run.fork(on="lokal")
    monkeypatch.setattr("workbench.client.fork.duplicate", _refuses)
    with pytest.raises(RunError, match=r"from \(step-7: it cannot be read \(.*denied"):
        run.fork()
    run.folder.recipe.unlink()
    with pytest.raises(RecipeError, match="cannot be read"):
        run.fork()
    assert [path.name for path in root.iterdir()] == [run.id]
    assert len(runs(root)) == 1
