"""Checkpoints survive damage, half-written folders and a full disk; what is read back is what was written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.conftest import SmallDisk
from workbench.training import checkpoint
from workbench.training.checkpoint import CheckpointError

META = {"tokens": 12, "seconds": 0.1}


def tensors(seed: int, size: int = 64) -> dict[str, dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(size, size, generator=generator)
    return {"model": {"w": weight, "half": weight.bfloat16()}, "optimizer": {"w/exp_avg": weight * 2}}


def test_round_trip_is_bit_exact(tmp_path: Path) -> None:
    wrote = tensors(1)
    path = checkpoint.save(tmp_path, 3, wrote, META)
    read = checkpoint.load_latest(tmp_path)
    assert read is not None
    assert (read.step, read.path, read.damaged) == (3, path, {})
    assert read.meta["seconds"] == 0.1
    for stem, group in wrote.items():
        for name, tensor in group.items():
            assert read.tensors[stem][name].dtype == tensor.dtype
            assert torch.equal(read.tensors[stem][name], tensor)
    assert (tmp_path / "LATEST").read_text().strip() == "step-3"


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    assert checkpoint.load_latest(tmp_path) is None


@pytest.mark.parametrize("damage", ["flip", "truncate", "missing", "manifest", "no manifest"])
def test_damaged_newest_falls_back_to_the_previous(tmp_path: Path, damage: str) -> None:
    checkpoint.save(tmp_path, 1, tensors(1), META)
    newest = checkpoint.save(tmp_path, 2, tensors(2), META)
    file = newest / "model.safetensors"
    if damage == "flip":
        block = bytearray(file.read_bytes())
        block[-5] ^= 1
        file.write_bytes(block)
    elif damage == "truncate":
        file.write_bytes(file.read_bytes()[:-8])
    elif damage == "missing":
        file.unlink()
    elif damage == "manifest":
        (newest / "manifest.json").write_text("{")
    else:
        (newest / "manifest.json").unlink()
    read = checkpoint.load_latest(tmp_path)
    assert read is not None
    assert read.step == 1
    assert torch.equal(read.tensors["model"]["w"], tensors(1)["model"]["w"])
    assert list(read.damaged) == [newest]
    with pytest.raises(CheckpointError, match="cannot be used"):
        checkpoint.load(newest)


def test_all_damaged_is_an_error_that_names_each(tmp_path: Path) -> None:
    for step in (1, 2):
        (checkpoint.save(tmp_path, step, tensors(step), META) / "state.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"step-2.*step-1.*new run"):
        checkpoint.load_latest(tmp_path)


def test_half_written_folder_is_not_a_checkpoint_and_is_replaced(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, tensors(1), META)
    aside = tmp_path / "step-2.tmp"
    aside.mkdir()
    (aside / "model.safetensors").write_bytes(b"half")
    read = checkpoint.load_latest(tmp_path)
    assert read is not None
    assert read.step == 1
    checkpoint.save(tmp_path, 2, tensors(2), META)
    assert not aside.exists()


def test_saving_a_step_again_keeps_a_good_one_and_replaces_a_damaged_one(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path, 1, tensors(1), META)
    before = (path / "manifest.json").stat().st_mtime_ns
    assert checkpoint.save(tmp_path, 1, tensors(1), META) == path
    assert (path / "manifest.json").stat().st_mtime_ns == before
    (path / "state.json").write_text("{}")
    checkpoint.save(tmp_path, 1, tensors(1), META)
    assert checkpoint.problem_with(path) is None


def test_saving_a_step_again_after_a_knob_was_turned_replaces_it(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, tensors(1), {**META, "overrides": {}})
    checkpoint.save(tmp_path, 1, tensors(1), {**META, "overrides": {"optimizer.lr": 0.1}})
    read = checkpoint.load_latest(tmp_path)
    assert read is not None
    assert read.meta["overrides"] == {"optimizer.lr": 0.1}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["LATEST", "step-1"]


def test_prune_keeps_two_and_never_trusts_a_damaged_newest(tmp_path: Path) -> None:
    for step in (1, 2, 10):
        checkpoint.save(tmp_path, step, tensors(step), META)
    newest = tmp_path / "step-10"
    whole = (newest / "state.json").read_text()
    (newest / "state.json").write_text("{}")
    assert checkpoint.prune(tmp_path) == []
    (newest / "state.json").write_text(whole)
    assert checkpoint.prune(tmp_path) == [tmp_path / "step-1"]
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == ["step-2", "step-10"]


def test_too_little_space_is_refused_before_anything_is_written(
    tmp_path: Path, small_disk: Callable[[str], SmallDisk]
) -> None:
    folder = small_disk("1m").path / "checkpoints"
    checkpoint.save(folder, 1, {"model": {"w": torch.ones(256, 256)}}, META)
    with pytest.raises(CheckpointError, match="free space there, or make it writable, and resume"):
        checkpoint.save(folder, 2, {"model": {"w": torch.ones(512, 512)}}, META)
    assert sorted(path.name for path in folder.iterdir()) == ["LATEST", "step-1"]


def test_a_disk_that_fills_up_while_writing_leaves_the_old_checkpoint_whole(
    small_disk: Callable[[str], SmallDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = small_disk("1m").path / "checkpoints"
    checkpoint.save(folder, 1, {"model": {"w": torch.ones(256, 256)}}, META)
    # As when another process takes the space right after it was counted.
    monkeypatch.setattr(checkpoint, "_check_space", lambda folder, needed: None)
    with pytest.raises(CheckpointError, match="checkpoint of step 2"):
        checkpoint.save(folder, 2, {"model": {"w": torch.ones(1024, 1024)}}, META)
    read = checkpoint.load_latest(folder)
    assert read is not None
    assert (read.step, read.damaged) == (1, {})
    assert sorted(path.name for path in folder.iterdir()) == ["LATEST", "step-1"]


def test_what_a_killed_save_left_behind_is_cleared_away(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, tensors(1), META)
    checkpoint.save(tmp_path, 2, tensors(2), META)
    # Killed while it wrote step 3, and long ago while it replaced step 2: between its two renames, and after them.
    for name in ("step-3.tmp", "step-2.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"half")
    (tmp_path / "step-2").rename(tmp_path / "step-2.replaced")
    shutil.copytree(tmp_path / "step-1", tmp_path / "step-1.replaced")
    (tmp_path / "LATEST.tmp").write_text("step-3")
    checkpoint.remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["LATEST", "step-1", "step-2"]
    read = checkpoint.load_latest(tmp_path)
    assert read is not None
    assert (read.step, read.damaged) == (2, {})


def test_a_save_clears_away_what_another_step_left_behind(tmp_path: Path) -> None:
    (tmp_path / "step-3.tmp").mkdir()
    checkpoint.save(tmp_path, 4, tensors(4), META)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["LATEST", "step-4"]


def test_a_folder_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="No such file"):
        checkpoint.save(tmp_path / "run" / "checkpoints", 1, tensors(1), META)
    assert list(tmp_path.iterdir()) == []


def test_tied_weights_are_stored_once_and_stay_tied() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(8, 4)
            self.head = nn.Linear(4, 8, bias=False)
            self.head.weight = self.embedding.weight

    model, other = Tied(), Tied()
    stored, tied = checkpoint.model_tensors(model)
    assert list(stored) == ["embedding.weight"]
    assert tied == {"head.weight": "embedding.weight"}
    checkpoint.restore_model(other, stored, json.loads(json.dumps(tied)))
    assert torch.equal(other.head.weight, model.embedding.weight)
    assert other.head.weight is other.embedding.weight
    with pytest.raises(CheckpointError, match="does not fit"):
        checkpoint.restore_model(nn.Linear(2, 2), stored, tied)


def test_optimizer_state_keeps_dtype_and_scalars(tmp_path: Path) -> None:
    weight = nn.Parameter(torch.randn(4, 4).bfloat16())
    group = {"params": [weight], "names": ["w"], "weight_decay": 0.1, "betas": (0.9, 0.95), "decays": True}
    optimizer = torch.optim.SGD([group], lr=0.1, momentum=0.9)
    # Moments in fp32 beside bf16 weights: torch's own load_state_dict would cast them down.
    optimizer.state[weight] = {"momentum_buffer": torch.randn(4, 4), "count": 7, "step": torch.tensor(3.0)}
    flat, rest = checkpoint.optimizer_tensors(optimizer)
    path = checkpoint.save(tmp_path, 1, {"optimizer": flat}, {"optimizer": rest})
    read = checkpoint.load(path)
    fresh = torch.optim.SGD([{**group, "weight_decay": 0.0}], lr=9.0, momentum=0.9)
    checkpoint.restore_optimizer(fresh, read.tensors["optimizer"], read.meta["optimizer"])
    state = fresh.state[weight]
    assert state["momentum_buffer"].dtype == torch.float32
    assert torch.equal(state["momentum_buffer"], optimizer.state[weight]["momentum_buffer"])
    assert state["count"] == 7
    assert state["step"] == 3.0
    assert fresh.param_groups[0]["lr"] == 0.1
    assert fresh.param_groups[0]["weight_decay"] == 0.1
    assert fresh.param_groups[0]["betas"] == (0.9, 0.95)
