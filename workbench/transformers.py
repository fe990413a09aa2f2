"""Workbench models as transformers models: ``import workbench.transformers``, then ``AutoModelForMaskedLM`` and kin.

A folder that ``run.export()`` writes holds the weights and a ``config.json`` of model type ``workbench``. This module
teaches transformers that type. Nothing is downloaded and no code comes with the folder: what runs is this package.

Example:
    import workbench.transformers
    from transformers import AutoModelForMaskedLM, AutoTokenizer, pipeline

    model = AutoModelForMaskedLM.from_pretrained("FOLDER")
    fill = pipeline("fill-mask", model=model, tokenizer=AutoTokenizer.from_pretrained("FOLDER"))

Importing it takes the seconds that importing torch and transformers takes.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import transformers.initialization as init
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    GenerationMixin,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers import modeling_outputs as outputs
from transformers.models.electra.modeling_electra import ElectraForPreTrainingOutput
from transformers.utils import can_return_tuple

import workbench.choices  # noqa: F401  (registers every architecture)
from workbench.base.errors import RecipeError, check_known
from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.stack import Stack
from workbench.choices.choice import registry
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.replaced_token import DiscriminatorHead
from workbench.choices.objectives.two_networks import Disentangled

# Shape legend: B rows, T positions, D width, V vocabulary rows.


class WorkbenchConfig(PreTrainedConfig):
    """Configuration of an exported model: its architecture's choice, and what the choice is built with.

    Args:
        architecture: the choice as plain data, ``{"kind": ..., "layers": ..., ...}``.
        vocab_size: V, rows of the embedding; the last ones may be padding.
        used_ids: ids below this are real tokens.
        max_position_embeddings: longest row T, in tokens.
        unk_token_id: of the tokenizer; the other special ids are transformers' own fields.
    """

    model_type = "workbench"

    def __init__(
        self,
        architecture: dict[str, Any] | None = None,
        vocab_size: int = 64,
        used_ids: int = 64,
        max_position_embeddings: int = 128,
        causal: bool = False,
        unk_token_id: int | None = None,
        **kwargs: Any,
    ) -> None:
        # A small model without arguments: transformers compares with one when it writes a config.json.
        self.architecture = {"kind": "pre_ln"} if architecture is None else dict(architecture)
        self.vocab_size, self.used_ids = vocab_size, used_ids
        self.max_position_embeddings, self.causal, self.unk_token_id = max_position_embeddings, causal, unk_token_id
        # For tools that read these; the architecture decides.
        self.num_hidden_layers = self.architecture.get("layers")
        self.hidden_size = self.architecture.get("width")
        self.num_attention_heads = self.architecture.get("heads")
        self.cls_token_id, self.sep_token_id, self.mask_token_id = (
            kwargs.pop(f"{name}_token_id", None) for name in ("cls", "sep", "mask")
        )
        # No key-value cache: every new token reads the row again.
        kwargs["use_cache"] = False
        super().__init__(**kwargs)

    @classmethod
    def of(
        cls, architecture: Architecture, vocabulary: Vocabulary, length: int, layers: int, causal: bool
    ) -> WorkbenchConfig:
        """Return the configuration of a model as trained: rows (B, T) of at most ``length``, the layers that exist."""
        fields = {**architecture.model_dump(mode="json"), "layers": layers}
        return cls(
            fields, vocabulary.size, vocabulary.used, length, causal, vocabulary.unk, pad_token_id=vocabulary.pad,
            bos_token_id=vocabulary.cls, eos_token_id=vocabulary.sep, cls_token_id=vocabulary.cls,
            sep_token_id=vocabulary.sep, mask_token_id=vocabulary.mask,
        )  # fmt: skip

    def choice(self) -> Architecture:
        """Return the architecture's choice, checked: blocks are (B, T, D) -> (B, T, D).

        Raises:
            RecipeError: this version of the workbench has no such architecture, or not with these knobs.
        """
        kind, legal = str(self.architecture.get("kind")), registry("architecture")
        check_known("architecture.kind", kind, legal, RecipeError, "A newer workbench may know it: upgrade")
        found = legal[kind].model_validate(self.architecture)
        assert isinstance(found, Architecture)
        return found

    def vocabulary(self) -> Vocabulary:
        """Return size V and special ids."""
        ids = (self.cls_token_id, self.sep_token_id, self.mask_token_id, self.pad_token_id, self.unk_token_id)
        return Vocabulary(self.vocab_size, self.used_ids, *(0 if number is None else number for number in ids))


class WorkbenchPreTrainedModel(PreTrainedModel):
    """Shared by the model classes: backbone, padding, saving and loading."""

    config_class = WorkbenchConfig
    # No part of the model has its own checkpoints, so no prefix is ever taken off.
    base_model_prefix = ""
    # Of a class without the head.
    _keys_to_ignore_on_load_unexpected = [r"^head\.", r"^discriminator_head\."]  # noqa: RUF012  (transformers adds sets and lists only)
    _supports_sdpa = True
    headed = True
    discriminates = False
    head: nn.Module
    classes: int | None = None
    """Outputs of a fresh linear layer on top; None for none, 0 for ``config.num_labels``."""

    def __init__(self, config: WorkbenchConfig) -> None:
        super().__init__(config)
        attention = "plain" if config._attn_implementation == "eager" else "sdpa"
        choice = config.choice()
        # On the CPU even while transformers loads on the meta device: tables that no file holds must have values.
        with torch.device("cpu"):
            self.backbone = choice.build(
                config.vocabulary(), config.max_position_embeddings, causal=config.causal, attention=attention
            )
            if self.headed:
                self.head = choice.build_head(self.backbone)
            if self.discriminates:
                self.discriminator_head = DiscriminatorHead(choice.width)
        if self.classes is not None:
            self.dropout = nn.Dropout(float(getattr(choice, "dropout", None) or 0.0))
            self.classifier = nn.Linear(choice.width, self.classes or int(config.num_labels or 2))
        self._plan = LayerPlan.full(choice.layers)
        # Only here, so that parameters frozen later stay frozen.
        if isinstance(self.backbone, Stack):
            self.backbone.freeze(self._plan)
        saved = self.state_dict().keys()
        self._tables = {name: table.clone() for name, table in self.named_buffers() if name not in saved}
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Weights are there already, from the architecture's own initialisation or from a file; tables come back.

        A classifier is fresh where no file holds it: normal(0, 0.02), its biases zero.
        """
        if module is getattr(self, "classifier", None):
            init.normal_(module.weight, std=0.02)
            init.zeros_(module.bias)
        names = {id(table): name for name, table in self.named_buffers()}
        for table in module.buffers(recurse=False):
            if (name := names.get(id(table))) in self._tables:
                table.copy_(self._tables[name])

    def get_input_embeddings(self) -> nn.Module:
        """Return the token embedding, (V, D)."""
        return self.backbone.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Refused: embedding, head and special ids belong together.

        Raises:
            RecipeError: always.
        """
        raise RecipeError("an exported model keeps its vocabulary; train with the tokenizer that you want")

    def _states(self, input_ids: Tensor, attention_mask: Tensor | None, position_ids: Tensor | None) -> Tensor:
        """Return hidden states (B, T, D); padding sees and is seen by padding only."""
        real_BT = torch.ones_like(input_ids) if attention_mask is None else attention_mask.long()
        if position_ids is None:
            # Positions count real tokens, so that padding on the left moves nothing.
            position_ids = (real_BT.cumsum(-1) - 1).clamp(min=0)
        # Padding is a document of its own: no real token ever sees it.
        batch = Batch(
            input_ids,
            position_ids.expand_as(input_ids),
            (1 - real_BT).int(),
            torch.zeros(len(input_ids), dtype=torch.int64, device=input_ids.device),
        )
        with self._autocast():
            states: Tensor = self.backbone(input_ids, batch, self._plan)
        return states.to(self.dtype)

    def _scores(self, x_BTD: Tensor, attention_mask: Tensor | None) -> Tensor:
        with self._autocast():
            logits_BTV: Tensor = self.head(x_BTD)
        return logits_BTV.to(self.dtype)

    def _autocast(self) -> torch.autocast:
        """Norms compute in fp32, whatever the weights are: loaded in half precision, a model runs as it trained."""
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype in (torch.bfloat16, torch.float16))


class WorkbenchModel(WorkbenchPreTrainedModel):
    """The backbone alone, ids (B, T) -> hidden states (B, T, D) after the final norm: ``AutoModel``."""

    headed = False

    @can_return_tuple
    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, position_ids: Tensor | None = None, **_: Any
    ) -> outputs.BaseModelOutput:
        """Return ids (B, T) -> ``last_hidden_state`` (B, T, D); ``attention_mask`` (B, T) is 0 at padding."""
        return outputs.BaseModelOutput(last_hidden_state=self._states(input_ids, attention_mask, position_ids))


class _Labelled(WorkbenchPreTrainedModel):
    """Scores, and their loss against labels."""

    output: type[Any]

    @can_return_tuple
    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, position_ids: Tensor | None = None,
        labels: Tensor | None = None, **options: Any,
    ) -> Any:  # fmt: skip
        """Return ``logits`` of the class's shape, and the mean ``loss`` in nats over ``labels`` that are not -100.

        Args:
            input_ids, attention_mask, position_ids: (B, T); the mask is 0 at padding.
            labels: class ids, of the shape of the logits without their last axis.
            options: of the class's loss in transformers, ``num_items_in_batch`` for one.
        """
        return self._result(self._states(input_ids, attention_mask, position_ids), attention_mask, labels, options)

    def _result(
        self, x_BTD: Tensor, attention_mask: Tensor | None, labels: Tensor | None, options: dict[str, Any]
    ) -> Any:
        scores = self._scores(x_BTD, attention_mask)
        loss = None if labels is None else self._loss(scores.float(), labels, options)
        return self.output(loss=loss, logits=scores)

    def _loss(self, scores: Tensor, labels: Tensor, options: dict[str, Any]) -> Tensor:
        shared = {"labels": labels, "vocab_size": scores.shape[-1], "config": self.config}
        # Each of them goes by one of the two names.
        loss: Tensor = self.loss_function(logits=scores, pooled_logits=scores, **shared, **options)
        return loss


class WorkbenchForMaskedLM(_Labelled):
    """Backbone and head, ids (B, T) -> logits (B, T, V): ``AutoModelForMaskedLM``."""

    output = outputs.MaskedLMOutput


class WorkbenchForCausalLM(_Labelled, GenerationMixin):
    """Backbone and head of a causal model, ids (B, T) -> logits (B, T, V): ``AutoModelForCausalLM``, ``generate``.

    Without a key-value cache: each new token reads the row again, at most its last ``max_position_embeddings`` tokens.
    """

    output = outputs.CausalLMOutput

    @can_return_tuple
    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, position_ids: Tensor | None = None,
        labels: Tensor | None = None, logits_to_keep: int = 0, **options: Any,
    ) -> Any:  # fmt: skip
        """Return logits (B, T, V), of the last ``logits_to_keep`` positions if not 0.

        Args:
            labels: (B, T), usually the ids themselves: they are shifted here; -100 is left out.
        """
        x_BTD = self._states(input_ids, attention_mask, position_ids)[:, -logits_to_keep:]
        return self._result(x_BTD, attention_mask, labels, options)

    def prepare_inputs_for_generation(  # type: ignore[override]
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **ignored: Any
    ) -> dict[str, Any]:
        """Return the whole row so far, (B, T), cut to the longest that the model takes."""
        longest = self.config.max_position_embeddings
        mask = None if attention_mask is None else attention_mask[:, -longest:]
        return {"input_ids": input_ids[:, -longest:], "attention_mask": mask}


class WorkbenchForPreTraining(_Labelled):
    """Discriminator, ids (B, T) -> logits (B, T) of "replaced": ``AutoModelForPreTraining``; labels (B, T) are 0, 1."""

    headed = False
    discriminates = True
    output = ElectraForPreTrainingOutput

    def _scores(self, x_BTD: Tensor, attention_mask: Tensor | None) -> Tensor:
        with self._autocast():
            logits_BT: Tensor = self.discriminator_head(x_BTD)
        return logits_BT.to(self.dtype)

    def _loss(self, scores: Tensor, labels: Tensor, options: dict[str, Any]) -> Tensor:
        counts = labels != -100
        return F.binary_cross_entropy_with_logits(scores[counts], labels[counts].float())


class _WithClassifier(WorkbenchPreTrainedModel):
    """Backbone and a fresh linear layer; the language model's head stays behind."""

    headed = False
    classes = 0

    def _scores(self, x_BTD: Tensor, attention_mask: Tensor | None) -> Tensor:
        scores: Tensor = self.classifier(self.dropout(x_BTD))
        return scores


