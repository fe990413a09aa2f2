"""Tokens per second beside transformers' Trainer: the same maths first, then our architecture, then what does what.

Claim 1 (systems) of an honest comparison: contenders alternate round by round in one process group, after their own
warm-up, data loading and telemetry included; medians of paired ratios, every reading and every loss kept. Which
settings the tuned Trainer runs with is decided by a short trial before.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from workbench.bench.contender import TRAINER as OURS
from workbench.bench.contender import note
from workbench.bench.harness import recipe_of, rounds_of
from workbench.bench.result import spread, verdict
from workbench.bench.rounds import Entrant, ratios, take_rounds, waterfall
from workbench.bench.table import Options
from workbench.recipes.recipe import Recipe
from workbench.training.machine import gemm_flops

THEIRS = "workbench.bench.peer_transformers"

DEFAULT, TUNED, UNDROPPED, MODERN = "Trainer", "Trainer tuned", "Trainer tuned, no dropout", "Trainer tuned, ModernBERT"
SAME, SAME_UNDROPPED, BEST = "same maths", "same maths, no dropout", "our architecture"
TARGETS = {(SAME, DEFAULT): 4.0, (SAME, TUNED): 2.5, (BEST, DEFAULT): 12.0, (BEST, TUNED): 5.0}
"""Ratios of tokens/s asked for at the size of ``bert_tiny`` on two cores."""
PAIRS = [*TARGETS, (SAME_UNDROPPED, UNDROPPED), (BEST, UNDROPPED), (BEST, MODERN)]
ATTENTIONS, WORKERS = ("eager", "sdpa"), (0, 2)
"""Values of the tuned Trainer, found by trials."""
TRIED: dict[str, dict[str, Any]] = {
    TUNED: {}, UNDROPPED: {"dropout": 0.0}, MODERN: {"dropout": 0.0, "model": "modernbert"},
}  # fmt: skip
"""Tuned Trainers, as :func:`trainer` takes them; each is tried out for itself."""
TRIAL_ROUNDS, TRIAL_STEPS = 3, 2
LEARNING_RATE = 3e-4
"""Shared by every contender: speed does not depend on it, and no curve leaves the others in its first steps."""


def same_maths(recipe: Recipe) -> Recipe:
    """Return the recipe with BERT's own model and the Trainer's own optimizer: what both sides then compute alike."""
    return recipe.with_(
        objective={"kind": "masked", "mask_rate": 0.15, "corruption": "80-10-10"},
        architecture="post_ln",
        depth="full",
        optimizer={
            "kind": "adamw", "lr": LEARNING_RATE, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0,
            "clip_norm": 1.0, "schedule": {"kind": "linear", "start": 1.0, "end": 0.0},
        },
        # More than any race asks for; the rate of both falls in a straight line over it.
        budget="100000 steps",
    )  # fmt: skip


def ladder(recipe: Recipe) -> list[tuple[str, str, dict[str, Any]]]:
    """Return (what is new, name, setting) of our contenders: from what the Trainer computes to the recipe,
    one thing a time.

    Args:
        recipe: its data, size, execution and, at the end, its architecture.
    """
    end, grouped = recipe.execution.model_dump(), {"grouped": True}
    plain = {"kind": "native", "device": end["device"], "threads": end["threads"], "attention": "sdpa"}
    whole = same_maths(recipe).with_(execution={**plain, "precision": "fp32", "compile": False, "head": "all"})
    eager = whole.with_(execution={"head": "labelled"})
    bf16 = eager.with_(execution={"precision": end["precision"]})
    compiled = bf16.with_(execution={"compile": end["compile"]})
    same = compiled.with_(execution=end)
    undropped = same.with_(architecture={"dropout": 0.0})
    best = undropped.with_(architecture=recipe.architecture.model_dump())
    rungs: list[tuple[str, str, Recipe, dict[str, Any]]] = [
        ("our loop and data pipeline", "ours as run_mlm", whole, grouped),
        ("head and last block on labelled positions only", "+ labelled positions", eager, grouped),
        ("precision", "+ precision", bf16, grouped),
        ("compilation", "+ compilation", compiled, grouped),
        ("attention and the recipe's other knobs", SAME, same, grouped),
        ("no dropout", SAME_UNDROPPED, undropped, grouped),
        ("documents kept apart in packed rows", "+ documents apart", undropped, {}),
        ("architecture", BEST, best, {}),
    ]
    return [(what, name, {"recipe": each.to_dict(), **more}) for what, name, each, more in rungs]


def trainer(
    recipe: Recipe, *, tuned: bool = False, dropout: float | None = None, model: str = "bert",
    attention: str | None = None, workers: int = 0, same_masks: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return setting of a Trainer on the recipe's data and size; dropout is BERT's own when None."""
    theirs = same_maths(recipe).with_(execution={"precision": "fp32", "compile": False})
    if dropout is not None:
        theirs = theirs.with_(architecture={"dropout": dropout})
    return {
        "recipe": theirs.to_dict(), "model": model, "tuned": tuned, "attention": attention, "workers": workers,
        "same_masks": same_masks,
    }  # fmt: skip


