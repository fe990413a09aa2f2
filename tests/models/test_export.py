"""What leaves the workbench can be loaded by others, and says what it is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tests.training.conftest import LiveRun
from tests.training.test_resume import train
from workbench.base.errors import RecipeError
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.client.run import Run
from workbench.models.export import main
from workbench.recipes.recipe import Recipe
from workbench.store import control
from workbench.store.folder import read_json, write_json
from workbench.training import restored
from workbench.training.restored import restore

Live = Callable[[Recipe], LiveRun]


def one_document(ids: torch.Tensor) -> Batch:
    """A batch of one row (1, T) that holds one document."""
    return Batch(ids, torch.arange(ids.shape[1])[None], torch.zeros_like(ids).int(), torch.arange(1))


def test_bert_loads_in_transformers_with_the_same_logits(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    run = live(tiny.with_(architecture={"kind": "post_ln", "layers": 2, "width": 32, "heads": 2}))
    train(run, stop_at=3)
    assert main([str(run.folder.path), str(tmp_path / "bert")]) == 0
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path / "bert").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "bert")
    _, made, _ = restore(run.folder)
    ours = made.model.eval()
    ids = tokenizer("amber birch cedar", return_tensors="pt")["input_ids"]
    assert tokenizer.mask_token_id == made.vocabulary.mask
    assert ids[0, 0] == made.vocabulary.cls
    batch = one_document(ids)
    with torch.no_grad():
        logits = ours.head(ours.backbone(ids, batch, LayerPlan.full(2)))
        torch.testing.assert_close(theirs(ids).logits, logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("embeddings", ["shared", "gradient_disentangled"])
def test_a_discriminator_loads_in_transformers_with_the_same_logits(
    embeddings: str, tiny: Recipe, live: Live, tmp_path: Path
) -> None:
    from transformers import AutoModelForPreTraining, AutoModelForSequenceClassification

    objective = {"kind": "replaced_token", "embeddings": embeddings}
    run = live(tiny.with_(objective=objective, architecture={"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2}))
    train(run, stop_at=3)
    assert main([str(run.folder.path), str(tmp_path / "out")]) == 0
    theirs = AutoModelForPreTraining.from_pretrained(tmp_path / "out").eval()
    _, made, _ = restore(run.folder)
    ours, ids = made.model.eval(), torch.arange(5, 12)[None]
    labels = (ids % 2).float()
    with torch.no_grad():
        expected = ours.discriminator_head(ours.backbone(ids, one_document(ids), LayerPlan.full(2)))
        found = theirs(ids, labels=labels)
    torch.testing.assert_close(found.logits, expected)
    torch.testing.assert_close(found.loss, torch.nn.functional.binary_cross_entropy_with_logits(expected, labels))
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "AutoModelForPreTraining.from_pretrained" in card
    assert f"| parameters | {sum(p.numel() for p in theirs.parameters()):,} |" in card
    # A fine-tuning class takes the discriminator's backbone.
    classifier = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert torch.equal(classifier.backbone.embedding.weight, theirs.backbone.embedding.weight)


def test_an_export_is_continued_by_its_folder_or_by_its_run(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    """A class of transformers by its folder, which is weights and tokenizer; one of ours by a fork of the run."""
    shape = {"layers": 2, "width": 32, "heads": 2}
    for number, kind in enumerate(("post_ln", "pre_ln")):
        run = live(tiny.with_(architecture={"kind": kind, **shape}))
        train(run, stop_at=2)
        folder = tmp_path / str(number)
        assert main([str(run.folder.path), str(folder)]) == 0
        changes = {
            "architecture": {"kind": "transformers", "model": str(folder), "pretrained": True, **shape},
            "data.tokenizer": {"kind": "pretrained", "name": str(folder)},
        }
        if kind == "pre_ln":
            with pytest.raises(RecipeError, match=r"export of this workbench .* `workbench fork RUN --budget"):
                tiny.with_(**changes)
            continue
        again = live(tiny.with_(**changes))
        train(again, stop_at=1)
        _, ours, _ = restore(run.folder)
        _, theirs, _ = restore(again.folder)
        assert theirs.vocabulary.special == ours.vocabulary.special
        weights = [made.model.state_dict()["backbone.embedding.weight"] for made in (ours, theirs)]
        assert (weights[0] - weights[1]).abs().max() < 0.02, "one step away from where the first ended"


@pytest.mark.extended
@pytest.mark.process
def test_export_needs_the_run_folder_alone_and_names_a_damaged_checkpoint(
    tiny: Recipe, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text is deleted, the cache is empty, and the newest checkpoint is broken."""
    text = tmp_path / "text.jsonl"
    text.write_bytes(Path(tiny.data.paths[0]).read_bytes())
    run = live(tiny.with_(data={"paths": (str(text),)}))
    train(run, stop_at=3)
    train(run, resume=True)
    text.unlink()
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "empty"))
    assert main([str(run.folder.path), str(tmp_path / "whole")]) == 0
    assert "damaged" not in capsys.readouterr().err
    newest = max(run.folder.checkpoints.glob("step-*"), key=lambda path: int(path.name.removeprefix("step-")))
    (newest / "model.safetensors").write_bytes(b"broken")
    assert main([str(run.folder.path), str(tmp_path / "older")]) == 0
    said = capsys.readouterr()
    assert f"warning: checkpoint {newest.name} is damaged" in said.err
    assert "using the older step-3 instead" in said.err
    assert "step 3" in said.out
    Run(run.folder.path).export(tmp_path / "by-method")
    assert f"warning: checkpoint {newest.name} is damaged" in capsys.readouterr().err, "also through the child"


