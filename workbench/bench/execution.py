"""Measure each knob of the native engine: alone, added one by one, and all together, on one recipe.

Tokens per second, peak memory, and the loss of the first steps beside eager fp32. Every contender is a fresh process;
they take turns in groups, each with the plain engine among them, so that ratios are paired within rounds.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from rich.console import Console
from rich.table import Table

from workbench.base.errors import WorkbenchError, check_known
from workbench.bench.contender import TRAINER
from workbench.bench.harness import ONLY, Bench, Options, recipe_of, rounds_of
from workbench.bench.result import spread
from workbench.bench.rounds import Entrant, SpeedRounds, draw, ratios, take_rounds, waterfall
from workbench.bench.rounds import table as waterfall_table
from workbench.choices.execution import Execution, Native
from workbench.recipes.recipe import Recipe

EXACT, ROUNDED = 2e-3, 5e-2
"""Nats by which the loss of a step may differ from eager fp32: other order of sums, and fewer digits."""
COMPARED_STEPS = 20
"""Steps whose losses are compared."""
AT_ONCE = 6
"""Contenders alive at the same time, the plain one among them; each holds a model and a copy of torch."""
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
    "recompute": Knob("off", ("attention", "activation", "dropout", "operations", "layers"), "memory", EXACT),
}
"""By name, in the order in which they are added. A knob that is not here is compared as :func:`declared` says."""


def declared() -> tuple[dict[str, Knob], dict[str, str]]:
    """All knobs of the native engine, those of :data:`KNOBS` first; and why others are left out.

    Of a knob without a line in :data:`KNOBS`, the default is plain and every other value that its type names is
    compared, for memory's sake.
    """
    fields = {name: each for name, each in Native.model_fields.items() if name not in (*Execution.model_fields, "kind")}
    found: dict[str, Knob] = {}
    left_out = {}
    for name in sorted(fields, key=lambda name: list(KNOBS).index(name) if name in KNOBS else len(KNOBS)):
        each = fields[name]
        named = (False, True) if each.annotation is bool else get_args(each.annotation)
        if name not in KNOBS and each.annotation is not bool and get_origin(each.annotation) is not Literal:
            left_out[name] = "its type names no values; give it a line in KNOBS of workbench/bench/execution.py"
            continue
        knob = KNOBS.get(name) or Knob(each.default, (), "memory", ROUNDED)
        # First those that the line does not mention: the last one is for the sum, and the line decides about that.
        others = tuple(value for value in named if value not in (knob.plain, *knob.values))
        found[name] = knob._replace(values=(*others, *knob.values))
    return found, left_out


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
    """The recipe, eager and in fp32, everything else of the engine off."""
    return recipe.with_(execution={"kind": "native", **{name: knob.plain for name, knob in knobs.items()}})


def contenders(recipe: Recipe, knobs: Mapping[str, Knob]) -> Contenders:
    """Each value alone, and the knobs added up: layout and speed for tokens/s, the others for memory, then all.

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
        with reasons; ``waterfall`` of tokens per second and of memory; ``claims`` (see :func:`_claims`).

    Raises:
        WorkbenchError: no knob of that name, or no round.
    """
    if rounds < 1:
        raise WorkbenchError(f"--rounds: {rounds} rounds measure nothing; use 1 or more")
    knobs, skipped = declared()
    for name in only or ():
        check_known("--only", name, knobs)
    knobs = {name: knob for name, knob in knobs.items() if only is None or name in only}
    base = plain(recipe, declared()[0])
    among = contenders(base, knobs)
    skipped |= among.skipped
    rows: dict[str, dict[str, Any]] = {}
    relative: dict[str, list[float]] = {PLAIN: [1.0] * rounds}
    began = time.monotonic()
    for group in _groups([*among.changes]):
        if time.monotonic() - began > seconds and rows:
            skipped |= dict.fromkeys(group, f"no time was left after {seconds:.0f} s")
            continue
        entrants = {PLAIN: Entrant(TRAINER, {"recipe": base.to_dict()})}
        for name in group:
            entrants[name] = Entrant(TRAINER, {"recipe": base.with_(execution=among.changes[name]).to_dict()})
        held = take_rounds(entrants, rounds=rounds, steps=steps, warmup=warmup, all_needed=False)
        skipped |= held.failed
        if PLAIN not in held.ready:
            raise WorkbenchError(f"the plain engine cannot run this recipe here: {held.failed[PLAIN]}")
        for name in held.ready:
            # Of the plain engine, the first group's readings stand for all.
            if name not in rows:
                rows[name] = _row(held, name, among)
        rates = held.rates()
        relative |= {name: [a / b for a, b in zip(each, rates[PLAIN], strict=True)] for name, each in rates.items()}
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
        "claims": _claims(chains["tokens_per_second"], relative, knobs),
    }


def _groups(names: list[str]) -> list[list[str]]:
    return [names[first : first + AT_ONCE - 1] for first in range(0, max(1, len(names)), AT_ONCE - 1)]


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
    """All that is for speed beside eager fp32 and beside eager at its own precision, with and without the layout.

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
        {"beside": beside, "contender": name, "target": target, **ratios(relative[last], relative[name])}
        for name, (beside, target) in found.items()
    ]


def table(result: Mapping[str, Any]) -> Table:
    """One row per contender of a result of :func:`measure`."""
    found = Table(
        "execution", "tokens/s (median)", "beside plain", "range", "GiB", "loss off by", "allowed", "compiled in"
    )
    for name, row in result["contenders"].items():
        beside, off = row["faster_than_plain"], f"{row['loss_difference']:.5f}{'' if row['within'] else ' too far'}"
        found.add_row(
            name, f"{statistics.median(row['readings']):,.0f}", f"{beside['median']:.2f}x",
            f"{beside['min']:.2f} to {beside['max']:.2f}", f"{row['memory_bytes'] / 2**30:.2f}", off,
            f"{row['tolerance']:g}", f"{row['compile_wall_seconds']:.0f} s",
        )  # fmt: skip
    return found


def _measured(options: Options) -> dict[str, Any]:
    return measure(recipe_of(options), only=options.only, **rounds_of(options))


def _show(result: Mapping[str, Any], console: Console, path: Path) -> None:
    console.print(table(result))
    for name, why in result["skipped"].items():
        console.print(f"not compared: {name}: {why}", highlight=False)
    for claim in result["claims"]:
        console.print(f"all for speed beside {claim['beside']}: {claim['median']:.2f}x (asked {claim['target']:g}x)")
    for which, title in (("tokens_per_second", "Tokens per second"), ("memory_bytes", "Peak memory")):
        found, title = result["waterfall"][which], f"{title}, {result['recipe']['name']}, knob by knob"
        console.print(waterfall_table(found, title))
        if found["steps"]:
            console.print(f"drawn {draw(found, title, path.with_suffix(f'.{which}.png'))}")


main = Bench(
    "execution", __doc__, _measured, _show, preset="fast", rounds=7, steps=8, warmup=4, options={"--only": ONLY}
).main