def tuning(recipe: Recipe, warmup: int) -> dict[str, Any]:
    """Try out the settings of each tuned Trainer: attention, then workers with the faster one.

    Returns:
        by its name: ``chosen`` (attention and workers) and ``tokens_per_second`` of everything tried.
    """
    found: dict[str, Any] = {}
    for name, asked in TRIED.items():
        setting: dict[str, Any] = {"attention": None, "workers": WORKERS[0]}
        found[name] = {"chosen": setting}
        # One after the other, each trial beside its own rivals: two trials apart may meet two machines.
        for knob, values in (("attention", ATTENTIONS), ("workers", WORKERS)):
            entrants = {
                str(value): Entrant(THEIRS, trainer(recipe, tuned=True, **asked, **{**setting, knob: value}))
                for value in values
            }
            note(f"trial of {knob}, {name}")
            rates = take_rounds(entrants, rounds=TRIAL_ROUNDS, steps=TRIAL_STEPS, warmup=warmup).rates()
            medians = {value: statistics.median(rates[str(value)]) for value in values}
            setting[knob] = max(values, key=lambda value: medians[value])
            found[name][f"{knob}_tokens_per_second"] = {str(value): each for value, each in medians.items()}
    return found


def contenders(recipe: Recipe, chosen: Mapping[str, Any]) -> dict[str, Entrant]:
    """Return all of the race: the Trainer four times, then ours.

    Args:
        recipe: ours; all others take its data, size and seed.
        chosen: as :func:`tuning` gives it.
    """
    theirs = {DEFAULT: trainer(recipe)}
    for name, asked in TRIED.items():
        theirs[name] = trainer(recipe, tuned=True, **asked, **chosen[name]["chosen"])
    found = {name: Entrant(THEIRS, setting) for name, setting in theirs.items()}
    return found | {name: Entrant(OURS, setting) for _, name, setting in ladder(recipe)}


