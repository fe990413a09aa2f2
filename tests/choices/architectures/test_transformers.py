"""transformers models under a LayerPlan compute what transformers itself computes, layer by layer."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.choices.architectures.packing import VOCABULARY, documents, pack
from workbench.base.errors import RecipeError
from workbench.choices.architectures import transformers_config
from workbench.choices.architectures.pretrained_bert import from_transformers
from workbench.choices.architectures.transformers import Transformers
from workbench.choices.architectures.transformers_stack import TransformersStack
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.recipes.recipe import Recipe

FAMILIES = [
    ("bert", False), ("bert", True), ("roberta", False), ("distilbert", False), ("modernbert", False),
    ("electra", False), ("gpt2", True), ("llama", True), ("opt", True), ("gpt_neox", True), ("qwen2", True),
]  # fmt: skip
RARE = [("deberta-v2", False), ("mpt", True), ("gemma2", True), ("roformer", False), ("rembert", False),
        ("megatron-bert", False), ("codegen", True), ("gptj", True)]  # fmt: skip
FAMILIES += [pytest.param(*each, marks=pytest.mark.extended) for each in RARE]  # type: ignore[misc]
every_family = pytest.mark.parametrize(("family", "causal"), FAMILIES)
SHAPE = {"layers": 3, "width": 32, "heads": 4}
FULL = LayerPlan.full(3)


def plan(**changes: Any) -> LayerPlan:
    fields = {"runs": (True,) * 3, "scale": (1.0,) * 3, "trains": (True,) * 3, "keep": (1.0,) * 3, "total": 3}
    return LayerPlan(**{**fields, **changes})


def build(family: str, causal: bool, attention: str = "sdpa", **knobs: Any) -> TransformersStack:
    torch.manual_seed(0)
    choice = Transformers(model=family, **{**SHAPE, **knobs})
    stack = choice.build(VOCABULARY, 48, causal=causal, attention=attention)
    assert isinstance(stack, TransformersStack)
    with torch.no_grad():
        for parameter in stack.parameters():
            if parameter.dim() == 2:
                parameter.mul_(4)  # attention must not be uniform to be tested
    return stack.eval()


def reference(stack: TransformersStack, layers: int, folder: Path, causal: bool) -> Any:
    """The same model as transformers loads it from a folder."""
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

    with stack.whole(layers) as model:
        model.save_pretrained(folder)
    return (AutoModelForCausalLM if causal else AutoModelForMaskedLM).from_pretrained(folder).eval()


def row(*lengths: int) -> Batch:
    return pack(documents(*lengths))


@every_family
def test_logits_are_those_of_the_exported_model_also_packed(family: str, causal: bool, tmp_path: Path) -> None:
    stack = build(family, causal)
    theirs = reference(stack, 3, tmp_path, causal)
    pieces = documents(5, 17, 1, 11)
    batch = pack(pieces)
    with torch.no_grad():
        logits = stack.head[0].eval()(stack(batch.tokens_BT, batch, FULL)[0])
        alone = torch.cat([theirs(piece[None]).logits[0] for piece in pieces])
    assert logits.std() > 1e-3
    torch.testing.assert_close(logits, alone, rtol=1e-4, atol=1e-5)


@every_family
def test_a_dropped_layer_is_one_that_is_not_there(family: str, causal: bool, tmp_path: Path) -> None:
    stack, batch = build(family, causal), row(20, 12)
    with torch.no_grad():
        dropped = stack(batch.tokens_BT, batch, plan(runs=(True, True, False)))
        absent = stack(batch.tokens_BT, batch, LayerPlan((True,) * 2, (1.0,) * 2, (True,) * 2, (1.0,) * 2, 3))
        assert torch.equal(dropped, absent)
        assert not torch.allclose(dropped, stack(batch.tokens_BT, batch, FULL), atol=1e-3)
        # The exported model of a run that has grown two layers so far: the same without the third.
        theirs = reference(stack, 2, tmp_path, causal)
        piece = batch.tokens_BT[:, :20]
        logits = stack.head[0].eval()(absent[0, :20])
        torch.testing.assert_close(logits, theirs(piece).logits[0], rtol=1e-4, atol=1e-5)
    assert theirs.config.num_hidden_layers == 2


def test_scale_of_a_post_norm_layer_is_that_of_post_ln(tmp_path: Path) -> None:
    stack, batch = build("bert", False), row(20, 12)
    _, ours, _ = from_transformers(reference(stack, 3, tmp_path, False))
    scaled = plan(scale=(1.5, 0.5, 2.0))
    with torch.no_grad():
        wanted = ours.eval()(batch.tokens_BT, batch, scaled)
        torch.testing.assert_close(stack(batch.tokens_BT, batch, scaled), wanted, rtol=1e-4, atol=1e-5)
        assert (wanted - ours(batch.tokens_BT, batch, FULL)).abs().mean() > 0.01


def last_layer(stack: TransformersStack, batch: Batch, norm: str) -> list[torch.Tensor]:
    """Input of the last layer, its output, that with scale 3, and what the layer's module ``norm`` reads at scale 1."""
    read: list[torch.Tensor] = []
    names = ("ln_f", "norm", "final_norm", "final_layer_norm")
    final = next(getattr(stack.trunk, name) for name in names if hasattr(stack.trunk, name))
    with torch.no_grad():
        hook = final.register_forward_pre_hook(lambda m, i: read.append(i[0]))
        for changes in ({"runs": (True, True, False)}, {}, {"scale": (1.0, 1.0, 3.0)}):
            stack(batch.tokens_BT, batch, plan(**changes))
        hook.remove()
        hook = getattr(stack.blocks[2], norm).register_forward_pre_hook(lambda m, i: read.append(i[0]))
        stack(batch.tokens_BT, batch, FULL)
        hook.remove()
    return read


