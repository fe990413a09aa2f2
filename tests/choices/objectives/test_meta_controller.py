"""Multiple choice with a meta controller: against the written-out formula; candidates follow the controller."""

from __future__ import annotations

import pytest
import torch

from tests.choices.objectives.test_token_prediction import START, batch_of
from tests.choices.objectives.test_two_networks import PLAN, two
from workbench.choices.objectives.meta_controller import MetaControllerModel
from workbench.choices.objectives.two_networks import selected


def model_of(choices: int = 4) -> MetaControllerModel:
    model = two("meta_controller", choices=choices)
    assert isinstance(model, MetaControllerModel)
    return model


@pytest.mark.parametrize("choices", [2, 4, 10])
def test_choices_and_loss_equal_the_written_out_formula(choices: int) -> None:
    """One position at a time, in float64; candidates as the model has drawn them."""
    model, batch = model_of(choices), batch_of()
    model.generator.head.weight.data.mul_(30)  # candidates repeat
    seen = selected(model._corrupt(batch), batch, 0.15, seed=3)
    filled = model.filled(batch, seen, seed=3)
    candidates = model.candidates(batch, filled).view(3, 16, choices - 1)
    found = model(batch, PLAN, START)
    states = model.backbone(filled.tokens_BT, batch, PLAN)
    head, table = model.choice_head, model.backbone.embedding.weight
    total, hits = 0.0, {"precision": 0, "recall": 0, "corrected": 0, "main_accuracy": 0}
    for row in range(3):
        for place in range(16):
            true, stands = int(batch.tokens_BT[row, place]), int(filled.tokens_BT[row, place])
            state = head.norm(torch.nn.functional.gelu(head.dense(states[row, place]))).double()
            offered, scores = [stands], [state @ head.keep.double()]
            for candidate in candidates[row, place].tolist():
                if candidate in offered:
                    continue
                offered.append(candidate)
                scores.append(state @ table[candidate].double() + head.bias[candidate])
            if true != stands:
                assert offered[1] == true
            logs = torch.stack(scores).log_softmax(0)
            total -= float(logs[offered.index(true)].detach())
            chosen = offered[int(logs.argmax())]
            hits["recall"] += chosen != stands and true != stands
            hits["precision"] += chosen != stands and true != stands
            hits["corrected"] += chosen == true != stands
            hits["main_accuracy"] += chosen == true
    assert found.parts["main_loss"].item() == pytest.approx(total, rel=1e-5)
    assert {name: int(found.ratios[name][0]) for name in hits} == hits
    assert found.ratios["recall"][1] == (filled.tokens_BT != batch.tokens_BT).sum()


def test_candidates_are_drawn_from_the_controllers_prediction() -> None:
    model, batch = model_of(choices=64), batch_of(rows=1)
    model.generator.head.project.weight.data.mul_(100)
    seen = selected(model._corrupt(batch), batch, 0.15, seed=1)
    filled = model.filled(batch, seen, seed=1)
    drawn = torch.cat([model.candidates(batch, filled._replace(seed=seed))[:, 1:] for seed in range(60)], 1)
    expected = model.fillable(model.generator.head(filled.states_MG).double()).softmax(-1)
    for place in range(16):
        found = drawn[place].bincount(minlength=128) / drawn.shape[1]
        torch.testing.assert_close(found.double(), expected[place].detach(), atol=0.03, rtol=0)
