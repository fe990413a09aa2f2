"""Named recipes: plain functions that derive from each other, so that the difference between two is easy to read.

``names()`` lists them, ``get(name)`` builds one; the CLI, the Lab and the notebooks offer exactly these.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

from workbench.base.errors import RecipeError, check_known, unknown
from workbench.choices.data.batch_rules import scaled_rate
from workbench.recipes.recipe import Recipe

_FAST_TOKENS = "614_400 tokens"  # what fast() reads in its 600 steps: a budget in steps would favour large batches
DEFAULT = "fast"
"""The preset with which the Lab begins, the quickest that learns something."""
EXAMPLE = "quickstart"
"""The preset that the Lab's first view starts; it draws its curve in seconds, since it does not compile first."""
BERT_VOCABULARY = 30_528
"""BERT's 30,522 word pieces, padded to a multiple of 64."""


def bert_tiny() -> Recipe:
    """BERT at 4 layers x 256, BERT's vocabulary size, 32 x 128 tokens per step: the size our benchmarks use."""
    return Recipe(
        name="bert_tiny",
        data={
            "kind": "embedded",
            "tokenizer": {"kind": "trained", "vocabulary_size": BERT_VOCABULARY},
            "sequence_length": 128,
            "batch_size": 32,
        },
        objective={"kind": "masked", "mask_rate": 0.15},
        architecture={"kind": "pre_ln", "layers": 4, "width": 256, "heads": 4},
        optimizer={
            "kind": "adamw",
            "lr": 3e-3,
            "beta2": 0.98,
            "schedule": {"kind": "warmup_hold_decay", "warmup": 0.05},
        },
        budget="600 steps",
    )


def baseline() -> Recipe:
    """The defaults of transformers' Trainer with BertForMaskedLM: post-LN, fp32, eager, 15% masks, AdamW.

    Same size as :func:`bert_tiny`; the learning rate is tuned (1e-3 instead of the stock 5e-5, which would be a straw
    man when training from scratch).
    """
    return bert_tiny().with_(
        name="baseline",
        architecture="post_ln",
        optimizer={
            "kind": "adamw",
            "lr": 1e-3,
            "beta2": 0.999,
            "schedule": {"kind": "warmup_hold_decay", "warmup": 0.1},
        },
        # sdpa is what transformers takes by default, too.
        execution={"kind": "native", "precision": "fp32", "compile": False, "attention": "sdpa"},
    )


def fast() -> Recipe:
    """Learns within minutes on two CPU cores: small vocabulary, relative positions, short rows, many small steps.

    Masks 30% of the positions at first and 15% at the end: twice the labels while the model leaves the unigram
    plateau, at almost no cost with a head this small; where the compiler's cache is empty, the first run compiles half
    as long again (see the card of `masked`). Rate and warm-up are the best of a sweep at these 600 steps.
    """
    return bert_tiny().with_(
        name="fast",
        data={"tokenizer": {"kind": "trained", "vocabulary_size": 4096}, "sequence_length": 64, "batch_size": 16},
        objective={"mask_rate": {"kind": "linear", "start": 0.3, "end": 0.15}},
        optimizer={"lr": 1.5e-3, "schedule": {"kind": "warmup_hold_decay", "warmup": 0.1}},
    )


def demo_baseline(seconds: float = 90.0) -> Recipe:
    """The baseline of `make demo`: :func:`baseline` at the demo's vocabulary and budget, on one thread."""
    return _demo(baseline(), "demo_baseline", seconds)


def demo_fast(seconds: float = 90.0) -> Recipe:
    """The fast run of `make demo`: :func:`fast` at the demo's budget, on one thread."""
    return _demo(fast(), "demo_fast", seconds)


def gpt_tiny() -> Recipe:
    """A causal decoder of :func:`bert_tiny`'s size."""
    return bert_tiny().with_(
        name="gpt_tiny",
        data={"tokenizer": {"kind": "trained", "algorithm": "bpe", "vocabulary_size": 8192}},
        objective="causal",
    )


def bert() -> Recipe:
    """BERT's own block and head at :func:`bert_tiny`'s size: post-LN, learned positions, GELU, biases, dropout 0.1."""
    return bert_tiny().with_(name="bert", architecture="post_ln", optimizer={"lr": 1e-3})


def electra_like() -> Recipe:
    """:func:`fast` as the discriminator of a generator of a quarter of its width, with one token table (ELECTRA)."""
    return fast().with_(name="electra_like", objective="replaced_token")