@pytest.mark.parametrize(
    ("family", "reader", "feed_forward"),
    [
        ("gpt2", "ln_2", lambda layer, h: layer.mlp(layer.ln_2(h))),
        ("llama", "post_attention_layernorm", lambda layer, h: layer.mlp(layer.post_attention_layernorm(h))),
        ("modernbert", "mlp_norm", lambda layer, h: layer.mlp(layer.mlp_norm(h))),
        # It also has norms of the branches' outputs, which read no stream.
        (
            "gemma2",
            "pre_feedforward_layernorm",
            lambda layer, h: layer.post_feedforward_layernorm(layer.mlp(layer.pre_feedforward_layernorm(h))),
        ),
    ],
)
def test_scale_of_a_pre_norm_layer_multiplies_each_branch_as_in_pre_ln(
    family: str, reader: str, feed_forward: Callable[[Any, torch.Tensor], torch.Tensor]
) -> None:
    """h = x + s Attn(x), y = h + s FFN(h), the second branch written out with the layer's own modules."""
    stack = build(family, family != "modernbert")
    x, out, scaled, attended = last_layer(stack, row(20, 12), reader)
    with torch.no_grad():
        torch.testing.assert_close(attended + feed_forward(stack.blocks[2], attended), out, rtol=1e-5, atol=1e-5)
        h = x + 3 * (attended - x)
        torch.testing.assert_close(scaled, h + 3 * feed_forward(stack.blocks[2], h), rtol=1e-3, atol=1e-4)


def test_scale_of_branches_that_start_side_by_side_multiplies_their_sum() -> None:
    x, out, scaled, both = last_layer(build("gpt_neox", True), row(20, 12), "post_attention_layernorm")
    assert torch.equal(x, both)
    torch.testing.assert_close(scaled, x + 3 * (out - x), rtol=1e-4, atol=1e-5)


