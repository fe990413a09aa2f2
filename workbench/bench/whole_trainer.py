"""transformers' Trainer trains a whole run, from scratch to the end of its schedule, and is scored as ours are.

A child process in the protocol of :mod:`workbench.bench.contender`: every message names a recipe, which gives data,
size, rate, warm-up, steps and seed; model, initialisation, loss, optimizer, loop and loader are transformers'.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
import transformers

from workbench.base.json_lines import finite
from workbench.bench.peer_transformers import arguments_of, ignoring, rows_of
from workbench.bench.presets import seconds_of
from workbench.bench.tuning_worker import serve
from workbench.choices.data.tokens import PreparedData, Vocabulary
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import heldout_set

UNTIMED_STEPS = 2
"""In which a compiled model is compiled; they count as long as the later ones take."""
ROWS = 64
"""Rows of the held-out set that are scored at once."""
WAYS = tuple({"bf16": bf16, "torch_compile": compiled} for bf16 in (True, False) for compiled in (True, False))
"""In which the tuned Trainer may train; the fastest is taken."""
TRIAL_STEPS, TRIAL_SHARE, TRIAL_ROUNDS = 60, 8, 2
"""Steps of a trial, but no more than this part of a run, and how often each way takes its turn: once before a run that
is too short for whole trials."""


class Clock(transformers.TrainerCallback):
    """Seconds of this process's processor time and of the wall, from the end of the first steps to that of the last."""

    def __init__(self, device: torch.device) -> None:
        self._device, self.steps = device, 0
        self._readings: list[tuple[float, float]] = []

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Trainer's hook after each optimizer step."""
        self.steps = state.global_step
        if self.steps in (UNTIMED_STEPS, state.max_steps):
            if self._device.type == "cuda":
                torch.cuda.synchronize(self._device)
            self._readings.append((time.process_time(), time.perf_counter()))

    @property
    def seconds(self) -> tuple[float, float]:
        """Return the seconds of all steps without compilation: of the processor, of the wall."""
        (cpu, wall), (last_cpu, last_wall) = self._readings[0], self._readings[-1]
        share = self.steps / max(1, self.steps - UNTIMED_STEPS)
        return (last_cpu - cpu) * share, (last_wall - wall) * share


def gpt2(recipe: Recipe, words: Vocabulary, dropout: float | None) -> transformers.PreTrainedModel:
    """Return ``GPT2LMHeadModel`` of the recipe's size with random weights; dropout is GPT-2's own when None."""
    shape = recipe.architecture
    config = transformers.GPT2Config(
        vocab_size=words.size, n_positions=recipe.data.longest, n_embd=shape.width, n_layer=shape.layers,
        n_head=shape.heads, bos_token_id=words.cls, eos_token_id=words.sep, pad_token_id=words.pad,
    )  # fmt: skip
    if dropout is not None:
        config.resid_pdrop = config.embd_pdrop = config.attn_pdrop = dropout
    return transformers.GPT2LMHeadModel(config)


def bert(recipe: Recipe, words: Vocabulary, dropout: float | None) -> transformers.PreTrainedModel:
    """Return ``BertForMaskedLM``, as :func:`gpt2`."""
    shape = recipe.architecture
    config = transformers.BertConfig(
        vocab_size=words.size, hidden_size=shape.width, num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads, intermediate_size=shape.inner_width,
        max_position_embeddings=recipe.data.longest, pad_token_id=words.pad,
    )  # fmt: skip
    if dropout is not None:
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout
    return transformers.BertForMaskedLM(config)


def score(model: transformers.PreTrainedModel, recipe: Recipe, prepared: PreparedData) -> float:
    """Return mean nats over the held-out set of the recipe, as :func:`workbench.training.evaluate.evaluate` counts
    them.
    """
    heldout = heldout_set(recipe, prepared)
    model.eval()
    total = 0.0
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):
        for _, seen in heldout.batches(recipe.data.longest, ROWS):
            logits_BTV = model(input_ids=seen.tokens_BT.to(model.device)).logits.float()
            labels_M = ignoring(seen).flatten().to(model.device)
            total += float(F.cross_entropy(logits_BTV.flatten(0, 1), labels_M, reduction="sum"))
    return total / len(heldout.scored_S)


def train(recipe: Recipe, prepared: PreparedData, tuned: Mapping[str, bool] | None) -> dict[str, Any]:
    """Train to the end of the recipe's budget, which is in steps, and evaluate once.

    Args:
        tuned: one of :data:`WAYS`, beside fused AdamW and no dropout; None for the Trainer's and the model's defaults.

    Returns:
        ``loss`` (held-out, nats; None when the run diverged), ``steps``, ``tokens``, ``device``, ``cpu_seconds`` and
        ``wall_seconds`` of training without compilation, ``parameters``, ``way``.
    """
    transformers.set_seed(recipe.seed)
    model = (gpt2 if recipe.objective.causal else bert)(recipe, prepared.vocabulary, None if tuned is None else 0.0)
    data, steps, clock = recipe.data, int(recipe.budget.amount), Clock(device := recipe.engine().device)
    with tempfile.TemporaryDirectory() as folder:
        warmup = round(steps * recipe.optimizer.schedule.warmup)
        arguments = arguments_of(
            recipe, folder, tuned is not None, warmup_steps=warmup, lr_scheduler_type="linear", **(tuned or {})
        )
        trainer = transformers.Trainer(model=model, args=arguments, callbacks=[clock], **rows_of(recipe, prepared))
        trainer.train()
    loss, (cpu, wall) = score(model, recipe, prepared), clock.seconds
    return {
        "loss": finite(loss),
        "steps": clock.steps,
        "tokens": clock.steps * data.most_rows * data.longest,
        "device": device.type,
        "cpu_seconds": round(cpu, 2),
        "wall_seconds": round(wall, 2),
        "parameters": sum(p.numel() for p in model.parameters()),
        "way": dict(tuned) if tuned is not None else None,
    }


def fastest(recipe: Recipe, prepared: PreparedData, eager: bool = False) -> dict[str, bool]:
    """Return the one of :data:`WAYS` with the least time per step here, by trials in turns.

    Small models may lose by what large ones gain: of 2 layers x 64, bf16 and compilation make a step a third longer.

    Args:
        eager: of those that compile nothing.
    """
    ways = [way for way in WAYS if not (eager and way["torch_compile"])]
    steps = min(TRIAL_STEPS, max(4 * UNTIMED_STEPS, int(recipe.budget.amount) // TRIAL_SHARE))
    rounds = TRIAL_ROUNDS if steps == TRIAL_STEPS else 1
    # What it scores tells nothing: as little of it as can be.
    short = recipe.with_(budget={"amount": steps, "evaluation_tokens": 1024})
    seconds: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for way, readings in zip(ways, seconds, strict=True):
            readings.append(seconds_of(train(short, prepared, way)))
            torch.compiler.reset()
    return dict(ways[min(range(len(ways)), key=lambda number: min(seconds[number]))])


def main() -> None:
    """Child process: ``python -m workbench.bench.whole_trainer '{"recipe": ..., "tuned": ..., "eager": ..., ...}'``.

    Setting beside these: ``way``, one of :data:`WAYS`, where the fastest has been found.
    """
    found: dict[str, bool] = {}

    def answer(recipe: Recipe, prepared: PreparedData, setting: dict[str, Any]) -> dict[str, Any]:
        if setting["tuned"] and not found:
            found.update(setting.get("way") or fastest(recipe, prepared, setting["eager"]))
        return train(recipe, prepared, found or None)

    serve(answer)


if __name__ == "__main__":
    main()
