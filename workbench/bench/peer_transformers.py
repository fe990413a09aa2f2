"""The peer: transformers' own Trainer with BertForMaskedLM or ModernBERT, at its defaults or tuned, on our rows.

It is the real Trainer with its own data loader, collator, optimizer and loop; a callback at step ends waits for the
next round. Same tokenizer, text, order of rows, batch and mask rate as ours, and a BERT starts from the weights that
ours starts from; rows are grouped text without padding, as run_mlm does by default.
"""

from __future__ import annotations

import tempfile
import time
from typing import Any

import numpy as np
import torch
import transformers
from torch.utils.data import Dataset

from workbench.bench.contender import Stage, begin
from workbench.bench.timed_trainer import PeakMemory, load_what_all_need
from workbench.choices.architectures.feed_forward import gated_width
from workbench.choices.architectures.transformers_bert import to_transformers
from workbench.choices.data.order import RowOrder
from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokens import PreparedData
from workbench.choices.objectives.corruption import Corruption
from workbench.choices.objectives.layout import everywhere
from workbench.choices.objectives.objective import Labelled
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import progress_at
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import build_model

TUNED: dict[str, Any] = {"bf16": True, "torch_compile": True, "optim": "adamw_torch_fused"}
"""Settings of the Trainer beside its data loader and the model's attention."""


EPOCHS = 10_000_000
"""Rows that there seem to be: more than are ever read."""
IGNORED = -100
"""Label of a position that does not count, in transformers' losses."""


def ignoring(seen: Labelled) -> torch.Tensor:
    """Return labels (B, T) as transformers takes them: :data:`IGNORED` where nothing counts."""
    every = everywhere(seen)
    return torch.where(every.weight_N > 0, every.labels_N, IGNORED).view_as(seen.tokens_BT)


class Rows(Dataset[dict[str, torch.Tensor]]):
    """Packed rows of our store as the Trainer wants them: ``{"input_ids": (T,) int64}``.

    Args:
        order: of the rows.
        rows: how many there seem to be: epoch after epoch.
        recipe: with it, rows are masked as it masks them, and have ``labels`` (T,).
        prepared: its data.
    """

    def __init__(
        self, order: RowOrder, rows: int, recipe: Recipe | None = None, prepared: PreparedData | None = None
    ) -> None:
        self._order, self._rows, self._recipe = order, rows, recipe
        if recipe is not None and prepared is not None:
            self._corrupt = Corruption(prepared.vocabulary, torch.device("cpu"))

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        batch = self._order.batch(np.array([index]))
        if self._recipe is None:
            return {"input_ids": batch.tokens_BT[0]}
        rate = self._recipe.objective.labelled_fraction(progress_at(self._recipe.budget, 0.0))
        seen = self._corrupt(batch, rate, self._recipe.seed, always_mask=False)
        return {"input_ids": seen.tokens_BT[0], "labels": ignoring(seen)[0]}


class Rounds(transformers.TrainerCallback):
    """Stops the Trainer's loop at the end of each round until the parent asks for the next one.

    Args:
        stage: speaks with the parent.
        warmup: steps before it is ready.
        tokens_per_step: what a step reads.
        ready: what to say then, beside ``warmup`` and, unless it is among them, the ``compile_wall_seconds`` that the
            first step took.
        memory: watched until then.
    """

    def __init__(
        self, stage: Stage, warmup: int, tokens_per_step: int, ready: dict[str, Any], memory: PeakMemory | None = None
    ) -> None:
        self._stage, self._left, self._tokens, self._ready, self._memory = stage, warmup, tokens_per_step, ready, memory
        self._steps, self._start, self._first = 0, time.perf_counter(), 0.0
        self.losses: list[torch.Tensor] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Trainer's hook before the first step."""
        self._start = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Trainer's hook after each optimizer step."""
        self._left -= 1
        # What is compiled is compiled when the first step has been handed over, also to a GPU that still works on it.
        self._first = self._first or time.perf_counter() - self._start
        if self._left:
            return
        losses = [float(loss) for loss in self.losses]
        seconds = time.perf_counter() - self._start
        self.losses.clear()
        # Nothing was asked for yet: what has ended is the warm-up.
        if self._steps:
            self._stage.say({"seconds": seconds, "tokens": self._steps * self._tokens, "losses": losses})
        else:
            ready = {
                "compile_wall_seconds": self._first,
                **self._ready,
                "warmup": {"seconds": seconds, "losses": losses},
            }
            if self._memory is not None:
                ready["memory_bytes"] = self._memory.grown
                self._memory.stop()
            self._stage.say({"ready": ready})
        message = self._stage.next()
        if message is None:
            control.should_training_stop = True
            return
        self._steps = self._left = message["steps"]
        self._start = time.perf_counter()


class Trainer(transformers.Trainer):
    """The real one; the loss of every step is kept, unread."""

    def __init__(self, rounds: Rounds, **options: Any) -> None:
        super().__init__(callbacks=[rounds], **options)
        self._rounds = rounds

    def training_step(self, *arguments: Any, **options: Any) -> torch.Tensor:
        """Return Trainer's forward and backward pass; the loss, 0-d."""
        loss = super().training_step(*arguments, **options)
        self._rounds.losses.append(loss)
        return loss


