"""Attention by documents: what is refused by name; and models of ours with it, forward and backward."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.attention import flex_attention as torch_flex
from torch.nn.attention import varlen as torch_varlen

from tests.choices.objectives.test_layout import LENGTH, uneven
from tests.choices.objectives.test_token_prediction import VOCABULARY, mean_loss
from tests.ops.test_packed_attention import one_piece_at_a_time
from workbench.base.errors import RecipeError
from workbench.choices.execution import Native
from workbench.choices.objectives.objective import Builder, TrainingModel
from workbench.recipes.recipe import Recipe


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"execution": {"device": "cpu"}}, "'flex' needs a CUDA device: FlexAttention has no backward pass on a CPU"),
        ({"execution": {"device": "cpu", "attention": "varlen"}}, "'varlen' needs a CUDA device, whose kernel it is"),
        ({"architecture": {"positions": "alibi"}}, "'flex' keeps no logits, and .*positions 'alibi' adds to them"),
        ({"architecture": {"local_window": 32}}, "keeps no logits, and architecture.local_window hides some of them"),
        ({"architecture": "post_ln"}, "keeps no logits, and architecture.dropout falls on probabilities"),
        ({"execution": {"compile": False}}, "one kernel only where blocks are compiled; switch execution.compile on"),
        ({"execution": {"compile_scope": "step"}}, "with execution.compile_scope 'blocks'"),
        ({"architecture": {"heads": 32}}, "'flex' takes heads of at least 16 numbers, and these have 8"),
        ({"execution": {"attention": "varlen", "precision": "fp32"}}, "'varlen' takes 16-bit numbers; .* to 'bf16'"),
        ({"execution": {"attention": "varlen", "compile_scope": "graphs"}}, "as many pieces as a batch has"),
        ({"execution": {"attention": "varlen"}, "objective": "hybrid"}, "one mask for a whole batch, and .*'hybrid'"),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(change: dict[str, Any], why: str) -> None:
    recipe = Recipe().with_(execution={"attention": "flex"})
    with pytest.raises(RecipeError, match=rf"execution\.attention: .*{why}.*; use 'auto', 'plain' or 'sdpa'"):
        recipe.with_(**change)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("name", ["flex", "varlen"])
def test_where_auto_means_a_cpu_it_is_refused_before_anything_starts(name: str) -> None:
    with pytest.raises(RecipeError, match=rf"execution\.attention: '{name}' needs a CUDA device.*use 'auto'"):
        Recipe().with_(execution={"attention": name}).engine()


def test_a_forecast_says_what_it_prices_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a precision that no processor emulates.
    recipe = Recipe().with_(execution={"attention": "flex", "precision": "fp32"})
    monkeypatch.setattr(Native, "resolve_device", lambda self: torch.device("cpu"))
    engine = recipe.engine()
    assert (engine.attentions, engine.priced_attentions, engine.benchmarks()) == (("flex",), ("sdpa",), [])
    assert engine.assumptions() == ["execution.attention 'flex' is priced as 'sdpa'"]


def built(objective: str, attention: str) -> TrainingModel:
    torch.manual_seed(0)
    recipe = Recipe(objective=objective, architecture={"kind": "pre_ln", "layers": 2, "width": 64, "heads": 2})
    causal = recipe.objective.causal
    return recipe.objective.build(Builder(recipe.architecture, VOCABULARY, LENGTH, 0, causal, attention))


@pytest.mark.parametrize("objective", ["masked", "causal"])
@pytest.mark.parametrize("name", ["flex", "varlen"])
def test_a_model_learns_the_same(name: str, objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU with torch's reference of FlexAttention, and a loop in place of the kernel of varlen."""
    monkeypatch.setattr(torch_flex, "_validate_device", lambda *tensors: None)
    monkeypatch.setattr(torch_varlen, "varlen_attn", one_piece_at_a_time)
    results = []
    for attention in ("plain", name):
        model = built(objective, attention)
        loss = mean_loss(model, uneven())
        loss.backward()
        entropy = torch.tensor(model.backbone.attention_entropy(uneven().tokens_BT, uneven()))
        masked = model.backbone.context(uneven().tokens_BT, uneven()).bias_BHTT is not None
        assert masked == (attention == "plain"), "a mask of T x T, where nothing reads it"
        results.append([loss.detach(), entropy, *(p.grad for p in model.parameters() if p.grad is not None)])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
