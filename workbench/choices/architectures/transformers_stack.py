"""A transformers model under a LayerPlan: its own layers, found by looking, skipped, scaled, frozen and tapped."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from workbench.base.errors import RecipeError, typed_line
from workbench.choices.architectures.stack import Stack
from workbench.choices.architectures.transformers_config import WAY_OUT
from workbench.choices.architectures.transformers_layer import Pass, PlannedLayer, equal_layers
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.ops.attention import Sight

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Shape legend: B rows, T positions, D width, N chosen positions of the whole batch, V vocabulary rows.

PROBE_TOLERANCE = 1e-3
"""Packed and alone may differ by this share of the states' size: rounding is a thousandth of it, a leak is not."""


@dataclass
class Anatomy:
    """Places of the parts of a language model.

    Attributes:
        trunk: path of the part that turns ids (B, T) into states (B, T, D), empty if it is the model itself.
        layers: path of the list of layers within the trunk.
        table_offset: rows that a position table keeps for padding before position 0 (RoBERTa), else 0.
    """

    trunk: str
    layers: str
    table_offset: int = field(default=0)


def anatomy(model: PreTrainedModel) -> Anatomy:
    """Find embedding, layers and what holds both, by structure alone (works on the meta device).

    The layers are the longest list of modules of one class that is as long as the configuration says.

    Raises:
        RecipeError: the model has no such list, or shares one layer between depths.
    """
    wanted = model.config.get_text_config().num_hidden_layers
    lists = equal_layers(model, wanted)
    embedding = model.get_input_embeddings()
    table = next(path for path, module in model.named_modules() if module is embedding)
    if not lists:
        raise RecipeError(
            f"{type(model).__name__} has no list of {wanted} equal layers that could be dropped or frozen (its layers "
            "are shared, or of several kinds); use a model that has, for example 'bert', 'modernbert' or 'llama'"
        )
    # The one with the most weights: a list of norms beside a list of layers is no stack.
    path = next(iter(lists))
    shared = 0
    for ours, theirs in zip(path.split("."), table.split("."), strict=False):
        if ours != theirs:
            break
        shared += 1
    trunk = ".".join(path.split(".")[:shared])
    if not isinstance(embedding, nn.Embedding) or not trunk:
        raise RecipeError(
            f"{type(model).__name__} keeps embedding and layers in no part of their own; use another model"
        )
    tables = [m for m in model.modules() if isinstance(m, nn.Embedding) and m is not embedding]
    positions = getattr(model.config, "max_position_embeddings", None)
    padded = [m.padding_idx for m in tables if m.padding_idx is not None and m.num_embeddings == positions]
    return Anatomy(trunk, path.removeprefix(f"{trunk}."), padded[0] + 1 if padded else 0)


class Stub(nn.Module):
    """Stands where the trunk was: what it is given as embeddings comes out as last hidden states, (B, T, D)."""

    def forward(self, *args: Any, inputs_embeds: Tensor, **kwargs: Any) -> Any:
        """Return the states, in the form in which models return them."""
        from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions

        return BaseModelOutputWithPoolingAndCrossAttentions(last_hidden_state=inputs_embeds)