@every_family
def test_frozen_layers_get_no_gradient_and_the_lowest_no_graph(family: str, causal: bool) -> None:
    stack, batch = build(family, causal).train(), row(20, 12)
    states = stack(batch.tokens_BT, batch, plan(trains=(False, True, False)))
    stack.head[0](states[0]).square().mean().backward()
    trained = [any(p.grad is not None for p in block.parameters()) for block in stack.blocks]
    assert trained == [False, True, False]
    below = [p for name, p in stack.trunk.named_parameters() if "norm" not in name.lower() and p.ndim > 1]
    assert all(p.grad is None or p is stack.embedding.weight for p in below)
    # A dropped layer below the first that trains cuts the graph as well.
    stack.zero_grad()
    stack(batch.tokens_BT, batch, plan(runs=(False, True, True), trains=(False, True, True))).square().mean().backward()
    assert stack.embedding.weight.grad is None


@every_family
def test_taps_and_entropy_are_those_of_transformers(family: str, causal: bool, tmp_path: Path) -> None:
    stack, batch = build(family, causal), row(20)
    theirs = reference(stack, 3, tmp_path, causal)
    theirs.config._attn_implementation = "eager"
    with torch.no_grad():
        out = theirs(batch.tokens_BT, output_hidden_states=True, output_attentions=True)
        stack.taps = []
        stack(batch.tokens_BT, batch, FULL)
    # Of the last one transformers gives the state behind the final norm.
    wanted = [float(state.norm() / state.numel() ** 0.5) for state in out.hidden_states[1:3]]
    assert [float(tap) for tap in stack.taps[:2]] == pytest.approx(wanted, rel=1e-4)
    entropies = [float(torch.special.entr(p).sum(-1).mean()) for p in out.attentions]
    implementation = stack.trunk.config._attn_implementation
    assert stack.attention_entropy(batch.tokens_BT, batch) == pytest.approx(entropies, rel=1e-3)
    assert stack.trunk.config._attn_implementation == implementation


def test_one_parameter_has_one_name_and_layers_are_the_matrices() -> None:
    from workbench.ops.parameter_groups import parameter_groups

    model = torch.nn.Module()
    model.backbone = build("gpt2", True)
    model.head = model.backbone.head[0]
    groups = parameter_groups(model, 0.01, [model.backbone.blocks])
    names = [name for group in groups for name in group["names"]]
    assert len(names) == len(set(names)) == len(list(model.parameters()))
    assert {name.split(".")[1] for g in groups if g["role"] == "matrix" for name in g["names"]} == {"blocks"}
    assert "backbone.embedding.weight" in {name for g in groups if g["role"] == "embedding" for name in g["names"]}


@pytest.mark.parametrize(
    ("family", "causal"), [("modernbert", False), pytest.param("llama", True, marks=pytest.mark.extended)]
)
def test_layers_compile_whole_and_share_their_graphs(family: str, causal: bool) -> None:
    from torch._dynamo.testing import CompileCounter

    stack, batch = build(family, causal, dropout=0.0).train(), row(20, 12)
    plain = [stack(batch.tokens_BT, batch, p) for p in (FULL, plan(scale=(1.5, 1.2, 2.0)))]
    torch._dynamo.reset()
    counter = CompileCounter()
    stack.compile_blocks(backend=counter, fullgraph=True)
    for wanted, p in zip(plain, (FULL, plan(scale=(1.5, 1.2, 2.0))), strict=True):
        torch.testing.assert_close(stack(batch.tokens_BT, batch, p), wanted, rtol=1e-4, atol=1e-5)
    for turn in range(3):
        stack(batch.tokens_BT, batch, plan(scale=(1.0 + turn, 1.5, 2.0)))
        stack(batch.tokens_BT, batch, plan(runs=(True, False, True)))
    # Scaled or not, and ModernBERT's first layer, which lacks a norm: not one for every layer and scale.
    assert counter.frame_count <= 4
    torch._dynamo.reset()


# --- the recipe -----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with build("llama", True, layers=2, width=48, heads=2).whole(2) as model:
        model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("depth", ["stacking", "multi_stage"])
