"""The peer: transformers' own Trainer with BertForMaskedLM, at its defaults or tuned, on our token store.

It is the real Trainer with its own data loader, collator, optimizer and loop; a callback at step ends waits for the
next round. Same tokenizer, same text, same row length, batch and mask rate as ours; rows are grouped text without
padding, as run_mlm does by default.
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
from workbench.choices.data.order import RowOrder
from workbench.choices.data.prepare import prepare


class Rows(Dataset[dict[str, torch.Tensor]]):
    """Packed rows of our store as the Trainer wants them: ``{"input_ids": (T,) int64}``."""

    def __init__(self, order: RowOrder, rows: int) -> None:
        self._order, self._rows = order, rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self._order.batch(np.array([index % self._order.rows])).tokens_BT[0]}


class Rounds(transformers.TrainerCallback):
    """Stops the Trainer's loop at the end of each round until the parent asks for the next one."""

    def __init__(self, stage: Stage, warmup: int, tokens_per_step: int, ready: dict[str, Any]) -> None:
        self._stage, self._left, self._tokens, self._ready = stage, warmup, tokens_per_step, ready
        self._steps, self._start = 0, time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Trainer's hook after each optimizer step."""
        self._left -= 1
        if self._left:
            return
        seconds = time.perf_counter() - self._start
        # Nothing was asked for yet: what has ended is the warm-up.
        if self._steps:
            self._stage.say({"seconds": seconds, "tokens": self._steps * self._tokens})
        else:
            self._stage.say({"ready": {**self._ready, "warmup_seconds": seconds}})
        steps = self._stage.next_steps()
        if steps is None:
            control.should_training_stop = True
            return
        self._steps = self._left = steps
        self._start = time.perf_counter()


def main() -> None:
    """Child process: ``python -m workbench.bench.peer_transformers '{"recipe": ..., "tuned": ..., ...}'``."""
    stage, setting, recipe = begin()
    prepared = prepare(recipe.data)
    data, shape = recipe.data, recipe.architecture
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=prepared.tokenizer_file, mask_token="[MASK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", unk_token="[UNK]",
    )  # fmt: skip
    config = transformers.BertConfig(
        vocab_size=prepared.vocabulary.size, hidden_size=shape.width, num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads, intermediate_size=4 * shape.width,
    )  # fmt: skip
    torch.manual_seed(recipe.seed)
    model = transformers.BertForMaskedLM(config)
    tuned: dict[str, Any] = (
        {"bf16": True, "torch_compile": True, "optim": "adamw_torch_fused"} if setting["tuned"] else {}
    )
    # No logging, saving or progress bar, which would be charged to the Trainer; more steps than any race asks for.
    arguments = transformers.TrainingArguments(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=data.most_rows, max_steps=100_000,
        learning_rate=setting["lr"], report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(), dataloader_num_workers=setting["workers"], seed=recipe.seed, **tuned,
    )  # fmt: skip
    order = RowOrder(prepared.train, data.longest, recipe.seed)
    ready = {
        "parameters": sum(p.numel() for p in model.parameters()), "optimizer": str(arguments.optim),
        # What the model was built with: its version's default, unless somebody asked for another.
        "attention": str(model.config._attn_implementation),
    }  # fmt: skip
    trainer = transformers.Trainer(
        model=model, args=arguments, train_dataset=Rows(order, 1_000_000),
        data_collator=transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=setting["mask_rate"]),
        callbacks=[Rounds(stage, setting["warmup"], data.most_rows * data.longest, ready)],
    )  # fmt: skip
    trainer.train()


if __name__ == "__main__":
    main()
