"""New heads on packed examples, against one example at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from workbench.choices.architectures import PreLN
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives import AnswerSpan, Classify, Regress
from workbench.choices.objectives.fine_tuning import FineTuning
from workbench.choices.objectives.objective import Builder
from workbench.choices.progress import Budget, Progress
from workbench.choices.tasks.encoding import Encoded
from workbench.choices.tasks.files import Answer, Example
from workbench.choices.tasks.rows import packed

VOCABULARY = Vocabulary(size=64, used=60, cls=1, sep=2, mask=3, pad=0, unk=4)
START = Progress(0, 0, 0.0, Budget(amount=10))
PLAN = LayerPlan.full(2)
CHOICES = [
    Classify(labels=("a", "b", "c"), dropout=0.0), Classify(labels=("a", "b"), reads="left", dropout=0.0),
    Classify(labels=("a", "b"), pooling="mean", dropout=0.0), Regress(mean=2.0, spread=0.5, dropout=0.0),
    AnswerSpan(dropout=0.0),
]  # fmt: skip


def examples(choice: FineTuning) -> Encoded:
    random = np.random.default_rng(0)
    ids = [np.array([1, *random.integers(5, 60, length), 2]) for length in (3, 12, 7, 5, 9)]
    if choice.whole:
        targets: Any = np.array([(0, 0), (4, 6), (3, 3), (0, 0), (9, 9)])
    elif isinstance(choice, Regress):
        targets = np.array([choice.target(label) for label in (1.0, 2.0, 2.5, 3.0, 1.5)])
    else:
        targets = np.array([0, 1, 1, 0, 1])
    return Encoded([], ids, np.arange(5), targets, np.full(5, 3 if choice.whole else 1))


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: f"{choice.kind} {choice.pooling} {choice.reads}")
def test_packed_examples_cost_and_learn_as_one_at_a_time(choice: FineTuning) -> None:
    torch.manual_seed(0)
    encoded = examples(choice)
    model = choice.build(Builder(PreLN(layers=2, width=16, heads=2), VOCABULARY, 32, causal=choice.causal))
    torch.nn.init.normal_(model.head.weight)
    slow = torch.zeros(())
    for place, (ids, target) in enumerate(zip(encoded.ids, encoded.targets, strict=True)):
        alone = packed(encoded, [place], 0)
        whole = torch.zeros(1, len(ids), dtype=torch.int32)
        row = alone.rows._replace(positions_BT=torch.arange(len(ids))[None], documents_BT=whole)
        states = model.backbone(torch.from_numpy(ids)[None], row, PLAN)[0]
        if choice.whole:
            scores = model.head(states)
            scores[1:3], scores[-1] = -torch.inf, -torch.inf  # question and [SEP]
            slow = slow + F.cross_entropy(scores.T, torch.tensor(target)) / 2 * 2
        else:
            state = states.mean(0) if choice.pooling == "mean" else states[-1 if choice.causal else 0]
            out = model.head(state)
            if isinstance(choice, Regress):
                slow = slow - torch.distributions.Normal(float(target), 1.0).log_prob(out[0])
            else:
                slow = slow - out.log_softmax(0)[int(target)]
    batch = packed(encoded, [3, 1, 4, 0, 2], 0)
    found = model(batch, PLAN, START)
    torch.testing.assert_close(found.parts["loss"], slow, rtol=1e-5, atol=1e-5)
    assert model.counts(batch, START) == {"loss": 5}
    found.parts["loss"].backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_scores_and_baselines_by_name() -> None:
    train = [Example("", "train", ("x",), label) for label in "aab"]
    classify = Classify(labels=("a", "b"))
    encoded = Encoded(train, [], np.arange(3), np.array([0, 0, 1]), np.ones(3))
    assert classify.scores(list(np.eye(2)[[0, 0, 1]]), encoded) == {"accuracy": 1.0, "f1": 1.0, "matthews": 1.0}
    assert classify.baseline(train, train)["accuracy"] == pytest.approx(2 / 3)
    assert Regress().baseline(train, train) == {"spearman": 0.0}
    asked = Example("", "dev", ("Who sat?", "It rained. The cat sat. Dogs ran."), (Answer("The cat", 11),))
    assert AnswerSpan().baseline([], [asked]) == {"f1": pytest.approx(2 / 3), "exact_match": 0.0}


def test_the_loss_of_a_number_is_in_nats_of_a_gaussian() -> None:
    encoded = examples(choice := Regress(mean=2.0, spread=0.5))
    nats, _ = choice.nats(torch.zeros(5, 1), packed(encoded, range(5), 0))
    assert float(nats) / 5 == pytest.approx(math.log(2 * math.pi) / 2 + np.square(encoded.targets).mean() / 2)
