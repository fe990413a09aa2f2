"""Head and loss on labelled rows: against the plain formula, compiled against eager, with rows that do not count."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.objective import Builder, TrainingModel
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Budget, Progress
from workbench.recipes.recipe import Recipe

VOCABULARY = Vocabulary(size=128, used=120, cls=1, sep=2, mask=3, pad=0, unk=4)
START = Progress(0, 0, 0.0, Budget())
PLAN = LayerPlan.full(2)


def batch_of(rows: int = 3, length: int = 16) -> Batch:
    tokens = torch.randint(5, 120, (rows, length), generator=torch.Generator().manual_seed(1))
    half = length // 2
    tokens[:, 0] = tokens[:, half] = 1
    tokens[:, half - 1] = tokens[:, -1] = 2
    positions = (torch.arange(length) % half).expand(rows, length)
    documents = (torch.arange(length) // half).int().expand(rows, length)
    return Batch(tokens, positions, documents, torch.arange(rows))


def model_of(objective: str, head: str = "linear", seed: int = 0) -> TokenPrediction:
    torch.manual_seed(0)
    recipe = Recipe(
        objective=objective, architecture={"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2, "head": head}
    )
    model = recipe.objective.build(Builder(recipe.architecture, VOCABULARY, 16, seed, recipe.objective.causal))
    assert isinstance(model, TokenPrediction)
    return model


def mean_loss(model: TrainingModel, batch: Batch, plan: LayerPlan = PLAN) -> Tensor:
    """Nats per label of a batch that is a whole step."""
    loss: Tensor = model(batch, plan, START).over(model.counts(batch, START))
    return loss


def slow_scores(model: TokenPrediction, batch: Batch) -> tuple[Tensor, Tensor]:
    """Loss and accuracy over the labels that count, from logits of every position, one label at a time."""
    seen = model.labelled(batch, START)
    logits = model.head(model.backbone(seen.tokens_BT, batch, PLAN)).flatten(0, 1).double()
    index = torch.arange(logits.shape[0]) if seen.index_N is None else seen.index_N
    nats, hits = [], []
    for position, label, weight in zip(index.tolist(), seen.labels_N.tolist(), seen.weight_N.tolist(), strict=True):
        if weight:
            nats.append(-logits[position].log_softmax(0)[label])
            hits.append(float(logits[position].argmax() == label))
    return torch.stack(nats).mean(), torch.tensor(hits).mean()


@pytest.mark.parametrize("objective", ["masked", "causal"])
@pytest.mark.parametrize("head", ["linear", "transform"])
def test_loss_and_accuracy_equal_the_plain_formula(objective: str, head: str) -> None:
    model, batch = model_of(objective, head), batch_of()
    result = model(batch, PLAN, START)
    loss, accuracy = slow_scores(model, batch)
    counts = model.counts(batch, START)
    found = result.over(counts)
    assert found.item() == pytest.approx(loss.item(), rel=1e-5)
    assert result.metrics["accuracy"].item() / counts["loss"] == pytest.approx(accuracy.item(), abs=1e-6)
    assert not result.metrics["accuracy"].requires_grad
    assert found.dtype == torch.float32


def test_tied_maxima_share_the_hit() -> None:
    model, batch = model_of("causal"), batch_of()
    torch.nn.init.zeros_(model.head.decoder.weight if hasattr(model.head, "decoder") else model.head.weight)
    accuracy = model(batch, PLAN, START).metrics["accuracy"].item() / model.counts(batch, START)["loss"]
    assert accuracy == pytest.approx(1 / VOCABULARY.size, rel=1e-4), "all logits are equal: a guess, not a hit"


def test_heldout_logits_are_float32_under_autocast() -> None:
    model, batch = model_of("causal"), batch_of()
    seen = model.labelled(batch, START)
    with torch.autocast("cpu", torch.bfloat16):
        states = model.backbone(seen.tokens_BT, batch, PLAN).flatten(0, 1)
        total = model.heldout(batch, seen, PLAN).double().sum()
    exact = torch.nn.functional.cross_entropy(model.head(states.float()).double(), seen.labels_N, reduction="none")
    # A product rounded to bf16 is off in the third digit of every logit.
    assert total.item() == pytest.approx((exact * seen.weight_N).sum().item(), rel=1e-6)


@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_logits_of_tokens_are_those_that_the_held_out_score_reads(objective: str) -> None:
    model, batch = model_of(objective), batch_of()
    seen = model.labelled(batch, START)
    logits = model.token_logits(batch, seen, PLAN)
    assert (logits.dtype, logits.requires_grad) == (torch.float32, False)
    nats = torch.nn.functional.cross_entropy(logits, seen.labels_N, reduction="none") * seen.weight_N
    torch.testing.assert_close(model.heldout(batch, seen, PLAN), nats)


def test_a_batch_without_a_label_that_counts_gives_zero_not_nan() -> None:
    model = model_of("causal")
    batch = batch_of()
    alone = batch._replace(documents_BT=torch.arange(16, dtype=torch.int32).expand(3, 16))
    loss = mean_loss(model, alone)
    loss.backward()
    assert loss.item() == 0.0
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.extended
@pytest.mark.parametrize("objective", ["masked", "causal"])
@pytest.mark.process
def test_compiled_equals_eager_and_keeps_names(objective: str) -> None:
    model, batch = model_of(objective), batch_of()
    names = list(model.state_dict())
    eager = mean_loss(model, batch)
    eager.backward()
    grads = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model.compile()
    compiled = mean_loss(model, batch)
    compiled.backward()
    assert compiled.item() == pytest.approx(eager.item(), rel=1e-5)
    for parameter, grad in zip(model.parameters(), grads, strict=True):
        torch.testing.assert_close(parameter.grad, grad, rtol=1e-3, atol=1e-5)
    assert list(model.state_dict()) == names