class ModelHead(nn.Module):
    """The model's own language-model head, whatever it is made of: states (N, D) -> logits (N, V).

    Args:
        model: the whole model, its trunk replaced by a :class:`Stub`. What is left of it is the head.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, x_ND: Tensor) -> Tensor:
        """Return logits of labelled rows, (N, D) -> (N, V), in the precision that autocast sets."""
        logits: Tensor = self.model(inputs_embeds=x_ND[None]).logits[0]
        return logits


class TransformersStack(Stack):
    """Backbone made of a transformers model: its own forward pass, with its layers under our plan.

    The model's code runs unchanged around the layers (embeddings, rotary tables, final norm); each layer stands behind
    a :class:`PlannedLayer`, which also adds the mask of packed documents to whatever mask the model made. What a plan
    means is what :class:`Stack` says.

    Args:
        model: a masked or causal language model with all its weights.

    Attributes:
        head: what of the model is no backbone; the objective's head.
    """

    def __init__(self, model: PreTrainedModel, parts: Anatomy, sequence_length: int, causal: bool) -> None:
        trunk: Any = model.get_submodule(parts.trunk)
        owner, _, name = f"{parts.trunk}.{parts.layers}".rpartition(".")
        holder = model.get_submodule(owner)
        layers: Any = holder.get_submodule(name)
        embedding: Any = model.get_input_embeddings()
        super().__init__(list(layers), embedding, sequence_length, causal)
        self._pass = Pass()
        planned = nn.ModuleList(PlannedLayer(index, layer, self._pass) for index, layer in enumerate(layers))
        setattr(holder, name, planned)
        shell, _, place = parts.trunk.rpartition(".")
        setattr(model.get_submodule(shell), place, Stub())
        self.trunk = trunk
        # In tuples, so that modules are registered once: the head belongs to the objective.
        self._apart = (model, holder, name, model.get_submodule(shell), place)
        self.position_offset = parts.table_offset
        self.takes_positions = "position_ids" in inspect.signature(type(trunk).forward).parameters
        self.head = (ModelHead(model),)

    def forward(
        self,
        tokens_BT: Tensor,
        batch: Batch,
        plan: LayerPlan,
        rows_N: Tensor | None = None,
        causal: bool | Tensor | Sight | None = None,
    ) -> Tensor:
        """Return hidden states (B, T, D), or (N, D) of the positions ``rows_N``;
        see :class:`Backbone` for the arguments.

        Raises:
            RecipeError: the plan has more layers than the model, rows are longer than it was built for, or a layer
                cannot be scaled.
        """
        self._pass.begin(plan, self.begin(plan), self.bias(batch, causal), self.taps)
        self._pass.recomputes = self.recomputes
        x_BTD = self._run(tokens_BT, batch)
        # The layers compute all positions: which ones somebody wants is not in their signature.
        return x_BTD if rows_N is None else x_BTD.flatten(0, 1)[rows_N]

    @torch.no_grad()
    def attention_entropy(self, tokens_BT: Tensor, batch: Batch) -> Sequence[Tensor | None]:
        """Return mean entropy in nats of each layer's attention, (B, H, T, T), eager;
        None where a layer gives no weights.
        """
        training, config = self.training, self.trunk.config
        implementation = config._attn_implementation
        self.eval()
        try:
            # Only the written-out attention has probabilities to show; modules read the name at every call.
            config._attn_implementation = "eager"
            self._pass.begin(LayerPlan.full(len(self.blocks)), False, self.bias(batch), None)
            self._pass.entropies = [None] * len(self.blocks)
            with torch.compiler.set_stance("force_eager"):
                self._run(tokens_BT, batch)
            return self._pass.entropies
        finally:
            config._attn_implementation = implementation
            self._pass.entropies = None
            self.train(training)

    @contextmanager
    def whole(self, layers: int) -> Iterator[PreTrainedModel]:
        """The transformers model put together again, with its first ``layers`` layers; shares our weights."""
        model, holder, name, shell, place = self._apart
        config = model.config
        with ExitStack() as undo:
            for owner, attribute, part in (
                (holder, name, nn.ModuleList(list(self.blocks)[:layers])),
                (shell, place, self.trunk),
            ):
                undo.callback(setattr, owner, attribute, getattr(owner, attribute))
                setattr(owner, attribute, part)
            fields = config.to_dict() | {"num_hidden_layers": layers}
            if fields.get("layer_types"):
                fields["layer_types"] = fields["layer_types"][:layers]
            if layers < len(self.blocks):
                undo.callback(setattr, model, "config", config)
                model.config = type(config).from_dict(fields)
            yield model

    @torch.no_grad()
    def probe(self, ordinary: Sequence[int]) -> None:
        """Check by running it that a packed document computes what it computes alone, and how layers take a scale.

        Args:
            ordinary: ids of tokens that are not special, at least one.

        Raises:
            RecipeError: documents of one row see one another, or positions cannot be restarted.
        """
        training = self.training
        self.eval()
        try:
            error, reason = self._difference(ordinary), ""
        # A model that cannot take our masks says so in its own way: shapes, types, missing arguments.
        except Exception as failure:
            error, reason = float("inf"), f": {typed_line(failure)}"
        finally:
            self._pass.probing = False
            self._pass.end()
            self.train(training)
        if not error < PROBE_TOLERANCE:
            raise RecipeError(
                f"{type(self._apart[0]).__name__} cannot train on packed rows: a document computes something else when "
                "another stands beside it (it mixes positions outside its attention, takes no position_ids, or makes "
                f"masks of a kind of its own{reason}); {WAY_OUT}"
            )
        self._probe_head(ordinary[0])

    def _probe_head(self, token: int) -> None:
        """Check that the head computes logits (N, V) from states (N, D) alone."""
        states_TD = self._alone(torch.tensor([token]))
        self._pass.end()
        try:
            self.head[0](states_TD)
        except Exception as failure:
            raise RecipeError(
                f"{type(self._apart[0]).__name__} has a head that needs more than the last layer's states "
                f"({typed_line(failure)}), as mixtures of experts do; use "
                "another model, for example 'bert', 'modernbert' or 'llama'"
            ) from None

    def _difference(self, ordinary: Sequence[int]) -> float:
        """Return the largest difference of two documents' states, packed and alone, as a share of the largest state."""
        ids = torch.tensor([ordinary[7 * place % len(ordinary)] for place in range(13)])
        lengths = [8, 5] if self.sequence_length >= len(ids) else [4, 4]
        pieces = list(ids[: sum(lengths)].split(lengths))
        self._pass.probing = True
        alone = torch.cat([self._alone(piece) for piece in pieces])
        self._pass.probing = False
        packed = Batch(
            torch.cat(pieces)[None],
            torch.cat([torch.arange(len(piece)) for piece in pieces])[None],
            torch.repeat_interleave(torch.arange(2), torch.tensor(lengths))[None].int(),
            torch.zeros(1, dtype=torch.int64),
        )
        together = self(packed.tokens_BT, packed, LayerPlan.full(len(self.blocks)))[0]
        return float((together - alone).abs().max() / alone.abs().max().clamp(min=1e-6))

    def _alone(self, tokens_T: Tensor) -> Tensor:
        """Return states (T, D) of one document, with the masks and positions that the model makes by itself."""
        self._pass.begin(LayerPlan.full(len(self.blocks)), False, None, None)
        states: Tensor = self.trunk(input_ids=tokens_T[None], use_cache=False).last_hidden_state[0]
        return states

    def _run(self, tokens_BT: Tensor, batch: Batch) -> Tensor:
        options: dict[str, Any] = {}
        if self.takes_positions:
            options["position_ids"] = batch.positions_BT + self.position_offset
        try:
            # use_cache: keys and values of a whole row are nothing that training would read again.
            states: Tensor = self.trunk(input_ids=tokens_BT, use_cache=False, **options).last_hidden_state
        finally:
            # Nothing of a batch may outlive it: masks are (B, 1, T, T).
            self._pass.end()
        return states