def modernbert_like() -> Recipe:
    """ModernBERT's block, small, on rows of 512: GeGLU, embedding norm, every third layer global, masks of 30%."""
    return bert_tiny().with_(
        name="modernbert_like",
        data={"sequence_length": 512, "batch_size": 8},
        objective={"mask_rate": 0.3, "corruption": "all_mask"},
        architecture={
            "layers": 6, "norm": "layer_norm", "embedding_norm": True, "ffn": "geglu", "local_window": 128,
            "global_every": 3,
        },
    )  # fmt: skip


def gpt2_like() -> Recipe:
    """GPT-2's block at :func:`gpt_tiny`'s size: learned positions, GELU, layer_norm, biases everywhere."""
    return gpt_tiny().with_(
        name="gpt2_like",
        architecture={"positions": "learned", "norm": "layer_norm", "ffn": "gelu", "bias": True},
        optimizer={"lr": 1e-3},
    )


def llama_like() -> Recipe:
    """Llama's block at :func:`gpt_tiny`'s size: rotary positions, rms_norm, SwiGLU, an untied head."""
    return gpt_tiny().with_(name="llama_like", architecture={"ffn": "swiglu", "tied": False})


def bert_base() -> Recipe:
    """BERT-base's size (12 layers x 768) with the modern block; meant for a GPU."""
    return bert_tiny().with_(
        name="bert_base",
        data={"sequence_length": 512, "batch_size": 256},
        architecture={"layers": 12, "width": 768, "heads": 12},
        optimizer={"lr": 1e-3},
        execution={"micro_batch_size": 64},
        budget="20000 steps",
    )


def pld() -> Recipe:
    """Progressive Layer Dropping on 12 thin layers, theta 0.5, as Zhang & He 2020 set it.

    At twice the rate of :func:`fast`, warmed up over 40%: after 10% one seed of four was still on the plateau.
    """
    return _thin().with_(
        name="pld",
        optimizer={"lr": 3e-3, "schedule": {"warmup": 0.4}},
        depth={"kind": "progressive_drop", "theta": 0.5},
    )


def raptr() -> Recipe:
    """RaPTr at :func:`pld`'s size and rate: random paths of 6, 8, 10, then 12 layers (Panigrahi et al. 2024)."""
    return pld().with_(name="raptr", depth="raptr")


def stacking() -> Recipe:
    """Progressive stacking at :func:`pld`'s size: 3, 6, then 12 layers, with the stages of Gong et al. 2019."""
    return _thin().with_(name="stacking", depth="stacking")


def mslt() -> Recipe:
    """MSLT at :func:`pld`'s size: 3, 6, 9, then 12 layers, training only the new ones; a joint stage at the end."""
    return _thin().with_(name="mslt", depth="multi_stage")


def freeze() -> Recipe:
    """Freezing from below at :func:`pld`'s size: 3, 6, then 9 of 12 layers are frozen in the last 60% of the budget."""
    return _thin().with_(name="freeze", depth="freeze")


def grow_width() -> Recipe:
    """Growth in width at :func:`pld`'s size: 12 layers of width 64 for 40% of the budget, then of width 128.

    The peak is twice :func:`fast`'s, the best of a sweep.
    """
    return _thin().with_(name="grow_width", depth="grow_width", optimizer={"lr": 3e-3})


def lans() -> Recipe:
    """LANS with the warm-up/hold/decay shape of its first phase (Zheng et al. 2020), at :func:`fast`'s size.

    The peak, twice the published one, is the best of a sweep at these 16 rows.
    """
    return fast().with_(name="lans", optimizer={"kind": "lans", "lr": 1.35e-2})


def lans_two_phase() -> Recipe:
    """LANS as it trained BERT: rows of 128, then of 512, each phase with its own peak, warm-up, plateau and decay.

    Published (Zheng et al. 2020, recalled) with 98,304 rows at peak 6.75e-3 for 3,519 steps and 33,792 rows at 5e-3 for
    782; here with 32 and 8 rows, the same shares of the steps and the same shape within each phase. The square-root
    rule brings both peaks to these batches; one common factor then raises them to the best rate of a sweep at these 500
    steps, 1.35e-2 at 32 rows (the rule alone asks for 1.2e-4, at which almost nothing is learned). A step reads 4,096
    tokens in either phase; minutes on two free CPU cores.
    """
    first_rows, second_rows = 32, 8
    first, second = scaled_rate(6.75e-3, 98_304, first_rows), scaled_rate(5e-3, 33_792, second_rows)
    ends = round(3519 / (3519 + 782), 4)
    shape = "warmup_hold_decay"
    return lans().with_(
        name="lans_two_phase",
        data={
            "sequence_length": {"kind": "stages", "values": (128, 512), "until": (ends,)},
            "batch_size": {"kind": "stages", "values": (first_rows, second_rows), "until": (ends,)},
        },
        optimizer={
            "lr": 1.35e-2,
            "schedule": {
                "kind": "phases",
                "parts": (
                    {"kind": shape, "warmup": 0.4265, "hold": 0.2735},
                    {"kind": shape, "warmup": 0.192, "hold": 0.108},
                ),
                "peaks": (1.0, float(f"{second / first:.4g}")),
                "until": (ends,),
            },
        },
        budget="500 steps",
    )


