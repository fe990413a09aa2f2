"""What both objectives with a generator share: its size, what it reads and draws, the tables, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from tests.choices.objectives.test_token_prediction import START, VOCABULARY, batch_of
from workbench.base.errors import RecipeError
from workbench.choices.architectures.pre_ln import PreLN
from workbench.choices.choice import registry
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.corruption import Corruption
from workbench.choices.objectives.objective import Builder
from workbench.choices.objectives.two_networks import Disentangled, TwoNetworks, TwoNetworksModel, selected
from workbench.recipes.recipe import Recipe

KINDS = tuple(kind for kind, choice in registry("objective").items() if issubclass(choice, TwoNetworks))
PLAN = LayerPlan.full(2)
SMALL = {"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2}


def two(kind: str = "replaced_token", architecture: dict[str, Any] | None = None, **knobs: Any) -> TwoNetworksModel:
    torch.manual_seed(0)
    recipe = Recipe(objective={"kind": kind, **knobs}, architecture={**SMALL, **(architecture or {})})
    model = recipe.objective.build(Builder(recipe.architecture, VOCABULARY, 16, 3))
    assert isinstance(model, TwoNetworksModel)
    return model


def gradients(model: TwoNetworksModel, part: str) -> dict[str, Tensor]:
    """Gradients of one part of the loss, by name of the parameter; those that are zero left out."""
    model.zero_grad()
    model(batch_of(), PLAN, START).parts[part].backward()
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {name: grad for name, grad in found.items() if grad is not None and grad.any()}


@pytest.mark.parametrize(
    ("width", "heads", "share", "expected"),
    [
        (256, 4, 0.25, (64, 1)), (768, 12, 1 / 3, (256, 4)), (64, 1, 0.5, (32, 1)), (48, 3, 0.5, (32, 2)),
        (8, 2, 1, (8, 2)),
    ],
)  # fmt: skip
def test_a_generator_has_its_share_of_width_and_heads(
    width: int, heads: int, share: float, expected: tuple[int, int]
) -> None:
    architecture = {"kind": "pre_ln", "layers": 4, "width": width, "heads": heads, "ffn_width": 64}
    recipe = Recipe(
        objective={"kind": "replaced_token", "generator_width": share, "generator_layers": 3}, architecture=architecture
    )
    small = recipe.objective.generator(recipe.architecture)
    assert ((small.width, small.heads), small.layers) == (expected, 3)
    assert small.ffn_width == 64 * share if share == 1 else small.ffn_width <= 64


def test_the_generator_reads_masks_and_true_tokens_alone() -> None:
    batch = batch_of(rows=200)
    seen = selected(Corruption(VOCABULARY, torch.device("cpu")), batch, 0.5, seed=1)
    assert seen.index_N is not None
    shown, true = seen.tokens_BT.flatten()[seen.index_N], batch.tokens_BT.flatten()[seen.index_N]
    assert torch.equal(true, seen.labels_N)
    masked = shown == VOCABULARY.mask
    assert torch.equal(shown[~masked], true[~masked])
    assert masked.float().mean().item() == pytest.approx(0.85, abs=0.03)
    left = torch.ones(batch.tokens_BT.numel(), dtype=torch.bool)
    left[seen.index_N] = False
    assert torch.equal(seen.tokens_BT.flatten()[left], batch.tokens_BT.flatten()[left])


def test_tokens_are_drawn_from_the_generators_prediction() -> None:
    """Against the share of each token that softmax gives, over many seeds; no special token is ever drawn."""
    model, batch = two(), batch_of(rows=1)
    model.generator.head.project.weight.data.mul_(100)
    seen = selected(model._corrupt(batch), batch, 0.15, seed=1)
    drawn = torch.stack([model.filled(batch, seen, seed).tokens_BT[0, seen.index_N] for seed in range(3000)])
    logits = model.generator.head(model.generator.states(seen, batch, PLAN))
    ordinary = torch.arange(VOCABULARY.size).sub(5).clamp(min=-1).ge(0) & (torch.arange(VOCABULARY.size) < 120)
    ordinary[4] = True  # [UNK] is a token like any other
    expected = logits.double().masked_fill(~ordinary, -torch.inf).softmax(-1)
    assert expected.max() > 0.05, "far from uniform"
    for slot in range(drawn.shape[1]):
        found = drawn[:, slot].bincount(minlength=VOCABULARY.size) / len(drawn)
        torch.testing.assert_close(found.double(), expected[slot], atol=0.03, rtol=0)
        assert not found[~ordinary].any()


@pytest.mark.parametrize("kind", KINDS)
def test_no_gradient_of_the_main_loss_reaches_the_generator(kind: str) -> None:
    model = two(kind, embeddings="separate")
    assert all(not name.startswith("generator.") for name in gradients(model, "main_loss"))
    assert all(name.startswith("generator.") for name in gradients(model, "generator_loss"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_shared_table_learns_from_both_losses(kind: str) -> None:
    model = two(kind)
    assert all("backbone.embedding.weight" in gradients(model, part) for part in ("generator_loss", "main_loss"))
    assert "generator.backbone.embedding.weight" not in dict(model.named_parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_disentangled_tables_learn_from_their_own_loss_alone(kind: str) -> None:
    model, shared = two(kind, embeddings="gradient_disentangled"), two(kind)
    table = model.backbone.embedding
    assert isinstance(table, Disentangled)
    torch.testing.assert_close(model(batch_of(), PLAN, START).parts, shared(batch_of(), PLAN, START).parts)
    names = {"backbone.embedding.weight", "backbone.embedding.difference"}
    assert gradients(model, "generator_loss").keys() & names == {"backbone.embedding.weight"}
    assert gradients(model, "main_loss").keys() & names == {"backbone.embedding.difference"}
    # Together they are what the one shared table gets.
    both = gradients(model, "generator_loss")["backbone.embedding.weight"].clone()
    both += gradients(model, "main_loss")["backbone.embedding.difference"]
    expected = gradients(shared, "generator_loss")["backbone.embedding.weight"].clone()
    expected += gradients(shared, "main_loss")["backbone.embedding.weight"]
    torch.testing.assert_close(both, expected)
    table.difference.data.normal_()
    tokens = torch.arange(128)[None]
    torch.testing.assert_close(table(tokens)[0], table.whole())


@pytest.mark.parametrize("kind", KINDS)
def test_packed_documents_do_not_see_each_other(kind: str) -> None:
    """Another first document leaves what is drawn and judged in the second one as it was."""
    model, batch = two(kind), batch_of()
    tokens = batch.tokens_BT.clone()
    tokens[:, 1:7] = 5 + (tokens[:, 1:7] + 30) % 100
    states: list[Tensor] = []
    model.backbone.register_forward_hook(lambda module, args, out: states.append(out[:, 8:].detach()))
    for rows in (batch, batch._replace(tokens_BT=tokens)):
        model(rows, PLAN, START)
    torch.testing.assert_close(states[0], states[1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_generator_trains_where_a_plan_freezes_all_else(kind: str) -> None:
    model = two(kind, embeddings="separate")
    model.freeze_outside(LayerPlan.full(2, embedding=False, head=False))
    still = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert {name for name in still if not name.startswith("backbone.blocks.")} == {
        name for name, _ in model.named_parameters() if name.startswith("generator.")
    }


@pytest.mark.extended
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_equals_eager(kind: str) -> None:
    torch._dynamo.reset()
    eager, compiled = two(kind), two(kind)
    compiled.compile()
    for model in (eager, compiled):
        model(batch_of(), PLAN, START).over({"generator_loss": 6, "main_loss": 48}, {"main_loss": 50.0}).backward()
    for (name, one), other in zip(eager.named_parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(other.grad, one.grad, atol=1e-4, rtol=1e-3, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_flops_are_those_of_both_networks(kind: str) -> None:
    """Against torch's counter; look-ups are no products, so a table that is projected counts a little more."""
    model, batch = two(kind, {"width": 64, "heads": 4}), batch_of(rows=8)
    architecture, counts = PreLN(layers=2, width=64, heads=4), model.counts(batch, START)
    with FlopCounterMode(display=False) as counter:
        model(batch, PLAN, START).over(counts, model.weights(START)).backward()
    found = model.choice.flops(architecture, VOCABULARY.size, [PLAN], 128, counts["generator_loss"], 16, 16)
    assert found == pytest.approx(counter.get_total_flops(), rel=0.06)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective.generator_width": 1.5}, "must be less than or equal to 1, got 1.5"),
        ({"objective.generator_layers": 5}, "5 layers is deeper than the main network"),
        ({"architecture": {"kind": "transformers", "model": "bert", "layers": 2, "width": 32, "heads": 2}},
         "'transformers' brings its own; use 'separate'"),
        ({"depth": "grow_width"}, "'grow_width' changes the width of the main network"),
        ({"execution.compile_scope": "step"}, "the objective adds a generator; use 'blocks'"),
        ({"execution.head": "all"}, "the objective adds a generator; use 'labelled'"),
        ({"execution.padding": "kept"}, "the objective adds a generator; use 'removed'"),
        ({"optimizer": "sophia"}, "not of objective 'replaced_token'"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_two_networks_is_refused(changes: dict[str, Any], message: str) -> None:
    recipe = Recipe(objective="replaced_token", architecture={"kind": "pre_ln", "layers": 4, "width": 64, "heads": 2})
    with pytest.raises(RecipeError, match=message):
        recipe.with_(**changes)