def test_growth_by_copies_is_refused_before_launch_where_layers_are_not_made_alike(depth: str) -> None:
    """A deepseek_v3 has dense layers first and mixtures of experts above them."""
    sparse = ("first_k_dense_replace=2", "num_key_value_heads=4")
    problems = Recipe.check({
        "objective": "causal", "depth": {"kind": depth, "shares": (1, 1)},
        "architecture": {"kind": "transformers", "model": "deepseek_v3", "settings": sparse, **SHAPE, "layers": 4},
    })  # fmt: skip
    assert [problem.path for problem in problems] == ["depth"], problems
    assert "layer 3 of 'deepseek_v3' cannot start as a copy of layer 1, which has no mlp." in problems[0].message


def recipe(objective: str = "causal", **architecture: Any) -> Recipe:
    return Recipe(objective=objective, architecture={"kind": "transformers", **architecture})


def test_a_folder_says_the_shape_and_knobs_change_it(folder: Path) -> None:
    choice = recipe(model=str(folder)).architecture
    assert (choice.layers, choice.width, choice.heads) == (2, 48, 2)
    smaller = recipe(model=str(folder), layers=1, width=32, heads=4, ffn_width=40, dropout=0.3).architecture
    stack = smaller.build(VOCABULARY, 24, causal=True, attention="plain")
    assert (len(stack.blocks), stack.embedding.weight.shape) == (1, (512, 32))
    assert stack.trunk.config.attention_dropout == 0.3
    assert smaller.block_parameters() == 4 * 32**2 + 3 * 32 * 40
    # The recipe stays readable where the folder is not.
    saved = recipe(model=str(folder)).to_json()
    folder.rename(folder.with_name("gone"))
    assert Recipe.from_json(saved).architecture.width == 48