def measure(
    recipe: Recipe, *, rounds: int, steps: int, warmup: int, chosen: Mapping[str, Any] | None = None,
    only: Collection[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Alternate the contenders for ``rounds`` rounds of ``steps`` steps each.

    Args:
        recipe: ours.
        rounds, steps, warmup: of every contender.
        chosen: the tuned Trainer's settings; tried out when None.
        only: names of contenders; all when None.

    Returns:
        ``contenders`` by name: ``tokens_per_second`` (spread), ``readings``, ``losses`` from the first step on,
        ``attention, parameters, memory_bytes, compile_wall_seconds, mfu``; ``ratios``: of :data:`PAIRS`; ``waterfall``;
        ``tuning``; ``curves``: see :func:`agreement`.
    """
    peak = gemm_flops(recipe.engine().mode)
    chosen = chosen or tuning(recipe, warmup)
    entrants = {name: each for name, each in contenders(recipe, chosen).items() if only is None or name in only}
    held = take_rounds(entrants, rounds=rounds, steps=steps, warmup=warmup)
    rates = held.rates()
    flops = {name: _flops_per_token(name, held.answers) for name in rates}
    found = {
        name: {
            "tokens_per_second": spread(rates[name]),
            **{key: ready.get(key) for key in ("attention", "parameters", "memory_bytes", "compile_wall_seconds")},
            "mfu": None if (each := flops[name]) is None else statistics.median(rates[name]) * each / peak,
            "readings": rates[name],
            "losses": held.losses(name),
        }
        for name, ready in held.ready.items()
    }
    chain = [("", DEFAULT), *((what, name) for what, name, _ in ladder(recipe))]
    pairs = [(a, b, ratios(rates[a], rates[b])) for a, b in PAIRS if a in rates and b in rates]
    return {
        "protocol": f"{rounds} alternating rounds of {steps} steps after {warmup} warm-up steps, one process each",
        "recipe": recipe.to_dict(),
        "mfu_is_share_of": f"the matrix product's rate measured here, {peak:.3g} FLOP/s ({recipe.engine().precision})",
        "tuning": chosen,
        "contenders": found,
        "ratios": [{"ours": a, "theirs": b, "target": TARGETS.get((a, b)), **ratio} for a, b, ratio in pairs],
        "verdicts": [
            verdict(f"{a} beside {b}, tokens/s", ratio["median"], ">=", TARGETS[a, b], "x")
            for a, b, ratio in pairs if (a, b) in TARGETS
        ],
        "waterfall": waterfall(rates, chain) if all(name in rates for _, name in chain) else None,
    }  # fmt: skip


def _flops_per_token(name: str, answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> float | None:
    """Return useful FLOPs of a token, those of our model of the same maths for a BERT; None where nobody counted."""
    counted = name if name in answers and "flops" in answers[name][0] else SAME
    if name == MODERN or counted not in answers:
        return None
    return float(answers[counted][0]["flops"] / answers[counted][0]["tokens"])


def agreement(recipe: Recipe, steps: int) -> dict[str, Any]:
    """Return losses of the Trainer and of ours on the same rows, masks and first weights, and how far seeds lie apart.

    Args:
        recipe: ours.
        steps: of each.

    Returns:
        ``exact``: fp32 without dropout, ``losses`` of both and the greatest ``difference`` in nats; ``band``: as they
        are raced, bf16 and dropout, mean losses of the last half: ``theirs``, ``ours`` and ``seeds``, ours on others;
        ``within``: whether theirs is no further from ours than a seed is.
    """
    small = recipe.with_(data={"batch_size": 8})
    eager = same_maths(small).with_(execution={"precision": "fp32", "compile": False}, architecture={"dropout": 0.0})
    _, _, same = next(rung for rung in ladder(small) if rung[1] == SAME)
    entrants = {
        "theirs, exact": Entrant(THEIRS, trainer(small, dropout=0.0, same_masks=True)),
        "ours, exact": Entrant(OURS, {"recipe": eager.to_dict(), "grouped": True}),
        "theirs": Entrant(THEIRS, trainer(small, tuned=True, same_masks=True)),
        "ours": Entrant(OURS, same),
        **{
            f"ours, seed {seed}": Entrant(OURS, {**same, "recipe": {**same["recipe"], "seed": seed}})
            for seed in (recipe.seed + 1, recipe.seed + 2)
        },
    }
    losses = {}
    for name, entrant in entrants.items():
        losses[name] = take_rounds({name: entrant}, rounds=0, steps=0, warmup=steps).losses(name)
    late = {name: statistics.mean(each[len(each) // 2 :]) for name, each in losses.items()}
    seeds = [late[name] for name in losses if "seed" in name]
    apart = max(abs(seed - late["ours"]) for seed in seeds)
    pairs = zip(losses["theirs, exact"], losses["ours, exact"], strict=True)
    return {
        "rows_per_step": 8,
        "losses": losses,
        "exact": {"difference": max(abs(a - b) for a, b in pairs)},
        "band": {"theirs": late["theirs"], "ours": late["ours"], "seeds": seeds},
        "within": abs(late["theirs"] - late["ours"]) <= apart,
    }


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    recipe = recipe_of(options)
    result = measure(recipe, only=options.only, **rounds_of(options))
    return result | ({"curves": agreement(recipe, options.curve_steps)} if options.curve_steps else {})
