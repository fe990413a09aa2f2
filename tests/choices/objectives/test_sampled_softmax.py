"""Sampled softmax against the full one: the words that are drawn, the correction, the gradient, what a run says."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from tests.choices.objectives.test_token_prediction import PLAN, START, VOCABULARY, batch_of
from workbench.base.errors import RecipeError
from workbench.choices.architectures.heads import HEADS, LinearHead
from workbench.choices.objectives.objective import Builder
from workbench.choices.objectives.sampled_softmax import draw_words, sampled_nats
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.recipes.recipe import Recipe


def head_of(kind: str) -> LinearHead:
    torch.manual_seed(0)
    head = HEADS[kind](torch.nn.Embedding(50, 8), tied=False)
    torch.nn.init.normal_(head.weight)
    if head.bias is not None:
        torch.nn.init.normal_(head.bias)
    return head


def model_of(objective: str, words: int) -> TokenPrediction:
    torch.manual_seed(0)
    architecture = {"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2}
    recipe = Recipe(objective={"kind": objective, "sampled_words": words}, architecture=architecture)
    model = recipe.objective.build(Builder(recipe.architecture, VOCABULARY, 16, 0, recipe.objective.causal))
    assert isinstance(model, TokenPrediction)
    return model


def test_words_are_drawn_as_often_as_is_said() -> None:
    words, expected = draw_words(200_000, 50, seed=1, samples_B=torch.tensor([7]))
    found = words.bincount(minlength=50)
    chances = [math.log((word + 2) / (word + 1)) / math.log(51) for word in range(50)]
    assert sum(chances) == pytest.approx(1)
    torch.testing.assert_close(found / 200_000, torch.tensor(chances), atol=0.003, rtol=0)
    torch.testing.assert_close(expected, torch.tensor(chances)[words].mul(200_000).log())
    again, _ = draw_words(200_000, 50, seed=1, samples_B=torch.tensor([7, 9]))
    assert torch.equal(words, again), "the first sample decides"


@pytest.mark.parametrize("kind", ["linear", "transform"])
def test_the_loss_equals_the_written_out_formula(kind: str) -> None:
    head, x = head_of(kind), torch.randn(3, 8)
    labels, weight = torch.tensor([4, 0, 30]), torch.tensor([1.0, 0.0, 1.0])
    words, expected = draw_words(20, 50, seed=2, samples_B=torch.tensor([0]))
    assert 4 not in words or 0 in words, "some drawn word is a label"
    logits, total = head(x).double().detach(), 0.0
    for row, label in enumerate(labels.tolist()):
        sum_ = math.exp(logits[row, label])
        for word, log_count in zip(words.tolist(), expected.tolist(), strict=True):
            if word != label:
                sum_ += math.exp(logits[row, word] - log_count)
        total += float(weight[row]) * (math.log(sum_) - float(logits[row, label]))
    found = sampled_nats(head, x, labels, weight, words, expected)
    assert found.item() == pytest.approx(total, rel=1e-5)


@pytest.mark.extended
def test_the_denominator_is_right_on_average() -> None:
    """exp(loss) = Z / exp(label's logit) in expectation, however few words are drawn."""
    head, x = head_of("linear"), torch.randn(1, 8)
    label, one = torch.tensor([3]), torch.ones(1)
    with torch.no_grad():
        true = F.cross_entropy(head(x), label).exp().item()
        draws = (draw_words(5, 50, seed, torch.tensor([0])) for seed in range(20_000))
        found = torch.stack([sampled_nats(head, x, label, one, *drawn).exp() for drawn in draws])
    assert found.mean().item() == pytest.approx(true, abs=4 * float(found.std()) / len(found) ** 0.5)
    assert found.std() > 0.1 * true, "one draw alone is far off"


@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_gradients_of_many_words_are_those_of_all(objective: str) -> None:
    sampled, full = model_of(objective, 200_000), model_of(objective, 0)
    for model in (sampled, full):
        model(batch_of(), PLAN, START).parts["loss"].backward()
    for (name, one), other in zip(sampled.named_parameters(), full.parameters(), strict=True):
        assert one.grad is not None, name
        assert other.grad is not None, name
        assert (one.grad - other.grad).norm() < 0.02 * other.grad.norm(), name


def test_scores_use_all_words_and_training_says_no_accuracy() -> None:
    sampled, full = model_of("causal", 8), model_of("causal", 0)
    batch = batch_of()
    seen = full.labelled(batch, START)
    assert torch.equal(sampled.heldout(batch, seen, PLAN), full.heldout(batch, seen, PLAN))
    assert sampled(batch, PLAN, START).metrics == {}
    assert full(batch, PLAN, START).metrics.keys() == {"accuracy"}


@pytest.mark.extended
def test_compiled_equals_eager() -> None:
    torch._dynamo.reset()
    eager, compiled = model_of("masked", 16), model_of("masked", 16)
    compiled.compile()
    for model in (eager, compiled):
        model(batch_of(), PLAN, START).parts["loss"].backward()
    for (name, one), other in zip(eager.named_parameters(), compiled.named_parameters(), strict=True):
        torch.testing.assert_close(other[1].grad, one.grad, atol=1e-4, rtol=1e-3, msg=name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": {"kind": "transformers", "model": "bert", "layers": 2, "width": 32, "heads": 2}},
         "brings a head that computes all words; use 0"),
        ({"execution.compile_scope": "step"}, "compiles a head over all words"),
        ({"execution": "onnxruntime"}, "ORT's graph holds the head over all words"),
    ],
)  # fmt: skip
def test_what_computes_all_words_anyway_is_refused(changes: dict[str, object], message: str) -> None:
    recipe = Recipe(objective={"kind": "causal", "sampled_words": 64})
    with pytest.raises(RecipeError, match=message):
        recipe.with_(**changes)