def bert(recipe: Recipe, prepared: PreparedData) -> transformers.PreTrainedModel:
    """Return ``BertForMaskedLM`` with the weights that the recipe, of architecture ``post_ln``, starts from."""
    cpu = recipe.with_(execution={"device": "cpu", "attention": "plain", "precision": "fp32"})
    model = build_model(cpu, recipe.architecture, prepared.vocabulary, cpu.engine())
    assert isinstance(model, TokenPrediction)
    return to_transformers(model.backbone, model.head, prepared.vocabulary.pad)


def modernbert(recipe: Recipe, prepared: PreparedData) -> transformers.PreTrainedModel:
    """Return ModernBERT of the recipe's size, its gated part with as many parameters;
    its head sees labelled positions.
    """
    shape, words = recipe.architecture, prepared.vocabulary
    config = transformers.ModernBertConfig(
        vocab_size=words.size, hidden_size=shape.width, num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads, intermediate_size=gated_width(shape.inner_width), sparse_prediction=True,
        pad_token_id=words.pad, cls_token_id=words.cls, sep_token_id=words.sep, bos_token_id=words.cls,
        eos_token_id=words.sep,
    )  # fmt: skip
    torch.manual_seed(recipe.seed)
    return transformers.ModernBertForMaskedLM(config)


def tokenizer_of(prepared: PreparedData) -> transformers.PreTrainedTokenizerFast:
    """Return our tokenizer, as the Trainer's collators want one."""
    return transformers.PreTrainedTokenizerFast(
        tokenizer_file=prepared.tokenizer_file, mask_token="[MASK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", unk_token="[UNK]",
    )  # fmt: skip


MODELS = {"bert": bert, "modernbert": modernbert}


def arguments_of(recipe: Recipe, folder: str, tuned: bool, **more: Any) -> transformers.TrainingArguments:
    """Return the Trainer's arguments for a recipe's rows, steps, rate, seed and device;
    nothing is written to ``folder``.

    Args:
        more: arguments that hold instead of those of :data:`TUNED`.
    """
    # No logging, saving or progress bar, which would be charged to the Trainer.
    return transformers.TrainingArguments(
        output_dir=folder, per_device_train_batch_size=recipe.data.most_rows, max_steps=int(recipe.budget.amount),
        learning_rate=recipe.optimizer.lr, report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
        use_cpu=recipe.engine().device.type == "cpu", seed=recipe.seed, train_sampling_strategy="sequential",
        **({**TUNED, **more} if tuned else more),
    )  # fmt: skip


def rows_of(recipe: Recipe, prepared: PreparedData, same_masks: bool = False) -> dict[str, Any]:
    """Return a Trainer's rows and collator, of masks where the recipe has them.

    Args:
        same_masks: rows come masked as ours instead of by the collator.
    """
    order = RowOrder(prepared.train, recipe.data.longest, recipe.seed)
    if same_masks:
        rows, collator = Rows(order, EPOCHS, recipe, prepared), transformers.default_data_collator
    else:
        rows, rate = Rows(order, EPOCHS), recipe.objective.labelled_fraction(progress_at(recipe.budget, 0.0))
        collator = transformers.DataCollatorForLanguageModeling(
            tokenizer_of(prepared), mlm=not recipe.objective.causal, mlm_probability=rate
        )
    return {"train_dataset": rows, "data_collator": collator}


def main() -> None:
    """Child process: ``python -m workbench.bench.peer_transformers '{"recipe": ..., "tuned": ..., ...}'``.

    Settings: ``model`` of :data:`MODELS`; ``tuned``: :data:`TUNED` or the defaults; ``attention``: None for
    transformers' own choice; ``workers`` of the data loader; ``warmup`` steps; ``same_masks``: rows come masked as ours
    instead of by the Trainer's collator. Rate, dropout, precision-free sizes and seed are the recipe's.
    """
    stage, setting, recipe = begin()
    prepared = prepare(recipe.data)
    data, device = recipe.data, recipe.engine().device
    folder = tempfile.TemporaryDirectory()  # gone with this process
    arguments = arguments_of(recipe, folder.name, setting["tuned"], dataloader_num_workers=setting["workers"])
    load_what_all_need()
    memory = PeakMemory(device)
    memory.__enter__()
    model = MODELS[setting["model"]](recipe, prepared)
    if setting["attention"]:
        model.set_attn_implementation(setting["attention"])
    ready = {
        "parameters": sum(p.numel() for p in model.parameters()), "optimizer": str(arguments.optim),
        # What the model runs with: its version's default, unless somebody asked for another.
        "attention": str(model.config._attn_implementation), "threads": torch.get_num_threads(),
        # Else the first step, compilation in it: that of others compiles nothing.
        **({} if arguments.torch_compile else {"compile_wall_seconds": 0.0}),
    }  # fmt: skip
    rounds = Rounds(stage, setting["warmup"], data.most_rows * data.longest, ready, memory)
    trainer = Trainer(rounds, model=model, args=arguments, **rows_of(recipe, prepared, setting["same_masks"]))
    trainer.train()


if __name__ == "__main__":
    main()