def test_weights_of_a_folder_are_taken_and_rows_added_for_new_tokens(folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(folder).eval()
    choice = Transformers(model=str(folder), pretrained=True)
    stack, batch = choice.build(VOCABULARY, 40, causal=True, attention="sdpa").eval(), row(30)
    with torch.no_grad():
        logits = stack.head[0](stack(batch.tokens_BT, batch, LayerPlan.full(2))[0])
        torch.testing.assert_close(logits, theirs(batch.tokens_BT).logits[0], rtol=1e-4, atol=1e-5)
    with_mask = dataclasses.replace(VOCABULARY, size=640, used=513)
    larger = choice.build(with_mask, 40, causal=True, attention="sdpa")
    assert larger.embedding.weight.shape[0] == 640
    with pytest.raises(RecipeError, match=r"rows need 99 positions, .* has 48"):
        choice.build(VOCABULARY, 99, causal=True, attention="sdpa")
    first = Transformers(model=str(folder), pretrained=True, layers=1)
    kept = first.build(VOCABULARY, 40, causal=True, attention="sdpa")
    assert len(kept.blocks) == 1
    assert torch.equal(kept.blocks[0].self_attn.q_proj.weight, stack.blocks[0].self_attn.q_proj.weight)


def test_weights_ask_for_their_tokenizer_and_shape(folder: Path) -> None:
    with pytest.raises(RecipeError, match=r"data.tokenizer: the weights of .* know the ids of its own tokenizer only"):
        recipe(model=str(folder), pretrained=True)
    data = {"tokenizer": {"kind": "pretrained", "name": str(folder)}}
    made = Recipe(data={"kind": "embedded", **data}, objective="causal",
                  architecture={"kind": "transformers", "model": str(folder), "pretrained": True})  # fmt: skip
    with pytest.raises(RecipeError, match=r"architecture.width: the weights of .* have 48"):
        made.with_(**{"architecture.width": 64})
    with pytest.raises(RecipeError, match=r"architecture.layers: .* has weights for 2"):
        made.with_(**{"architecture.layers": 3})


def test_a_mask_that_is_the_last_id_of_the_table_is_taken(tmp_path: Path) -> None:
    """As in RoBERTa, XLM-R and MPNet, whose tables end there."""
    from transformers import RobertaConfig, RobertaForMaskedLM

    shape = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
    RobertaForMaskedLM(
        RobertaConfig(vocab_size=64, max_position_embeddings=34, pad_token_id=1, **shape)
    ).save_pretrained(tmp_path)  # fmt: skip
    vocabulary = Vocabulary(size=64, used=64, cls=2, sep=3, mask=63, pad=1, unk=0)
    choice = recipe("masked", model=str(tmp_path)).architecture.model_copy(update={"pretrained": True})
    stack = choice.build(vocabulary, 32, causal=False, attention="sdpa")
    assert len(stack.embedding.weight) == 64


def edited(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> Transformers:
    """The folder's model with other tensors in its file."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return Transformers(model=str(folder), pretrained=True)


GATE = "model.layers.1.mlp.gate_proj.weight"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda t: t.pop(GATE), f"they lack {GATE}; get the whole model"),
        (lambda t: t.pop("lm_head.weight"), "they lack lm_head.weight; set architecture.new_head to true"),
        (lambda t: t.update({GATE: torch.zeros(5, 48)}), rf"have other shapes: {GATE} \(5, 48\) for \(192, 48\)"),
        (lambda t: t.update({"model.layers.1.q.weight": torch.zeros(3)}), "do not use: model.layers.1.q.weight"),
    ],
)  # fmt: skip
def test_weights_that_are_not_the_models_are_refused_by_name(folder: Path, change: Any, why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        edited(folder, change).build(VOCABULARY, 40, causal=True, attention="sdpa")


def test_a_new_head_is_trained_where_that_is_asked_for(folder: Path) -> None:
    choice = edited(folder, lambda t: (t.pop("lm_head.weight"), t.update({"score.weight": torch.zeros(2, 48)})))
    choice = choice.model_copy(update={"new_head": True})
    assert choice.build(VOCABULARY, 40, causal=True, attention="sdpa").head[0].model.lm_head.weight.std() > 0
    with pytest.raises(RecipeError, match=f"they lack {GATE}"):
        edited(folder, lambda t: t.pop(GATE)).model_copy(update={"new_head": True}).build(
            VOCABULARY, 40, causal=True, attention="sdpa"
        )


def test_types_and_objectives_that_do_not_fit_are_named() -> None:
    with pytest.raises(RecipeError, match=r"architecture.model: unknown value 'bertt'; did you mean 'bert'\?"):
        recipe("masked", model="bertt", **SHAPE)
    with pytest.raises(
        RecipeError, match=r"has no masked language model; use objective 'causal', or a model .* 'bert'"
    ):
        recipe("masked", model="gpt2")
    with pytest.raises(RecipeError, match=r"architecture.settings: unknown value 'dropuot'"):
        build("distilbert", False, settings=("dropuot=0.3",))
    assert build("distilbert", False, settings=("dropout=0.3",)).trunk.config.dropout == 0.3


@pytest.mark.parametrize(
    ("family", "causal", "why"),
    [
        ("albert", False, "no list of 3 equal layers"),
        ("bart", False, "on packed rows"),
        ("mobilebert", False, "on packed rows.*architecture.settings.*use another model"),
        ("squeezebert", False, "on packed rows.*architecture.settings.*use another model"),
        ("mixtral", True, "has a head that needs more than the last layer's states .*router_logits.*another model"),
    ],
)
def test_models_that_cannot_be_trained_here_say_why(family: str, causal: bool, why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        build(family, causal)


def test_without_a_network_a_name_is_refused_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    transformers_config.hub_config.cache_clear()
    began = time.monotonic()
    with pytest.raises(RecipeError, match="layers, width, heads of 'nobody/nothing' are not known: the Hub does not"):
        recipe(model="nobody/nothing")
    with pytest.raises(RecipeError, match=r"hf download nobody/nothing"):
        recipe(model="nobody/nothing", **SHAPE).architecture.build(VOCABULARY, 16, causal=True, attention="plain")
    assert time.monotonic() - began < 10
    transformers_config.hub_config.cache_clear()


def test_a_damaged_configuration_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(RecipeError, match="is no model's configuration"):
        recipe(model=str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(RecipeError, match=r"architecture.model: layers, width, heads of .* are not known"):
        recipe(model=str(tmp_path))