class WorkbenchForSequenceClassification(_Labelled, _WithClassifier):
    """Ids (B, T) -> scores (B, classes): ``AutoModelForSequenceClassification``.

    They are read at the first token, [CLS], or at the last real one of a causal model, which alone has seen the text.
    Labels are (B,) classes or numbers, or (B, classes) marks.
    """

    output = outputs.SequenceClassifierOutput

    def _scores(self, x_BTD: Tensor, attention_mask: Tensor | None) -> Tensor:
        real_BT = x_BTD.new_ones(x_BTD.shape[:2], dtype=torch.long) if attention_mask is None else attention_mask.long()
        place_B = (real_BT.cumsum(-1) * real_BT if self.config.causal else real_BT).argmax(-1)
        return super()._scores(x_BTD[torch.arange(len(x_BTD), device=x_BTD.device), place_B], None)

    def _loss(self, scores: Tensor, labels: Tensor, options: dict[str, Any]) -> Tensor:
        # Marks, and numbers to be met, may come as integers, which transformers takes for classes.
        classes = labels.ndim == 1 and scores.shape[1] > 1 and self.config.problem_type != "regression"
        return super()._loss(scores, labels if classes else labels.float(), options)


class WorkbenchForTokenClassification(_Labelled, _WithClassifier):
    """Ids (B, T) -> scores (B, T, classes): ``AutoModelForTokenClassification``."""

    output = outputs.TokenClassifierOutput


