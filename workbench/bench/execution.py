"""Measure each knob of the native engine: alone, added one by one, and all together, on one recipe.

Tokens per second, peak memory, and the loss of the first steps beside eager fp32. Every contender is a fresh process;
they take turns in groups, each with the plain engine among them, so that ratios are paired within rounds.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from workbench.base.errors import WorkbenchError, check_known
from workbench.bench.contender import TRAINER
from workbench.bench.harness import recipe_of, rounds_of
from workbench.bench.result import spread, verdict
from workbench.bench.rounds import Entrant, SpeedRounds, beside, ratios, waterfall
from workbench.bench.table import Options
from workbench.recipes.recipe import Recipe

EXACT, ROUNDED = 2e-3, 5e-2
"""Nats by which the loss of a step may differ from eager fp32: other order of sums, and fewer digits."""
COMPARED_STEPS = 20
"""Steps whose losses are compared."""
PLAIN = "plain"


class Knob(NamedTuple):
    """Describe how a knob of the engine is compared.

    Attributes:
        plain: its value in the plain engine.
        values: beside it; the last that this device takes is kept when knobs are added up.
        aim: what it is for: ``layout`` leaves out work that no label needs, ``speed`` and ``memory`` speak for
            themselves.
        tolerance: nats by which the loss of a step may differ.
        needs: values of other knobs without which the engine refuses it; they come along when it is compared alone.
    """

    plain: Any
    values: tuple[Any, ...]
    aim: Literal["layout", "speed", "memory"] = "speed"
    tolerance: float = EXACT
    needs: Mapping[str, Any] = MappingProxyType({})


KNOBS: dict[str, Knob] = {
    "head": Knob("all", ("labelled",), "layout"),
    "padding": Knob("kept", ("removed",), "layout"),
    "precision": Knob("fp32", ("tf32", "fp8", "fp16", "bf16"), tolerance=ROUNDED),
    "compile": Knob(False, (True,)),
    "compile_scope": Knob("blocks", ("graphs", "step"), needs={"compile": True}),
    "attention": Knob("plain", ("sdpa", "flex", "varlen", "auto")),
    "optimizer_states": Knob("fp32", ("host", "8bit"), "memory", ROUNDED),
    "weights": Knob("fp32", ("bf16",), "memory", ROUNDED, {"precision": "bf16"}),
    "recompute": Knob("off", ("budget", "attention", "activation", "dropout", "operations", "layers"), "memory"),
}
"""By name, in the order in which they are added."""
LEFT_OUT = ("recompute_every", "memory_gib", "parallel")
"""Knobs of the native engine that have no few values to compare, or need several processes."""


class Contenders(NamedTuple):
    """Hold the settings of the comparison.

    Attributes:
        changes: by name, what is unlike the plain engine; :data:`PLAIN` is none of them.
        chains: by what is measured along it, (what is new, name of the contender), the plain engine first.
        tolerances: by name, in nats.
        skipped: by name of knob or contender, why it cannot be compared here.
    """

    changes: dict[str, dict[str, Any]]
    chains: dict[str, list[tuple[str, str]]]
    tolerances: dict[str, float]
    skipped: dict[str, str]


def plain(recipe: Recipe, knobs: Mapping[str, Knob]) -> Recipe:
    """Return the recipe, eager and in fp32, everything else of the engine off."""
    return recipe.with_(execution={"kind": "native", **{name: knob.plain for name, knob in knobs.items()}})


def contenders(recipe: Recipe, knobs: Mapping[str, Knob]) -> Contenders:
    """Return each value alone, and the knobs added up: layout and speed for tokens/s, the others for memory, then all.

    Args:
        recipe: as :func:`plain` gives it.
        knobs: to compare.
    """
    found = Contenders({}, {"tokens_per_second": [("", PLAIN)], "memory_bytes": [("", PLAIN)]}, {}, {})

    def taken(changes: dict[str, Any]) -> str:
        """Name of the contender with these changes; empty where this device refuses them."""
        name = ", ".join(f"{knob}={json.dumps(value)}" for knob, value in changes.items()).replace('"', "")
        if name in found.changes:
            return name
        if why := _refusal(recipe, changes):
            found.skipped[name] = why
            return ""
        found.changes[name] = changes
        found.tolerances[name] = max(knobs[knob].tolerance for knob in changes if knob in knobs)
        return name

    for name, knob in knobs.items():
        for value in knob.values:
            taken({**knob.needs, name: value})
    sums: dict[str, dict[str, Any]] = {}
    for measure, aims in (("tokens_per_second", ("layout", "speed")), ("memory_bytes", ("memory",))):
        so_far: dict[str, Any] = {}
        for aim in aims:
            for name, knob in knobs.items():
                # The last value that works on top of the others; none at all leaves the knob out of the sum.
                for value in reversed(knob.values if knob.aim == aim else ()):
                    changes = {**so_far, **knob.needs, name: value}
                    if contender := taken(changes):
                        so_far = changes
                        found.chains[measure].append((f"{name}: {value}", contender))
                        break
        sums[measure] = so_far
    # What saves memory comes first; of what is for speed, all that goes with it.
    everything = sums["memory_bytes"]
    for name, value in sums["tokens_per_second"].items():
        if everything and not _refusal(recipe, {**everything, name: value}):
            everything = {**everything, name: value}
    if everything and (contender := taken(everything)):
        found.chains["memory_bytes"].append(("with all for speed that goes with it", contender))
    return found


def _refusal(recipe: Recipe, changes: dict[str, Any]) -> str:
    """Return the reason why this device or recipe cannot have these changes; empty if it can."""
    try:
        recipe.with_(execution=changes).engine()
    except WorkbenchError as error:
        return str(error).splitlines()[-1].strip()
    return ""


def measure(
    recipe: Recipe, *, rounds: int, steps: int, warmup: int, only: Collection[str] | None = None,
    seconds: float = math.inf,
) -> dict[str, Any]:  # fmt: skip
    """Compare the knobs on a recipe.

    Args:
        recipe: whatever its execution says, but for device, threads and micro-batches.
        rounds, steps, warmup: of every contender.
        only: names of knobs; all when None.
        seconds: after which no other group of contenders starts.

    Returns:
        ``contenders`` by name: ``execution`` (what is unlike the plain engine), ``tokens_per_second`` and
        ``faster_than_plain`` (spreads, the latter by round), ``memory_bytes``, ``compile_wall_seconds``, ``attention``,
        ``losses`` of the first steps, ``loss_difference`` (greatest, nats), ``tolerance`` and ``within``; ``skipped``
        with reasons; ``waterfall`` of tokens per second and of memory; ``verdicts`` (see :func:`_claims`).

    Raises:
        WorkbenchError: no knob of that name, or no round.
    """
    if rounds < 1:
        raise WorkbenchError(f"--rounds: {rounds} rounds measure nothing; use 1 or more")
    for name in only or ():
        check_known("--only", name, KNOBS)
    knobs = {name: knob for name, knob in KNOBS.items() if only is None or name in only}
    base = plain(recipe, KNOBS)
    among = contenders(base, knobs)
    skipped = among.skipped
    rows: dict[str, dict[str, Any]] = {}
    relative: dict[str, list[float]] = {PLAIN: [1.0] * rounds}
    began = time.monotonic()
    changed = {PLAIN: base, **{name: base.with_(execution=changes) for name, changes in among.changes.items()}}
    entrants = {name: Entrant(TRAINER, {"recipe": each.to_dict()}) for name, each in changed.items()}
    for held in beside(PLAIN, entrants, rounds=rounds, steps=steps, warmup=warmup):
        skipped |= held.failed
        for name in held.ready:
            # Of the plain engine, the first group's readings stand for all.
            if name not in rows:
                rows[name] = _row(held, name, among)
        rates = held.rates()
        relative |= {name: [a / b for a, b in zip(each, rates[PLAIN], strict=True)] for name, each in rates.items()}
        if time.monotonic() - began > seconds:
            skipped |= dict.fromkeys(entrants.keys() - rows.keys() - skipped.keys(), f"no time left, {seconds:.0f} s")
            break
    memory = {name: [float(row["memory_bytes"])] for name, row in rows.items()}
    chains = {which: [link for link in chain if link[1] in rows] for which, chain in among.chains.items()}
    return {
        "protocol": f"{rounds} alternating rounds of {steps} steps after {warmup} warm-up steps, one process each",
        "recipe": recipe.to_dict(),
        "knobs": {name: {**knob._asdict(), "needs": dict(knob.needs)} for name, knob in knobs.items()},
        "contenders": rows,
        "skipped": skipped,
        "waterfall": {
            "tokens_per_second": waterfall(relative, chains["tokens_per_second"]),
            "memory_bytes": waterfall(memory, chains["memory_bytes"]),
        },
        "verdicts": _claims(chains["tokens_per_second"], relative, knobs),
    }


def _row(held: SpeedRounds, name: str, among: Contenders) -> dict[str, Any]:
    ready, rates = held.ready[name], held.rates()[name]
    ours, theirs = (held.losses(each)[:COMPARED_STEPS] for each in (name, PLAIN))
    difference, tolerance = max(abs(a - b) for a, b in zip(ours, theirs, strict=True)), among.tolerances.get(name, 0.0)
    return {
        "execution": among.changes.get(name, {}),
        "tokens_per_second": spread(rates),
        "faster_than_plain": ratios(rates, held.rates()[PLAIN]),
        **{key: ready[key] for key in ("memory_bytes", "compile_wall_seconds", "attention", "threads")},
        "readings": rates,
        "losses": ours,
        "loss_difference": difference,
        "tolerance": tolerance,
        "within": difference <= tolerance,
    }


def _claims(
    chain: list[tuple[str, str]], relative: Mapping[str, list[float]], knobs: Mapping[str, Knob]
) -> list[dict[str, Any]]:
    """Return all that is for speed beside eager fp32 and beside eager at its own precision,
    with and without the layout.

    The layout: labelled positions only and no padding. Without it on either side, only execution is compared.
    """
    eager = [name for what, name in chain if not what or knobs[what.split(":")[0]].aim == "layout"][-1]
    found = {PLAIN: ("plain fp32", 2.0)}
    # Without knobs of the layout, eager of the same layout is plain.
    found.setdefault(eager, ("eager fp32 of the same layout", 2.0))
    after = next(((what, name) for what, name in chain if what.startswith("precision:")), None)
    if after is not None and (alone := after[0].replace(": ", "=")) in relative:
        found.setdefault(alone, ("plain at the same precision", 1.45))
    # Only where nothing but the precision was added since.
    if after is not None and chain.index(after) == [name for _, name in chain].index(eager) + 1:
        found.setdefault(after[1], ("eager of the same precision and layout", 1.45))
    last = chain[-1][1]
    return [
        verdict(f"all for speed beside {words}", ratios(relative[last], relative[name])["median"], ">=", target, "x")
        for name, (words, target) in found.items()
    ]


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    return measure(recipe_of(options), only=options.only, **rounds_of(options))