def batch_ramp() -> Recipe:
    """:func:`fast` with batches that grow from 4 to 16 rows over the first half, the rate with their square root."""
    return fast().with_(
        name="batch_ramp",
        data={
            "batch_size": {"kind": "linear", "start": 4, "end": 16, "length": 0.5},
            "batch_rule": {"lr_scaling": "sqrt"},
        },
        budget=_FAST_TOKENS,
    )


def length_warmup() -> Recipe:
    """:func:`fast` with rows that grow from 16 to 64 tokens over the first 30% of its tokens (Li et al. 2021)."""
    return fast().with_(
        name="length_warmup",
        data={"sequence_length": {"kind": "linear", "start": 16, "end": 64, "length": 0.3}},
        optimizer={"schedule": {"warmup": 0.2}},
        budget=_FAST_TOKENS,
    )


def simigrad() -> Recipe:
    """:func:`fast` with a batch that follows the agreement of its two halves, from 8 rows up to 64, over its tokens.

    At twice its rate, warmed up over 40%, the best of a sweep.
    """
    return fast().with_(
        name="simigrad",
        data={"batch_size": 8, "batch_rule": {"kind": "simigrad", "highest": 64}},
        optimizer={"lr": 3e-3, "schedule": {"warmup": 0.4}},
        execution={"micro_batch_size": 8},
        budget=_FAST_TOKENS,
    )


def quickstart() -> Recipe:
    """A causal model that learns within a minute on one core of any processor, and starts within seconds.

    Predicting next tokens gets beyond word frequencies at once, where masked tokens take minutes. It reads only the
    standard library's documentation, with a small vocabulary, which takes seconds to prepare. It is not compiled, uses
    float32, and does not measure attention first: nothing to wait for, and nothing that a processor may lack.
    """
    return Recipe(
        name="quickstart",
        data={
            "kind": "embedded",
            "packages": ("python",),
            "tokenizer": {"kind": "trained", "vocabulary_size": 2048},
            "sequence_length": 64,
            "batch_size": 8,
        },
        objective="causal",
        architecture={"kind": "pre_ln", "layers": 6, "width": 64, "heads": 2},
        optimizer={
            "kind": "adamw",
            "lr": 4e-3,
            "beta2": 0.98,
            "schedule": {"kind": "warmup_hold_decay", "warmup": 0.1},
        },
        execution={"kind": "native", "precision": "fp32", "compile": False, "attention": "sdpa", "threads": 1},
        budget={"amount": 60, "unit": "seconds", "evaluations": 4},
    )


def names() -> list[str]:
    """Names of all presets, in the order of this file."""
    module = sys.modules[__name__]
    functions = inspect.getmembers(module, lambda f: inspect.isfunction(f) and f.__module__ == __name__)
    recipes = [
        (f.__code__.co_firstlineno, name) for name, f in functions if name not in _NOT_PRESETS and name[0] != "_"
    ]
    return [name for _, name in sorted(recipes)]


def get(name: str) -> Recipe:
    """The preset of that name.

    Raises:
        RecipeError: no such preset; the message lists them.
    """
    check_known("preset", name, names(), RecipeError)
    recipe: Recipe = getattr(sys.modules[__name__], name)()
    return recipe


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module '{__name__}': {unknown('', name, names(), noun='preset')}")


_NOT_PRESETS = ("names", "get")


def _thin() -> Recipe:
    """:func:`fast` with 12 layers of width 128, deep enough for depth methods to matter."""
    return fast().with_(architecture={"layers": 12, "width": 128, "heads": 2})


def _demo(recipe: Recipe, name: str, seconds: float) -> Recipe:
    # One thread each: the two runs share two cores side by side, so neither is timed on a busier machine.
    return recipe.with_(
        name=name,
        data={"tokenizer": {"kind": "trained", "vocabulary_size": 4096}, "sequence_length": 64, "batch_size": 16},
        execution={"threads": 1, "device": "cpu"},
        budget={"amount": seconds, "unit": "seconds", "evaluations": 4},
    )