class WorkbenchForQuestionAnswering(_WithClassifier):
    """Ids (B, T) -> scores of where an answer starts and ends, (B, T) each: ``AutoModelForQuestionAnswering``."""

    classes = 2

    @can_return_tuple
    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, position_ids: Tensor | None = None,
        start_positions: Tensor | None = None, end_positions: Tensor | None = None, **options: Any,
    ) -> outputs.QuestionAnsweringModelOutput:  # fmt: skip
        """Return scores (B, T) twice, and the mean of the two losses; positions (B,) beyond the row are left out."""
        start_BT, end_BT = self._scores(self._states(input_ids, attention_mask, position_ids), None).unbind(-1)
        places = {"start_positions": start_positions, "end_positions": end_positions}
        loss = self.loss_function(start_BT.float(), end_BT.float(), **places, **options)
        return outputs.QuestionAnsweringModelOutput(loss=loss, start_logits=start_BT, end_logits=end_BT)


def wrapped(
    config: WorkbenchConfig, backbone: nn.Module, head: nn.Module | None
) -> WorkbenchModel | WorkbenchForMaskedLM | WorkbenchForCausalLM | WorkbenchForPreTraining:
    """Return a transformers model with copies of these weights, on the CPU in eval mode; logits are the same.

    Args:
        config: from :meth:`WorkbenchConfig.of`; its layers are the first of the backbone's.
        head: the model's head over the vocabulary, (B, T, V), or of "replaced", (B, T); None for a model without any.
    """
    kind: type[Any] = WorkbenchModel
    parts = {"backbone": backbone}
    if isinstance(head, DiscriminatorHead):
        kind, parts["discriminator_head"] = WorkbenchForPreTraining, head
    elif head is not None:
        kind, parts["head"] = WorkbenchForCausalLM if config.causal else WorkbenchForMaskedLM, head
    model = kind(config)
    ours = {f"{part}.{name}": t for part, module in parts.items() for name, t in module.state_dict().items()}
    if isinstance(backbone.embedding, Disentangled):
        ours["backbone.embedding.weight"] = backbone.embedding.whole()
    # Layers that do not exist yet are left out; everything else must exist and fit.
    model.load_state_dict({name: ours[name] for name in model.state_dict()})
    return model.eval()  # type: ignore[no-any-return]


AutoConfig.register(WorkbenchConfig.model_type, WorkbenchConfig, exist_ok=True)
AutoModel.register(WorkbenchConfig, WorkbenchModel, exist_ok=True)
AutoModelForMaskedLM.register(WorkbenchConfig, WorkbenchForMaskedLM, exist_ok=True)
AutoModelForPreTraining.register(WorkbenchConfig, WorkbenchForPreTraining, exist_ok=True)
AutoModelForCausalLM.register(WorkbenchConfig, WorkbenchForCausalLM, exist_ok=True)
AutoModelForSequenceClassification.register(WorkbenchConfig, WorkbenchForSequenceClassification, exist_ok=True)
AutoModelForTokenClassification.register(WorkbenchConfig, WorkbenchForTokenClassification, exist_ok=True)
AutoModelForQuestionAnswering.register(WorkbenchConfig, WorkbenchForQuestionAnswering, exist_ok=True)
