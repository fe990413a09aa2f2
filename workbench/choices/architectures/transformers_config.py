"""Find a transformers model and its configuration: a type by name, a folder, or a name on the Hub."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RecipeError, first_line, unknown
from workbench.choices.data.local_path import ANSWER_SECONDS, hub_answers, local_path
from workbench.choices.data.tokens import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

# transformers is imported inside functions: it takes seconds, and only recipes that name this architecture need it.

SHAPES: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "width": ("hidden_size", "n_embd", "d_model", "dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
}
"""Our knobs and the names that configurations give them."""

INNER = ("intermediate_size", "n_inner", "ffn_dim", "hidden_dim", "ffn_hidden_size")
"""Names of the inner width of the feed-forward part."""

WAY_OUT = (
    'give sizes that only this type has in architecture.settings, such as ["rotary_dim=16"], or use another model, for '
    "example 'bert', 'modernbert' or 'llama'"
)
"""The way out where a type does not work with the recipe's sizes."""

DROPOUTS = (
    "hidden_dropout_prob", "attention_probs_dropout_prob", "hidden_dropout", "attention_dropout", "dropout",
    "resid_pdrop", "embd_pdrop", "emb_pdrop", "attn_pdrop", "embedding_dropout", "mlp_dropout", "activation_dropout",
)  # fmt: skip
"""Names of dropout rates that act in pre-training; those of classifiers are left alone."""


def model_types() -> frozenset[str]:
    """Return every model type that the installed transformers can build a masked or a causal language model of."""
    return frozenset(_families(False)) | frozenset(_families(True))


def has_head(model_type: str, causal: bool) -> bool:
    """Return whether transformers has a causal (or a masked) language model of this type."""
    return model_type in _families(causal)


def is_type(model: str) -> bool:
    """Return whether ``model`` is a type's name rather than a folder or a name on the Hub."""
    return "/" not in model and not Path(model).expanduser().is_dir() and model in model_types()


def type_of(model: str) -> str:
    """Return the model type of a type, folder or name.

    Raises:
        RecipeError: the configuration of a folder or name cannot be had.
    """
    return model if is_type(model) else str(load_config(model).model_type)


def local_config(model: str) -> dict[str, Any] | None:
    """Return ``config.json`` of a folder, or of a name in the Hub's local cache; None when neither is there.
    No network.
    """
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    file: Any = Path(model).expanduser() / "config.json"
    if not file.is_file():
        try:
            file = try_to_load_from_cache(model, "config.json")
        except HFValidationError:  # no name that the Hub could have given
            return None
    if not isinstance(file, (str, Path)):
        return None
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecipeError(f"'{file}' is no model's configuration: {error}; give another folder") from None
    return found if isinstance(found, dict) else None


def shape_of(config: Mapping[str, Any]) -> dict[str, int]:
    """Return ``layers``, ``width`` and ``heads`` of a ``config.json``, as far as it has them under a known name."""
    found = {knob: next((config[n] for n in names if n in config), None) for knob, names in SHAPES.items()}
    return {knob: value for knob, value in found.items() if isinstance(value, int)}


@functools.cache
def hub_config(model: str) -> dict[str, Any] | str:
    """Return ``config.json`` of a name on the Hub, asked for once per process; why it cannot be had, if so."""
    if not hub_answers(model):
        return "the Hub does not answer, and its local cache does not hold the model"
    from huggingface_hub import hf_hub_download

    try:
        path = hf_hub_download(model, "config.json", etag_timeout=ANSWER_SECONDS)
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    # Each cause (no such name, a gated model, a broken connection) has a type of its own, some of them private.
    except Exception as error:
        return first_line(error)
    return found if isinstance(found, dict) else "its config.json is no object"