def test_a_damaged_tokenizer_is_refused_in_one_sentence_and_leaves_nothing_half_written(
    tiny: Recipe, live: Live, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = live(tiny)
    train(run, stop_at=1)
    whole = run.folder.tokenizer.read_bytes()
    other = whole.replace(b"[MASK]", b"[MISS]")
    environment = read_json(run.folder.environment)
    # The second time nobody knows what it was, as in a run of before.
    for known in (environment, environment | {"data": {"vocabulary": environment["data"]["vocabulary"]}}):
        write_json(run.folder.environment, known)
        for data in (b"", whole[:500], b"[1]", b"{}", b"\xff" * 9, *([other] if known is environment else [])):
            run.folder.tokenizer.write_bytes(data)
            assert main([str(run.folder.path), str(tmp_path / "out" / "model")]) == 2
            assert "tokenizer.json' is damaged: " in capsys.readouterr().err
        assert not list((tmp_path / "out").iterdir())
    run.folder.tokenizer.unlink()
    assert main([str(run.folder.path), str(tmp_path / "model")]) == 2


def test_a_folder_is_whole_and_its_card_says_what_it_is(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    run = live(tiny)
    train(run, stop_at=3)
    mine = tmp_path / "out" / "model.tmp"
    mine.mkdir(parents=True)
    assert main([str(run.folder.path), str(tmp_path / "out" / "model")]) == 0
    folder = tmp_path / "out" / "model"
    assert {*folder.parent.iterdir()} == {folder, mine}, "nothing of ours is left, and nothing of others is gone"
    names = {path.name for path in folder.iterdir()}
    wanted = {"config.json", "model.safetensors", "recipe.json", "tokenizer.json", "tokenizer_config.json", "README.md"}
    assert names == wanted
    modes = {
        path.stat().st_mode & 0o777 for path in (*folder.iterdir(), *(run.folder.checkpoints / "step-3").iterdir())
    }
    assert modes == {run.folder.recipe.stat().st_mode & 0o777}, "as every other file, whatever safetensors does"
    assert Recipe.load(folder / "recipe.json") == tiny
    _, made, _ = restore(run.folder)
    saved = load_file(folder / "model.safetensors")
    for name, tensor in made.model.state_dict().items():
        assert torch.equal(saved[name], tensor)
    card = (folder / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: transformers\npipeline_tag: fill-mask\n")
    for text in (
        tiny.hash,
        f"{made.parameters:,}",
        "3 steps, 1,536 tokens",
        "`adamw`: lr 0.003",
        "WorkbenchForMaskedLM",
    ):
        assert text in card


def test_a_card_says_what_the_recipe_alone_does_not(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    run = live(tiny)
    control.send(run.folder, "set", path="optimizer.lr", value=0.02)
    train(run, stop_at=2)
    for name in ("steered", "forked"):
        assert main([str(run.folder.path), str(tmp_path / name)]) == 0
        card = (tmp_path / name / "README.md").read_text()
        assert "`recipe.json` alone does not train it again" in card
        assert f"`workbench notebook {run.folder.id}`" in card
        if name == "steered":
            assert "| steered | optimizer.lr 0.003 → 0.02 at step 0 |" in card
            write_json(run.folder.origin, {"run": "another", "step": 1})
        else:
            assert "| goes on from | step 1 of run another |" in card


def test_ids_are_those_of_the_runs_tokenizer(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    run = live(tiny)
    train(run, stop_at=2)
    assert main([str(run.folder.path), str(tmp_path / "model")]) == 0
    ours = Tokenizer.from_file(str(run.folder.tokenizer))
    theirs = AutoTokenizer.from_pretrained(tmp_path / "model")
    texts = [
        "amber birch",
        "",
        "  Amber\ttiger \u00e9t\u00e9 \u4f60\u597d [MASK] cedar [SEP]",
        "?!" * 20,
        "one-two_three.4",
    ]
    assert [theirs(text)["input_ids"] for text in texts] == [ours.encode(text).ids for text in texts]
    assert theirs(texts[0], texts[3])["input_ids"] == ours.encode(texts[0], texts[3]).ids
    assert set(theirs("amber")) == {"input_ids", "attention_mask"}
    assert (theirs.bos_token, theirs.eos_token) == ("[CLS]", "[SEP]"), "what lm-evaluation-harness asks for"
    assert len(theirs(" ".join(["amber"] * 99), truncation=True)["input_ids"]) == tiny.data.sequence_length


FORMS = [
    {"architecture": {"kind": "post_ln", "layers": 2, "width": 32, "heads": 2}},
    {"architecture": {"kind": "transformers", "model": "llama", "layers": 2, "width": 32, "heads": 2},
     "objective": "causal"},
    {},
    {"objective": "causal"},
]  # fmt: skip


@pytest.mark.process
def test_cards_work_in_a_fresh_process_as_they_stand(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    """The code of every card, and the logits of the model that it loads, with nothing else imported."""
    program = ["import sys, torch"]
    wanted = []
    for number, changes in enumerate(FORMS):
        run = live(tiny.with_(**changes))
        train(run, stop_at=2)
        folder = tmp_path / f"model-{number}"
        assert main([str(run.folder.path), str(folder)]) == 0
        code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0].replace("FOLDER", str(folder))
        code += f"ids = torch.arange(5, 17)[None]\ntorch.save(model(ids).logits[0].detach(), '{folder}.pt')\n"
        # The first two are transformers' own classes and need nothing of ours.
        program += [code, f"assert ('workbench' in sys.modules) == {number > 1}"]
        _, made, _ = restore(run.folder)
        ids = torch.arange(5, 17)[None]
        batch = one_document(ids)
        model = made.model.eval()
        with torch.no_grad():
            wanted.append(model.head(model.backbone(ids, batch, LayerPlan.full(made.layers))[0]))
    # In a folder of its own: nothing lies beside it that could be imported instead.
    done = subprocess.run([sys.executable, "-c", "\n".join(program)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for number, logits in enumerate(wanted):
        torch.testing.assert_close(torch.load(tmp_path / f"model-{number}.pt"), logits, rtol=1e-5, atol=1e-5)


def bare_tokenizer(path: Path) -> Path:
    """Byte-level BPE that adds nothing to a text, as GPT-2's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator([], trainers.BpeTrainer(special_tokens=["<|endoftext|>"], initial_alphabet=alphabet))
    tokenizer.save(str(path))
    return path


@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_the_code_of_a_card_gives_what_the_run_read(
    tiny: Recipe, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objective: str
) -> None:
    from workbench.transformers import WorkbenchForCausalLM, WorkbenchForMaskedLM

    tokenizer = {"kind": "pretrained", "name": str(bare_tokenizer(tmp_path / "bare.json"))}
    run = live(tiny.with_(objective=objective, **{"data.tokenizer": tokenizer}))
    train(run, stop_at=1)
    folder = tmp_path / "model"
    assert main([str(run.folder.path), str(folder)]) == 0
    code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0].replace("FOLDER", str(folder))
    read: list[list[int]] = []

    def seen(self: object, ids: torch.Tensor | None = None, **inputs: torch.Tensor) -> None:
        found = inputs["input_ids"] if ids is None else ids
        read.append(found[0].tolist())
        raise StopIteration

    monkeypatch.setattr(WorkbenchForCausalLM, "generate", seen)
    monkeypatch.setattr(WorkbenchForMaskedLM, "forward", seen)
    with pytest.raises(StopIteration):
        exec(code, {})
    used = Tokenizer.from_file(str(run.folder.tokenizer))
    vocabulary, masked = restore(run.folder)[1].vocabulary, objective == "masked"
    mask = used.id_to_token(vocabulary.mask)
    text = f"some text with a {mask} in it" if masked else "some text to go on with"
    document = [vocabulary.cls, *used.encode(text, add_special_tokens=False).ids, vocabulary.sep]
    assert read == [document if masked else document[:-1]]


def test_a_run_that_is_still_growing_leaves_with_the_layers_it_has(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    from transformers import AutoConfig

    stages = tiny.with_(depth="stacking", architecture={"layers": 4})
    for number, kind in enumerate(("pre_ln", "post_ln", "transformers")):
        run = live(stages.with_(architecture={"kind": kind, "layers": 4, "width": 32, "heads": 2}))
        train(run, stop_at=2)
        assert main([str(run.folder.path), str(tmp_path / str(number))]) == 0
        _, made, _ = restore(run.folder)
        assert made.layers < 4
        assert AutoConfig.from_pretrained(tmp_path / str(number)).num_hidden_layers == made.layers
        assert (
            f"| layers | {made.layers} of 4: the run had not grown up |"
            in (tmp_path / str(number) / "README.md").read_text()
        )


def test_refuses_an_existing_target_and_a_run_without_checkpoint(
    tiny: Recipe, live: Live, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = live(tiny)
    assert main([str(run.folder.path), str(tmp_path / "new")]) == 2
    assert "left no checkpoint: there is no model of it" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(restored, "actual_status", lambda *_: "running")
        assert main([str(run.folder.path), str(tmp_path / "new")]) == 2
    assert f"no checkpoint yet; ask for one with `workbench checkpoint {run.folder.id}`" in capsys.readouterr().err
    assert main([str(run.folder.path), str(tmp_path)]) == 2
    assert "exists; name a new folder" in capsys.readouterr().err
    assert main([str(tmp_path / "nowhere"), str(tmp_path / "new")]) == 2
    assert not (tmp_path / "new").exists()


def test_a_hybrid_is_exported_as_a_model_that_continues_texts(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    """Its answers at [MASK] stand a place earlier than those of transformers' masked models."""
    from transformers import AutoModelForCausalLM

    import workbench.transformers  # noqa: F401

    shape = {"layers": 2, "width": 32, "heads": 2}
    run = live(tiny.with_(objective="hybrid", architecture={"kind": "post_ln", **shape}))
    train(run, stop_at=2)
    assert main([str(run.folder.path), str(tmp_path / "hybrid")]) == 0
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "hybrid").eval()
    _, made, _ = restore(run.folder)
    ids = torch.tensor([[made.vocabulary.cls, 9, 8, 7]])
    with torch.no_grad():
        states = made.model.eval().backbone(ids, one_document(ids), LayerPlan.full(2), None, True)
        torch.testing.assert_close(theirs(ids).logits, made.model.head(states), atol=1e-4, rtol=1e-4)
    run = live(tiny.with_(objective="hybrid", architecture={"kind": "pre_ln", "positions": "tupe_a", **shape}))
    train(run, stop_at=2)
    assert main([str(run.folder.path), str(tmp_path / "tupe")]) == 2
