"""Any masked or causal language model of the transformers library."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from pydantic import model_validator
from pydantic_core import PydanticCustomError
from torch import nn

from workbench.base.errors import RecipeError, first_line, unknown
from workbench.choices.architectures import transformers_config as configs
from workbench.choices.architectures.architecture import Architecture, Backbone, copies, uncopied
from workbench.choices.architectures.transformers_stack import TransformersStack, anatomy
from workbench.choices.choice import Problem, knob
from workbench.choices.data.local_path import local_path
from workbench.choices.data.tokens import Vocabulary
from workbench.ops.attention import attention_named

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Shape legend: B rows, T positions, D width.

SHAPE = ("layers", "width", "heads")


class Transformers(Architecture):
    """Any masked or causal language model of transformers: by type, by folder or by its name on the Hub.

    The model's own code runs; its own layers (the list of equal modules between input embedding and output) are what a
    depth method drops, scales and freezes, and what telemetry reports on. Residual scale s: x + s (layer(x) - x) for
    pre-norm layers, LN(x + s branch) for post-norm ones, all (B, T, D). Documents packed into one row see themselves
    only and restart their positions; that this holds is checked on the model when it is built.

    Source: the transformers library (Wolf et al. 2020, arXiv 1910.03771).
    """

    kind: Literal["transformers"] = "transformers"
    model: str = knob(
        "bert", "model type ('bert', 'modernbert', 'llama'), a model's folder, or its name on the Hub", min_length=1
    )
    pretrained: bool = knob(False, "start from the model's weights; off: random weights and our own vocabulary")
    new_head: bool = knob(False, "random numbers for weights of the head that a pretrained model lacks")
    dropout: float | None = knob(None, "all dropout rates of the model; empty: its own", ge=0, lt=1)
    settings: tuple[str, ...] = knob((), "further fields of the model's configuration, as NAME=VALUE")
    head: Literal["own"] = knob("own", "always the model's own head")  # type: ignore[assignment]
    tied: bool | None = knob(  # type: ignore[assignment]
        None, "the output matrix is the token embedding; empty: as in the model"
    )

    @model_validator(mode="before")
    @classmethod
    def _shape_of_the_model(cls, value: Any) -> Any:
        """Layers, width and heads that are not given are those of the folder or name; a recipe always holds numbers."""
        if not isinstance(value, Mapping):
            return value
        given = {name: number for name, number in value.items() if name not in SHAPE or number is not None}
        model = given.get("model")
        if all(name in given for name in SHAPE) or not isinstance(model, str) or not model:
            return given
        if not given.get("pretrained") and configs.is_type(model):
            return given
        found = configs.local_config(model) or configs.hub_config(model)
        shape = configs.shape_of(found) if isinstance(found, dict) else {}
        if missing := [name for name in SHAPE if name not in {*given, *shape}]:
            reason = found if isinstance(found, str) else "its config.json does not say them"
            why = (
                f"{', '.join(missing)} of '{model}' are not known: {reason}; give a folder that exists, a model type "
                f"(for example 'bert', 'modernbert', 'gpt2'), or set architecture.{missing[0]} and the like yourself"
            )
            raise PydanticCustomError("knob", "{why}", {"name": "model", "why": why})
        return {**shape, **given}

    def located(self) -> dict[str, Any]:
        """Return the path of the model, if it is a folder."""
        path = local_path(self.model)
        return {} if path is None or path.is_file() else {"model": str(path)}

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Also: unknown types, models without the objective's head (N, V), weights of another tokenizer or shape."""
        yield from super().problems(recipe)
        config = configs.local_config(self.model)
        kind = (config or {}).get("model_type")
        if not self.pretrained and config is None and "/" not in self.model:
            kind = self.model
            if kind not in (legal := configs.model_types()):
                hint = "A folder and a name on the Hub, OWNER/MODEL, are legal as well"
                yield Problem("architecture.model", unknown("", kind, legal, hint))
                return
        if kind == "workbench":
            yield Problem(
                "architecture.model",
                f"'{self.model}' is an export of this workbench in a class of its own; go on with the run that it came "
                "from, which its README.md names: `workbench fork RUN --budget ..`, or train its recipe.json anew with "
                "`workbench train --recipe`",
            )
            return
        causal = recipe.objective.causal
        # A local folder may hold a type that only its own program knows: building says so.
        if kind in configs.model_types() and not configs.has_head(kind, causal):
            word, other = ("causal", "masked") if causal else ("masked", "causal")
            yield Problem(
                "architecture.model",
                f"'{self.model}' is of type '{kind}', of which transformers has no {word} language model; use "
                f"objective '{other}', or a model such as '{'gpt2' if causal else 'bert'}'",
            )
        if self.pretrained:
            yield from self._problems_of_weights(recipe, config)
        yield from self._problems_of_growth(recipe)

    def _problems_of_weights(self, recipe: Any, config: Mapping[str, Any] | None) -> Iterator[Problem]:
        tokenizer = recipe.data.tokenizer
        named = str(getattr(tokenizer, "name", ""))
        model, given = (local_path(name) or Path(name) for name in (self.model, named))
        if tokenizer.kind != "pretrained" or model not in (given, given.parent):
            yield Problem(
                "data.tokenizer",
                f"the weights of '{self.model}' know the ids of its own tokenizer only; set data.tokenizer to "
                f'{{"kind": "pretrained", "name": "{self.model}"}}, or architecture.pretrained to false',
            )
        shape = configs.shape_of(config or {})
        for name in ("width", "heads"):
            if shape.get(name, getattr(self, name)) != getattr(self, name):
                yield Problem(
                    f"architecture.{name}", f"the weights of '{self.model}' have {shape[name]}; set it to that"
                )
        if self.layers > shape.get("layers", self.layers):
            yield Problem("architecture.layers", f"'{self.model}' has weights for {shape['layers']}; use at most that")

    def _problems_of_growth(self, recipe: Any) -> Iterator[Problem]:
        """Refuse layers (B, T, D) -> (B, T, D) that a depth method would copy onto layers made of other matrices."""
        if not (wanted := copies(recipe.depth, self.layers)):
            return
        try:
            blocks = _skeleton(self, recipe.objective.causal).blocks
        except RecipeError:
            return  # building says what is wrong
        for source, layer in wanted:
            if missing := uncopied(blocks[source], blocks[layer]):
                yield Problem(
                    "depth",
                    f"layer {layer + 1} of '{self.model}' cannot start as a copy of layer {source + 1}, which has no "
                    f"{missing[0]} of its shape; use depth 'full', or stages whose layers are made alike",
                )
                return

    def build(self, vocabulary: Vocabulary, sequence_length: int, *, causal: bool, attention: str) -> Backbone:
        """Return a :class:`TransformersStack` in fp32: tokens (B, T) -> states (B, T, D).

        Raises:
            RecipeError: the model cannot be had, has no stack of layers, cannot be packed, or is too short for rows.
        """
        attention_named(attention)  # an unknown name is refused before anything is loaded
        if self.pretrained:
            model = self._load(vocabulary, causal, attention)
        else:
            model = self._random(vocabulary, sequence_length, causal, attention)
        parts = anatomy(model)
        self._check_length(model, sequence_length + parts.table_offset)
        stack = TransformersStack(model, parts, sequence_length, causal)
        if stack.embedding.weight.device.type != "meta":
            rows = min(vocabulary.used, len(stack.embedding.weight))
            stack.probe([token for token in range(rows) if token not in vocabulary.special] or [vocabulary.cls])
        return stack

    def build_head(self, backbone: Backbone) -> nn.Module:
        """Return the model's own head, (N, D) -> (N, V), tied to the embedding or not as the model has it."""
        assert isinstance(backbone, TransformersStack)
        return backbone.head[0]

    def block_parameters(self) -> int:
        """Return numbers in one layer's matrices, (D, D) and the like,
        counted on the layer itself (on the meta device).
        """
        return _matrices(self)[0]

    def mixing_parameters(self) -> int:
        """Return all of them: the model's layers compute every position, labelled or not, (B, T, D) -> (B, T, D)."""
        return self.block_parameters()

    def head_parameters(self, vocabulary_size: int) -> int:
        """Return numbers in the matrices of the model's head: (D, V), and what stands before it, such as (D, D)."""
        return _matrices(self)[1] + self.width * vocabulary_size

    def switches_mask(self) -> bool:
        """Return whether a model of both sides sees the past alone in rows (B, T) that ask for it: masks add up."""
        return True

    def save_pretrained(
        self, backbone: Backbone, head: nn.Module, folder: Path, vocabulary: Vocabulary, layers: int
    ) -> bool:
        """As the model's own class, with the first ``layers`` layers; states (B, T, D) and logits stay the same."""
        assert isinstance(backbone, TransformersStack)
        with backbone.whole(layers) as model:
            model.save_pretrained(folder)
        return True

    def _config(self, vocabulary: Vocabulary, positions: int, causal: bool) -> Any:
        shape = {name: getattr(self, name) for name in SHAPE}
        return configs.config_for(self.model, vocabulary, shape, self.ffn_width, positions, causal, self._changes)

    def _changes(self, config: Any) -> dict[str, Any]:
        """Return fields of the configuration that dropout, tied and settings change; settings have the last word."""
        tied = {} if self.tied is None else {"tie_word_embeddings": self.tied}
        return tied | configs.changes(config, self.dropout, self.settings)

    def _random(self, vocabulary: Vocabulary, length: int, causal: bool, attention: str) -> PreTrainedModel:
        config = self._config(vocabulary, length, causal)
        with torch.device("meta"):
            # Where tables keep rows for padding (RoBERTa), T positions take more than T rows.
            offset = anatomy(_new_model(config, causal, attention)).table_offset
        if offset:
            config = self._config(vocabulary, length + offset, causal)
        return _new_model(config, causal, attention)

    def _load(self, vocabulary: Vocabulary, causal: bool, attention: str) -> PreTrainedModel:
        import transformers

        auto = transformers.AutoModelForCausalLM if causal else transformers.AutoModelForMaskedLM
        config = configs.load_config(self.model)
        for name, value in self._changes(config).items():
            setattr(config, name, value)
        if causal and getattr(config, "is_decoder", None) is False:
            config.is_decoder = True
        if config.num_hidden_layers > self.layers:
            config.num_hidden_layers = self.layers
            if getattr(config, "layer_types", None):
                config.layer_types = config.layer_types[: self.layers]
        for name, ours in (("hidden_size", self.width), ("num_attention_heads", self.heads)):
            if getattr(config, name) != ours:
                raise RecipeError(
                    f"'{self.model}' has {name} {getattr(config, name)}, the recipe {ours}; make it equal"
                )
        try:
            # Shapes that differ are taken for now, since _check_weights names them all.
            loaded: Any = auto.from_pretrained(
                self.model, config=config, dtype=torch.float32, attn_implementation=_IMPLEMENTATION[attention],
                local_files_only=configs.only_local(self.model), trust_remote_code=False, output_loading_info=True,
                ignore_mismatched_sizes=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise RecipeError(configs.not_had(self.model, first_line(error))) from None
        model, read = loaded
        self._check_weights(model, read)
        # Tokens that preparation added ([MASK] for a GPT-2): rows for them, as near to the others as a mean can be.
        if vocabulary.used > config.vocab_size:
            model.resize_token_embeddings(vocabulary.size)
        return model  # type: ignore[no-any-return]

    def _check_weights(self, model: PreTrainedModel, read: Mapping[str, Any]) -> None:
        """Refuse weights that are not the model's: transformers draws what is missing and ignores what it cannot place.

        Heads of other tasks and layers above the recipe's may be left over.

        Args:
            read: transformers' loading info.

        Raises:
            RecipeError: tensors of the model are missing or of another shape, or its layers have tensors left over.
        """
        parts = anatomy(model)
        inside = re.compile(rf"(?:^|\.){re.escape(parts.layers)}\.(\d+)\.")
        extra = [name for name in read["unexpected_keys"] if (at := inside.search(name)) and int(at[1]) < self.layers]
        missing = [name for name in read["missing_keys"] if not self.new_head or name.startswith(f"{parts.trunk}.")]
        shapes = [f"{name} {tuple(theirs)} for {tuple(ours)}" for name, theirs, ours in read["mismatched_keys"]]
        wrong = {"lack": missing, "have other shapes:": shapes, "have what its layers do not use:": extra}
        if not any(wrong.values()):
            return
        told = "; ".join(f"they {what} {_some(names)}" for what, names in wrong.items() if names)
        head = "set architecture.new_head to true to train a new head, " if missing and not any(
            name.startswith(f"{parts.trunk}.") for name in missing) else ""  # fmt: skip
        raise RecipeError(
            f"architecture.model: the weights of '{self.model}' are not those of a {type(model).__name__}: {told}; "
            f"{head}get the whole model, or set architecture.pretrained to false for random weights"
        )

    def _check_length(self, model: PreTrainedModel, rows: int) -> None:
        have = getattr(model.config, "max_position_embeddings", None)
        if have is not None and rows > have:
            raise RecipeError(
                f"data.sequence_length: rows need {rows} positions, '{self.model}' has {have}; use shorter rows, or "
                "set architecture.pretrained to false"
            )


def _some(names: Iterable[str]) -> str:
    """Return the first three names, and how many more there are."""
    first, rest = sorted(names)[:3], len(list(names)) - 3
    return ", ".join(first) + (f" and {rest} more" if rest > 0 else "")


_IMPLEMENTATION = {"plain": "eager", "sdpa": "sdpa"}
"""Names that transformers gives to our implementations of attention."""


def _new_model(config: Any, causal: bool, attention: str) -> PreTrainedModel:
    """Return a model with random weights."""
    import transformers

    auto: Any = transformers.AutoModelForCausalLM if causal else transformers.AutoModelForMaskedLM
    implementation = _IMPLEMENTATION[attention]
    # A model without the fused attention gets the written-out one, which computes the same.
    fused = auto._model_mapping[type(config)]._supports_sdpa
    try:
        return auto.from_config(config, attn_implementation=implementation if fused else "eager")  # type: ignore[no-any-return]
    # Shapes that a type does not take end in whatever its code meets first: assertions, tensors of negative size.
    except Exception as error:
        raise RecipeError(
            f"architecture: transformers cannot build a '{config.model_type}' of these sizes: {type(error).__name__}: "
            f"{' '.join(str(error).split())}; {configs.WAY_OUT}"
        ) from None


@functools.lru_cache(maxsize=64)
def _skeleton(choice: Transformers, causal: bool) -> TransformersStack:
    """Return the model with random weights, on the meta device: shapes without numbers."""
    vocabulary = Vocabulary(961, 961, 1, 2, 3, 0, 4)  # a number that is no width
    with torch.device("meta"):
        stack = choice.model_copy(update={"pretrained": False}).build(vocabulary, 64, causal=causal, attention="plain")
    assert isinstance(stack, TransformersStack)
    return stack


def _matrices(choice: Transformers) -> tuple[int, int]:
    """Return numbers in the matrices of the middle layer, and of the head without its output matrix;
    no weights are made.
    """
    stack = _skeleton(choice, not configs.has_head(configs.type_of(choice.model), False))
    # The middle one: first and last are the odd ones where layers differ.
    block = stack.blocks[len(stack.blocks) // 2]
    # What has the vocabulary as a side is the output matrix, which the caller counts at its real size.
    head = [p for p in stack.head[0].parameters() if p.ndim == 2 and len(stack.embedding.weight) not in p.shape]
    return sum(p.numel() for p in block.parameters() if p.ndim == 2), sum(p.numel() for p in head)
