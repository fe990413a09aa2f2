"""Several objectives around one backbone: each phase is its objective, and the score is the last one's."""

from __future__ import annotations

import pytest
import torch

from workbench.base.errors import RecipeError
from workbench.choices.objectives.objective import Builder
from workbench.choices.objectives.phases import Phases, PhasesModel
from workbench.choices.progress import Budget, Progress
from workbench.recipes.recipe import Recipe

from .test_token_prediction import PLAN, VOCABULARY, batch_of

SHAPE = {"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2}
SPANS = {"kind": "masked", "selection": "span", "span_boundary": True}


def at(step: int) -> Progress:
    return Progress(step, 0, 0.0, Budget(amount=100))


def phases_model(objective: object) -> PhasesModel:
    torch.manual_seed(0)
    recipe = Recipe(objective=objective, architecture=SHAPE)
    model = recipe.objective.build(Builder(recipe.architecture, VOCABULARY, 16, 0, recipe.objective.causal))
    assert isinstance(model, PhasesModel)
    return model.eval()


def test_each_phase_is_its_objective_on_the_same_weights() -> None:
    parts = ("causal", SPANS, "hybrid")
    model, batch = phases_model({"kind": "phases", "parts": parts, "until": (0.2, 0.6)}), batch_of(4, 16)
    for step, part in ((0, "causal"), (19, "causal"), (20, SPANS), (59, SPANS), (60, "hybrid"), (99, "hybrid")):
        recipe = Recipe(objective=part, architecture=SHAPE)
        alone = recipe.objective.build(Builder(recipe.architecture, VOCABULARY, 16, 0, recipe.objective.causal)).eval()
        number = parts.index(part)
        ours = {name.removeprefix(f"parts.{number}."): tensor for name, tensor in model.state_dict().items()}
        alone.load_state_dict(ours, strict=False)
        assert ours.keys() >= alone.state_dict().keys()
        assert model.counts(batch, at(step)) == alone.counts(batch, at(step))
        assert model.weights(at(step)) == alone.weights(at(step))
        found, expected = (each(batch, PLAN, at(step)) for each in (model, alone))
        for a, b in zip(found.tensors(), expected.tensors(), strict=True):
            torch.testing.assert_close(a, b)
        assert model.choice.labelled_fraction(at(step)) == alone.choice.labelled_fraction(at(step))
        assert model.choice.scheduled_values(at(step))["phase"] == number + 1


@pytest.mark.parametrize("last", ["masked", "causal", "hybrid"])
def test_the_score_is_that_of_the_last_phase(last: str) -> None:
    first = "masked" if last == "causal" else "causal"
    choice = Phases(parts=(first, last))
    own = Recipe(objective=last).objective
    for name in ("causal", "shifted", "generates", "second_score"):
        assert getattr(choice, name) == getattr(own, name)
    model, batch = phases_model(choice), batch_of(2, 16)
    alone = own.build(Builder(Recipe(architecture=SHAPE).architecture, VOCABULARY, 16, 0, own.causal)).eval()
    alone.load_state_dict({name: model.state_dict()[name] for name in alone.state_dict()})
    seen = model.part(-1).labelled(batch, at(0))._replace(index_N=torch.tensor([3, 20]), causal=None)
    seen = seen._replace(labels_N=torch.tensor([7, 8]), weight_N=torch.ones(2))
    torch.testing.assert_close(model.heldout(batch, seen, PLAN), alone.heldout(batch, seen, PLAN))
    torch.testing.assert_close(model.token_logits(batch, seen, PLAN), alone.token_logits(batch, seen, PLAN))


def test_parts_that_read_alike_need_no_other_mask() -> None:
    assert Phases(parts=("masked", {"kind": "masked", "mask_rate": 0.3})).masks == "built"
    assert Phases().masks == "by_step"
    assert Phases(parts=("causal", "causal")).causal
    assert phases_model({"kind": "phases", "parts": ("causal", "causal")}).backbone.causal  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("objective", "why"),
    [
        ({"parts": ("causal", "masked"), "until": (0.5, 0.7)}, "2 parts need 1 boundaries in `until`, got 2"),
        ({"until": (1.0,)}, "`until` must rise strictly between 0 and 1"),
        ({"parts": ("causal", "phases")}, "part 2 is 'phases' again; list its parts here"),
        (
            {"parts": ("causal", {"kind": "masked", "span_boundary": True})},
            "needs spans, and selection 'token' has none",
        ),
        ({"parts": ("causal", {"kind": "masked", "sentence": "order"})}, "part 2 has sentence 'order'"),
        *(
            ({"parts": (part, "masked")}, rf"part 1 is '{part['kind']}', and phases share one network with one head")
            for part in (
                {"kind": "replaced_token"},
                {"kind": "meta_controller"},
                {"kind": "regress"},
                {"kind": "answer"},
                {"kind": "classify", "labels": ("no", "yes")},
            )
        ),
    ],
)
def test_phases_that_cannot_be_are_refused(objective: dict[str, object], why: str) -> None:
    with pytest.raises(RecipeError, match=why) as error:
        Recipe(objective={"kind": "phases", **objective})
    assert len(str(error.value).splitlines()) == 1


def test_the_objective_of_a_phase_is_its_part_and_so_are_the_words_it_draws() -> None:
    few = {"kind": "causal", "sampled_words": 8, "further_tokens": 1}
    model, batch = phases_model({"kind": "phases", "parts": (few, "masked")}), batch_of(2, 16)
    assert not model(batch, PLAN, at(0)).metrics
    assert set(model(batch, PLAN, at(50)).metrics) == {"accuracy"}
    for number, part in enumerate((few, "masked")):
        recipe = Recipe(objective=part, architecture=SHAPE)
        assert model.choice.in_phase(number) == recipe.objective
    assert Recipe(objective=few).objective.in_phase(0).kind == "causal"


def test_models_and_engines_that_know_one_mask_or_one_loss_refuse_phases() -> None:
    with pytest.raises(RecipeError, match=r"'gpt2' .*no masked language model"):
        Recipe(objective="phases", architecture={"kind": "transformers", "model": "gpt2"})
    with pytest.raises(RecipeError, match="one head and one loss, and the objective adds 2 phases"):
        Recipe(objective="phases", execution={"kind": "native", "compile_scope": "step"})
