"""Exported models are transformers models: the same logits, padding that nobody sees, generation, honest refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import workbench.transformers as wt
from tests.choices.architectures.packing import SMALL, VOCABULARY, documents, label, pack, variants
from workbench.base.errors import RecipeError
from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.pre_ln import PreLN
from workbench.choices.depth.plan import LayerPlan

# Models of transformers leave as their own class (see tests/choices/architectures/test_transformers.py).
OURS = [choice for choice in variants() if choice.kind != "transformers"]
LENGTH = 48


def model_of(choice: Architecture, causal: bool) -> tuple[nn.Module, nn.Module]:
    """Backbone and head with every parameter off its initial value, norms and biases included."""
    torch.manual_seed(0)
    backbone = choice.build(VOCABULARY, LENGTH, causal=causal, attention="plain").eval()
    head = choice.build_head(backbone).eval()
    with torch.no_grad():
        for parameter in {*backbone.parameters(), *head.parameters()}:
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return backbone, head


def saved(choice: Architecture, causal: bool, folder: Path, layers: int = SMALL["layers"]) -> tuple[Any, Any]:
    backbone, head = model_of(choice, causal)
    config = wt.WorkbenchConfig.of(choice, VOCABULARY, LENGTH, layers, causal)
    wt.wrapped(config, backbone, head).save_pretrained(folder)
    return backbone, head


@pytest.mark.parametrize("number", range(len(OURS)), ids=lambda n: f"{OURS[n].kind}-{label(OURS[n])}")
def test_loaded_logits_are_those_of_the_trained_model_padded_or_not(number: int, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

    choice, causal = OURS[number], number % 2 == 1
    backbone, head = saved(choice, causal, tmp_path)
    loaded = (AutoModelForCausalLM if causal else AutoModelForMaskedLM).from_pretrained(tmp_path).eval()
    document = documents(20)[0]
    ids, mask = torch.randint(5, 500, (2, 26)), torch.zeros(2, 26, dtype=torch.long)
    # Padding behind one document and before the other, made of tokens that would matter.
    ids[0, :20], ids[1, 6:], mask[0, :20], mask[1, 6:] = document, document, 1, 1
    batch = pack([document])
    with torch.no_grad():
        wanted = head(backbone(batch.tokens_BT, batch, LayerPlan.full(3))[0])
        padded = loaded(input_ids=ids, attention_mask=mask).logits
        alone = loaded(input_ids=document[None]).logits[0]
    assert wanted.std() > 0.1
    for logits in (alone, padded[0, :20], padded[1, 6:]):
        torch.testing.assert_close(logits, wanted, rtol=1e-5, atol=1e-5)


def test_a_model_that_has_not_grown_up_leaves_with_the_layers_it_has(tmp_path: Path) -> None:
    from transformers import AutoModel

    backbone, _ = saved(PreLN(**SMALL), False, tmp_path, layers=2)
    batch = pack(documents(20))
    loaded = AutoModel.from_pretrained(tmp_path).eval()
    assert isinstance(loaded, wt.WorkbenchModel)
    assert loaded.config.num_hidden_layers == 2
    with torch.no_grad():
        wanted = backbone(batch.tokens_BT, batch, LayerPlan.full(2))
        torch.testing.assert_close(loaded(batch.tokens_BT).last_hidden_state, wanted, rtol=1e-5, atol=1e-5)


def test_loss_is_the_mean_over_labels(tmp_path: Path) -> None:
    ids = torch.stack(documents(12, 12))
    labels = torch.where(torch.arange(12) % 3 == 0, ids, -100)
    for causal, kind in ((False, wt.WorkbenchForMaskedLM), (True, wt.WorkbenchForCausalLM)):
        saved(PreLN(**SMALL), causal, tmp_path / str(causal))
        model = kind.from_pretrained(tmp_path / str(causal))
        result = model(ids, labels=labels)
        nats = -result.logits.log_softmax(-1)
        picked = [
            nats[row, at - causal, ids[row, at]] for row in range(2) for at in range(12) if at % 3 == 0 and at >= causal
        ]
        torch.testing.assert_close(result.loss, torch.stack(picked).mean())
        result.loss.backward()
        assert all(parameter.grad is not None for parameter in model.parameters())
        assert model(ids, return_dict=False)[0].shape == (2, 12, 512)


def test_generation_equals_taking_the_likeliest_token_again_and_again(tmp_path: Path) -> None:
    backbone, head = saved(PreLN(**SMALL), True, tmp_path)
    model = wt.WorkbenchForCausalLM.from_pretrained(tmp_path).eval()
    model.generation_config.eos_token_id = None
    prompt = documents(6)[0]
    tokens = prompt
    with torch.no_grad():
        for _ in range(8):
            batch = pack([tokens])
            tokens = torch.cat([tokens, head(backbone(batch.tokens_BT, batch, LayerPlan.full(3))[0])[-1:].argmax(-1)])
        padded = torch.cat([torch.zeros(3, dtype=torch.long), prompt])[None]
        mask = (torch.arange(9) >= 3).long()[None]
        for options in ({"input_ids": prompt[None]}, {"input_ids": padded, "attention_mask": mask}):
            out = model.generate(**options, max_new_tokens=8, do_sample=False)
            assert out[0, -14:].tolist() == tokens.tolist()
        # Beyond the longest row, the last 48 tokens are read.
        assert model.generate(documents(44)[0][None], max_new_tokens=10, do_sample=False).shape == (1, 54)


def test_parameters_that_somebody_froze_stay_frozen(tmp_path: Path) -> None:
    saved(PreLN(**SMALL), False, tmp_path)
    model = wt.WorkbenchForMaskedLM.from_pretrained(tmp_path).train()
    model.backbone.blocks[0].requires_grad_(False)
    model(torch.stack(documents(12)), labels=torch.stack(documents(12))).loss.backward()
    assert all(p.grad is None for p in model.backbone.blocks[0].parameters())
    assert all(p.grad is not None for p in model.backbone.blocks[1].parameters())


def test_saving_again_and_half_precision(tmp_path: Path) -> None:
    saved(PreLN(**SMALL, positions="rope"), False, tmp_path / "one")
    model = wt.WorkbenchForMaskedLM.from_pretrained(tmp_path / "one").eval()
    model.save_pretrained(tmp_path / "two")
    again = wt.WorkbenchForMaskedLM.from_pretrained(tmp_path / "two").eval()
    ids = torch.stack(documents(20))
    with torch.no_grad():
        assert torch.equal(model(ids).logits, again(ids).logits)
        half = wt.WorkbenchForMaskedLM.from_pretrained(tmp_path / "two", dtype=torch.bfloat16).eval()(ids).logits
    assert half.dtype == torch.bfloat16
    assert (half.float() - again(ids).logits).norm() / half.float().norm() < 0.1


def test_what_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    config = wt.WorkbenchConfig(architecture={"kind": "pre_lm", "layers": 1})
    with pytest.raises(RecipeError, match=r"architecture.kind: unknown value 'pre_lm'; did you mean 'pre_ln'"):
        config.choice()
    saved(PreLN(**SMALL), False, tmp_path)
    with pytest.raises(RecipeError, match="keeps its vocabulary"):
        wt.WorkbenchForMaskedLM.from_pretrained(tmp_path).resize_token_embeddings(600)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("task", ["SequenceClassification", "TokenClassification", "QuestionAnswering"])
def test_fine_tuning_heads_load_train_save_and_load_again(task: str, causal: bool, tmp_path: Path) -> None:
    import transformers

    backbone, _ = saved(PreLN(**SMALL), causal, tmp_path / "export")
    auto = getattr(transformers, f"AutoModelFor{task}")
    options = {} if task == "QuestionAnswering" else {"num_labels": 3}
    model = auto.from_pretrained(tmp_path / "export", **options)
    for name, weight in backbone.state_dict().items():
        assert torch.equal(model.state_dict()[f"backbone.{name}"], weight)
    assert not model.classifier.bias.any()
    assert 0.01 < float(model.classifier.weight.detach().std()) < 0.03, "fresh, and small"
    ids, mask = torch.randint(5, 500, (2, 26)), torch.ones(2, 26, dtype=torch.long)
    mask[1, :9] = 0  # padding on the left
    labels: dict[str, Any] = {
        "SequenceClassification": {"labels": torch.tensor([0, 2])},
        "TokenClassification": {"labels": torch.randint(0, 3, (2, 26))},
        "QuestionAnswering": {"start_positions": torch.tensor([3, 26]), "end_positions": torch.tensor([5, 99])},
    }[task]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        out = model(input_ids=ids, attention_mask=mask, **labels)
        out.loss.backward()
        assert all(parameter.grad is not None for parameter in model.parameters())
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(out.loss.detach()))
    assert losses[2] < losses[0]
    model.eval().save_pretrained(tmp_path / "tuned")
    again = auto.from_pretrained(tmp_path / "tuned").eval()
    with torch.no_grad():
        for ours, theirs in zip(model(ids, mask).to_tuple(), again(ids, mask).to_tuple(), strict=True):
            assert torch.equal(ours, theirs)
            if task == "SequenceClassification":
                assert ours.shape == (2, 3)
                # What stands at padding is nobody's business.
                ids[1, :9] = 7
                torch.testing.assert_close(again(ids, mask).logits, ours)
