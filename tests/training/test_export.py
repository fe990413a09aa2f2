"""What leaves the workbench can be loaded by others, and says what it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training.conftest import LiveRun
from tests.training.test_resume import train
from workbench.recipe import Recipe
from workbench.training.evaluate import restore
from workbench.training.export import main

Live = Callable[[Recipe], LiveRun]


def test_bert_loads_in_transformers_with_the_same_logits(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    from workbench.choices.depth.plan import LayerPlan

    run = live(tiny.with_(architecture={"kind": "post_ln", "layers": 2, "width": 32, "heads": 2}))
    train(run, stop_at=3)
    assert main([str(run.folder.path), str(tmp_path / "bert")]) == 0
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path / "bert").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "bert")
    _, made, _ = restore(run.folder)
    ours = made.model.eval()
    ids = tokenizer("w1 w2 w3", return_tensors="pt")["input_ids"]
    assert tokenizer.mask_token_id == made.vocabulary.mask
    assert ids[0, 0] == made.vocabulary.cls
    batch = made.order.batch(torch.arange(1).numpy())
    zeros = torch.zeros_like(ids)
    batch = batch._replace(tokens_BT=ids, positions_BT=torch.arange(ids.shape[1])[None], documents_BT=zeros.int())
    with torch.no_grad():
        logits = ours.head(ours.backbone(ids, batch, LayerPlan.full(2)))
        torch.testing.assert_close(theirs(ids).logits, logits, atol=1e-4, rtol=1e-4)


def test_other_architectures_leave_as_safetensors_with_recipe(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    run = live(tiny)
    train(run, stop_at=3)
    assert main([str(run.folder.path), str(tmp_path / "out" / "model")]) == 0
    folder = tmp_path / "out" / "model"
    names = {path.name for path in folder.iterdir()}
    assert names == {"model.safetensors", "recipe.json", "tokenizer.json", "tokenizer_config.json", "README.md"}
    assert Recipe.load(folder / "recipe.json") == tiny
    _, made, _ = restore(run.folder)
    saved = load_file(folder / "model.safetensors")
    for name, tensor in made.model.state_dict().items():
        assert torch.equal(saved[name], tensor)
    assert json.loads((folder / "tokenizer_config.json").read_text())["mask_token"]
    card = (folder / "README.md").read_text()
    assert "later version" in card
    assert tiny.hash in card


def test_refuses_an_existing_target_and_a_run_without_checkpoint(
    tiny: Recipe, live: Live, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = live(tiny)
    assert main([str(run.folder.path), str(tmp_path / "new")]) == 2
    assert "no checkpoint yet" in capsys.readouterr().err
    assert main([str(run.folder.path), str(tmp_path)]) == 2
    assert "exists; name a new folder" in capsys.readouterr().err
    assert main([str(tmp_path / "nowhere"), str(tmp_path / "new")]) == 2
    assert not (tmp_path / "new").exists()