def config_for(
    model: str,
    vocabulary: Vocabulary,
    shape: Mapping[str, int],
    ffn_width: int | None,
    positions: int,
    causal: bool,
    changes_of: Callable[[PreTrainedConfig], dict[str, Any]],
) -> PreTrainedConfig:
    """Return the configuration of a model with random weights.

    Args:
        model: a type, or a folder or name whose configuration is the pattern.
        shape: ``layers``, ``width`` and ``heads``.
        ffn_width: inner width; None for the pattern's where the width is the pattern's too, else 4 x width.
        positions: rows of a position table, where there is one.
        changes_of: further fields that the recipe changes, of those that a configuration has.

    Raises:
        RecipeError: no such model, values that it refuses, or a field that its configuration does not have.
    """
    from transformers import AutoConfig

    if is_type(model):
        pattern, fields = AutoConfig.for_model(model), {}
    else:
        pattern = load_config(model)
        fields = pattern.to_dict()
    known = pattern.to_dict()
    # A list with one entry per layer: the type's own rule makes a new one for another number of layers.
    if shape["layers"] != getattr(pattern, "num_hidden_layers", None):
        fields.pop("layer_types", None)
    same = bool(fields) and pattern.hidden_size == shape["width"]
    fields |= {
        "num_hidden_layers": shape["layers"],
        "hidden_size": shape["width"],
        "num_attention_heads": shape["heads"],
    }
    if ffn_width or not same:
        name = _name(pattern, INNER)
        fields |= {name: ffn_width or 4 * shape["width"]} if name else {}
    if not same or pattern.num_attention_heads != shape["heads"]:
        derived = {
            "num_key_value_heads": shape["heads"],
            "head_dim": shape["width"] // shape["heads"],
            "word_embed_proj_dim": shape["width"],
        }
        # What a model keeps smaller than heads or states may stay, but never be larger than they are now.
        for name, most in (("rotary_dim", derived["head_dim"]), ("embedding_size", shape["width"])):
            derived[name] = min(known.get(name) or most, most)
        fields |= {name: value for name, value in derived.items() if name in known}
    fields |= {"max_position_embeddings": positions} if hasattr(pattern, "max_position_embeddings") else {}
    fields |= {"is_decoder": True} if causal and getattr(pattern, "is_decoder", None) is False else {}
    fields |= special_ids(pattern, vocabulary) | {"vocab_size": vocabulary.size}
    fields |= changes_of(pattern)
    # By the names that the constructor has: what it derives (head widths, types of layers) then follows.
    named = {pattern.attribute_map.get(name, name): value for name, value in fields.items()}
    named.pop("model_type", None)
    try:
        return type(pattern)(**named)
    # Strict configurations raise a class of their own, which derives from nothing more telling.
    except Exception as error:
        raise RecipeError(
            f"architecture: {type(pattern).__name__} refuses these values: {' '.join(str(error).split())}; change "
            "layers, width or heads, or give the field it names in architecture.settings"
        ) from None


def load_config(model: str) -> PreTrainedConfig:
    """Return the configuration of a folder or of a name on the Hub.

    Raises:
        RecipeError: it cannot be had; the message says what can be done.
    """
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(model, local_files_only=only_local(model), trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise RecipeError(not_had(model, first_line(error))) from None


def only_local(model: str) -> bool:
    """Return whether only this machine's files are looked at: a folder, or a Hub that does not answer."""
    return Path(model).expanduser().is_dir() or not hub_answers(model)


def not_had(model: str, reason: str) -> str:
    """Return what to say when a model cannot be loaded."""
    if local_path(model) is not None:
        return (
            f"architecture.model: '{model}' cannot be loaded: {reason}; give a folder with transformers' config.json "
            "and weights, or use a model type with random weights, for example 'bert' or 'llama'"
        )
    return (
        f"architecture.model: '{model}' is no folder with a model and cannot be had by name: {reason}; give a folder, "
        f"fetch it where there is a network (`hf download {model}`) and copy the Hub's cache, or use a model type with "
        "random weights, for example 'bert' or 'llama'"
    )


def special_ids(config: PreTrainedConfig, vocabulary: Vocabulary) -> dict[str, int]:
    """Return the fields of ``config`` that hold special ids, with ``vocabulary``'s."""
    ids = {"pad": vocabulary.pad, "bos": vocabulary.cls, "eos": vocabulary.sep, "cls": vocabulary.cls}
    ids |= {"sep": vocabulary.sep, "mask": vocabulary.mask}
    known = config.to_dict()
    return {f"{name}_token_id": number for name, number in ids.items() if f"{name}_token_id" in known}


def changes(config: PreTrainedConfig, dropout: float | None, settings: Iterable[str]) -> dict[str, Any]:
    """Return fields that the knobs ``dropout`` and ``settings`` change.

    Raises:
        RecipeError: a setting is not ``NAME=VALUE``, or names a field that the configuration does not have.
    """
    found: dict[str, Any] = {}
    if dropout is not None:
        found |= {name: dropout for name in DROPOUTS if hasattr(config, name)}
    known = set(config.to_dict()) | set(config.attribute_map)
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in known:
            raise RecipeError(
                unknown("architecture.settings", name, known, f"They are those of {type(config).__name__}")
            )
        try:
            found[name] = json.loads(text)
        except json.JSONDecodeError:
            found[name] = text
    return found


def _name(config: PreTrainedConfig, names: Iterable[str]) -> str | None:
    return next((name for name in names if hasattr(config, name)), None)


def _families(causal: bool) -> Mapping[str, str]:
    from transformers.models.auto import modeling_auto as auto

    return auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES if causal else auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
