"""A wider model computes the same function, for every part a model can have; state follows its weights."""

from __future__ import annotations

import pytest
import torch

from workbench.base.errors import RecipeError
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.objective import TrainingModel
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import build_model, build_optimizer
from workbench.training.widening import _before_logits, _copies, _shares, copy_state, widen

VOCABULARY = Vocabulary(size=128, used=120, cls=1, sep=2, mask=3, pad=0, unk=4)
ARCHITECTURES = [
    {"kind": "pre_ln"},
    {"kind": "pre_ln", "norm": "layer_norm", "bias": True, "ffn": "geglu"},
    {"kind": "pre_ln", "ffn": "swiglu", "positions": "learned", "head": "transform"},
    {"kind": "pre_ln", "positions": "tupe_r", "embedding_norm": True},
    {"kind": "pre_ln", "tied": False},
    {"kind": "pre_ln", "bigram_rows": 50, "value_embeddings": True, "residual_init": "zero"},
    {"kind": "post_ln"},
    {"kind": "post_ln", "head": "linear", "norm": "rms_norm"},
]


def some_batch(rows: int = 4, length: int = 16) -> Batch:
    tokens = torch.randint(5, 120, (rows, length), generator=torch.Generator().manual_seed(2))
    half = length // 2
    tokens[:, [0, half]], tokens[:, [half - 1, -1]] = 1, 2
    pieces = (torch.arange(length) // half).int().expand(rows, length)
    return Batch(tokens, (torch.arange(length) % half).expand(rows, length), pieces, torch.arange(rows))


def pair(architecture: dict[str, object], **depth: object) -> tuple[Recipe, TrainingModel, TrainingModel]:
    """A narrow model far from its initialisation, and a fresh wide one."""
    recipe = Recipe(
        data={"kind": "embedded", "sequence_length": 16},
        architecture={"layers": 2, "width": 32, "heads": 4, **architecture},
        depth={"kind": "grow_width", **depth},
        execution={"kind": "native", "device": "cpu", "attention": "plain"},
    )
    models = [
        build_model(recipe, recipe.depth.architecture_at(recipe.architecture, stage), VOCABULARY, recipe.engine())
        for stage in (0, 1)
    ]
    with torch.no_grad():
        for parameter in models[0].parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return recipe, models[0], models[1]


def logits(model: TrainingModel) -> torch.Tensor:
    """(B * T, V) of every position, without dropout."""
    model.eval()
    batch = some_batch()
    with torch.no_grad():
        return model.head(model.backbone(batch.tokens_BT, batch, LayerPlan.full(2)).flatten(0, 1))


@pytest.mark.parametrize("factor", [2, 4])
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda knobs: "-".join(map(str, knobs.values())))
def test_the_function_is_preserved(architecture: dict[str, object], factor: int) -> None:
    _, narrow, wide = pair(architecture, factor=factor)
    before = logits(narrow)
    assert float((logits(wide) - before).abs().max()) > 0.1, "a fresh wide model is another function"
    widen(narrow, wide, seed=0)
    assert float(before.std()) > 0.1
    torch.testing.assert_close(logits(wide), before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ffn", ["relu2", "geglu"])
def test_inner_width_alone(ffn: str) -> None:
    _, narrow, wide = pair({"kind": "pre_ln", "ffn": ffn, "positions": "alibi"}, what="ffn")
    before = logits(narrow)
    widen(narrow, wide, seed=0)
    torch.testing.assert_close(logits(wide), before, rtol=1e-5, atol=1e-5)


def test_copies_get_different_gradients() -> None:
    """Not even in proportion: Adam would make proportional gradients equal."""
    _, narrow, wide = pair({"kind": "pre_ln"})
    widen(narrow, wide, seed=0)
    batch = some_batch()
    states = wide.backbone(batch.tokens_BT, batch, LayerPlan.full(2)).flatten(0, 1)
    torch.nn.functional.cross_entropy(wide.head(states), batch.tokens_BT.flatten()).backward()
    for product in (wide.backbone.blocks[0].feed_forward.up, wide.backbone.blocks[0].attention.out):
        assert product.weight.grad is not None
        one, other = product.weight.grad.chunk(2)
        cosine = torch.nn.functional.cosine_similarity(one, other, dim=1)
        assert float(cosine.max()) < 0.999


def test_shares_are_uneven_and_add_up_to_one() -> None:
    places = _copies(5, 12, 1)
    shares = _shares(places, 7, 5, torch.Generator().manual_seed(0))
    sums = torch.zeros(7, 5).index_add_(1, places, shares)
    torch.testing.assert_close(sums, torch.ones(7, 5))
    assert float(shares.min()) > 0.1
    assert float(shares[:, 0].std()) > 0.01


def test_pieces_of_an_axis_grow_each_by_itself() -> None:
    assert _copies(4, 8, 2).tolist() == [0, 1, 0, 1, 2, 3, 2, 3]
    assert _copies(3, 5, 1).tolist() == [0, 1, 2, 0, 1]
    with pytest.raises(RecipeError, match=r"an axis of 6 cannot grow to 4"):
        _copies(6, 4, 1)


@pytest.mark.parametrize("optimizer", ["adamw", "lans"])
def test_moments_are_repeated_like_their_weights(optimizer: str) -> None:
    recipe, narrow, wide = pair({"kind": "pre_ln"})
    recipe = recipe.with_(optimizer=optimizer)
    old, new = (build_optimizer(recipe, model, recipe.engine()) for model in (narrow, wide))
    for parameter in narrow.parameters():
        parameter.grad = torch.randn_like(parameter)
    old.step()
    copy_state(old, new, widen(narrow, wide, seed=0))
    small, large = narrow.backbone.blocks[0].attention.qkv.weight, wide.backbone.blocks[0].attention.qkv.weight
    moment = new.state[large]["exp_avg"]
    assert moment.shape == large.shape
    # Second head of the keys, first copy: rows of the narrow model's second head, its inputs once per copy.
    torch.testing.assert_close(moment[32:40], old.state[small]["exp_avg"][16:24].repeat(1, 2))
    assert torch.as_tensor(new.state[large]["step"]) == 1
    for parameter in wide.parameters():
        parameter.grad = torch.randn_like(parameter)
    new.step()


def test_state_of_another_shape_starts_afresh() -> None:
    weight, wide = torch.nn.Parameter(torch.ones(4, 2)), torch.nn.Parameter(torch.ones(8, 4))
    old, new = torch.optim.SGD([weight], 0.1), torch.optim.SGD([wide], 0.1)
    old.state[weight] = {"rows": torch.ones(4), "moment": torch.ones(4, 2)}
    copy_state(old, new, [(wide, weight, (_copies(4, 8, 1), _copies(2, 4, 1)))])
    assert not new.state.get(wide)
    old.state[weight] = {"moment": torch.ones(4, 2), "count": 3}
    copy_state(old, new, [(wide, weight, (_copies(4, 8, 1), _copies(2, 4, 1)))])
    assert new.state[wide]["moment"].shape == (8, 4)
    assert new.state[wide]["count"] == 3


def test_what_stands_before_the_logits() -> None:
    _, narrow, _ = pair({"kind": "post_ln"})
    assert _before_logits(narrow) is narrow.head.norm
    _, narrow, _ = pair({"kind": "post_ln", "head": "linear"})
    assert _before_logits(narrow) is narrow.backbone.blocks[-1].feed_forward_norm
    _, narrow, _ = pair({"kind": "pre_ln"})
    assert _before_logits(narrow) is narrow.backbone.final
