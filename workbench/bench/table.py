"""The table of benchmarks: what each measures, its options, what it costs, and which of its numbers are shown.

A benchmark is a spec here and a module of its name, whose ``measured`` gives the readings; the rest is done by
:mod:`workbench.bench.harness`. Nothing here loads torch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

Options = argparse.Namespace


class Rows(NamedTuple):
    """Describe a table, or several of one form.

    Attributes:
        path: of its rows in the result, an object by name or a list; empty for the result as a single row. ``*``
            stands for every key, each with a table of its own.
        columns: paths in a row, with spaces between; ``.`` for a row that is a value itself; all its fields when empty.
            A column without a value is left out. ``+`` or ``-`` before a path makes its numbers scores of the result
            file, of which higher or lower ones are better. ``:share``, ``:x`` or ``:nats`` after it is their unit,
            where the name does not end in one (``step_ms``).
        title: with ``{key}`` for the last ``*``, and the fields of what holds the rows.
    """

    path: str
    columns: str = ""
    title: str = ""


@dataclass(frozen=True)
class Benchmark:
    """Describe a benchmark.

    Args:
        purpose: what it measures, in a line.
        cost: how long it takes with its own defaults on two cores.
        tables: what of its result is shown, and which numbers are scores.
        drawn: titles of waterfalls by their path in the result; each is shown, and becomes a picture beside the file.
        preset: the default of ``--preset``, which comes with ``--set``; None for neither.
        rounds, steps, warmup: defaults of these options; None leaves one out.
        options: all others by name: default and help, a whole number where the default is None; or settings of
            ``add_argument``.
        folder: default of ``--out``, where each start leaves a new file.
        file: default of ``--out`` of a benchmark that fills one file and goes on where it was stopped.
        saved_as: the benchmark's name in its file; its own where empty.
        here: measures in this process, where torch alone can still ask for huge pages.
    """

    purpose: str
    cost: str
    tables: tuple[Rows, ...]
    drawn: Mapping[str, str] = field(default_factory=dict)
    preset: str | None = None
    rounds: int | None = None
    steps: int | None = None
    warmup: int | None = None
    options: Mapping[str, tuple[Any, str] | Mapping[str, Any]] = field(default_factory=dict)
    folder: str = "out/bench"
    file: Callable[[Options], str] | None = None
    saved_as: str = ""
    here: bool = False


ONLY = {"nargs": "+", "metavar": "NAME", "help": "these only"}
SET = {"action": "append", "default": [], "metavar": "PATH=VALUE", "help": "change the recipe"}
AT_ONCE = (2, "runs side by side, each on a core of its own")
COSTS = "error -ratio:x -token_ratio:x flops_ratio:x by_segment:x transitions transition_steps"
PUBLISHED = Path(__file__).parents[2] / "docs" / "results" / "scale-published.json"
LADDERS = {
    "causal": "docs/results/ladder-150.json", "workshop": "ladder-workshop.json",
    "masked": "docs/results/ladder-masked.json", "bert_base": "docs/results/ladder-gpu.json",
}  # fmt: skip

BENCHMARKS: dict[str, Benchmark] = {
    "peers": Benchmark(
        "tokens/s beside transformers' Trainer: the same maths, our architecture, which factor comes from what", "1 h",
        (
            Rows("contenders", "attention tokens_per_second mfu:share memory_bytes compile_wall_seconds"),
            Rows("ratios", "ours theirs +.:x target:x", "ratios within rounds"),
        ),
        {"waterfall": "Tokens per second beside transformers' Trainer at its defaults"},
        preset="bert_tiny", rounds=7, steps=4, warmup=4,
        options={"--curve-steps": (24, "steps of the loss curves; 0 leaves them out"), "--only": ONLY},
    ),
    "ladder": Benchmark(
        "seconds to one held-out score, from transformers' Trainer to the best recipe, rung by rung", "a night",
        (
            Rows("by_arm", "-seconds steps lr above_target:nats +times_faster_than_default:x "
                 "+times_faster_than_tuned:x",
                 "to {target:.3f} nats; word frequencies: {unigram_entropy:.3f}"),
            Rows("left_out", "what seconds to_beat", "left out"),
        ),
        {"waterfall": "Seconds to the default Trainer's score"}, file=lambda options: LADDERS[options.track],
        options={
            "--track": {"choices": [*LADDERS], "default": "causal", "help": "where it begins (%(default)s)"},
            "--gpu": {"action": "store_const", "dest": "track", "const": "bert_base", "help": "the track bert_base"},
            "--steps": (None, "of the default Trainer, whose end is the score to reach (the track's own)"),
            "--seeds": (6, "fresh ones, 1 to N"), "--at-once": AT_ONCE, "--set": SET,
        },
    ),
    "execution": Benchmark(
        "what each knob of the native engine gives: alone, added up, all together", "1 h",
        (
            Rows("contenders", "tokens_per_second +faster_than_plain:x -memory_bytes loss_difference:nats "
                               "tolerance:nats within compile_wall_seconds"),
            Rows("skipped", ".", "not compared"),
        ),
        {"waterfall.tokens_per_second": "Tokens per second, knob by knob",
         "waterfall.memory_bytes": "Peak memory, knob by knob"},
        preset="fast", rounds=7, steps=8, warmup=4, options={"--only": ONLY},
    ),
    "plans": Benchmark(
        "what executions `auto` and `memory` reach beside the defaults, over varied recipes", "1 h",
        (Rows("plans.*", "plan.knobs plan.note plan.time:x -time:x memory_bytes plan.seconds", "{key}"),),
        rounds=5, steps=6, warmup=3,
        options={"--kinds": {"nargs": "+", "default": ["auto", "memory"], "choices": ["auto", "memory"]},
                 "--only": ONLY},
    ),
    "study": Benchmark(
        "every method against its baseline: tuned alike, raced over fresh seeds at equal time", "nights",
        (Rows("shown.*", "", "{key}"), Rows("sections.*.refused", ".", "not in the track of {key}")),
        file=lambda options: "docs/results/study.json",
        options={
            "--track": {"default": "causal", "metavar": "causal|large_batch|masked", "help": "(%(default)s)"},
            "--only": {"action": "append", "default": [], "metavar": "SECTION", "help": "repeatable; all by default"},
            "--steps": (None, "of the baseline (the track's own)"), "--seeds": (10, "at most so many, 4, 6 or 10"),
            "--at-once": AT_ONCE, "--page": (Path("docs/methods.md"), "Markdown page of all verdicts"),
            "--check": (False, "train nothing; exit with 3 where evidence is missing"),
        },
    ),
    "methods": Benchmark(
        "what each method saves per step and per token", "1 h",
        (Rows("claims.arms", COSTS, "claims"), Rows("methods.arms", COSTS, "methods"),
         Rows("", "claims.busy methods.busy", "wall seconds per second of work, by group")),
        rounds=16, steps=8, folder="docs/results", saved_as="methods-speed",
        options={
            "--only": {"action": "append", "default": [], "metavar": "NAME",
                       "help": "claims, methods; or methods, or their sections"},
            "--gpu": (False, "sizes for a GPU, on it (not yet run on a GPU)"),
        },
    ),
    "demo": Benchmark(
        "what `make demo` reaches, seed by seed", "15 min",
        (Rows("runs", "recipe seed state steps heldout_loss:nats learned"),
         Rows("", "+gap_nats.mean gap_nats.spread unigram_entropy:nats", "below word frequencies")),
        folder="docs/results",
        options={"--seeds": ([0, 1, 2], "one pair of runs each"), "--seconds": (120.0, "training seconds of each run"),
                 "--runs": {"type": Path, "help": "the runs folder; else $WORKBENCH_RUNS, else ./runs"}},
    ),
    "presets": Benchmark(
        "learning rate and warm-up of every preset, swept at its own budget", "hours",
        (Rows("best", "lr warmup -loss:nats", "the best"), Rows("runs", "loss:nats steps wall_seconds", "every run")),
        file=lambda options: "docs/results/presets.json",
        options={"names": {"nargs": "*", "metavar": "NAME", "help": "presets; those of `fast`'s size when empty"},
                 "--set": SET},
    ),
    "optimizer_steps": Benchmark(
        "what a step of every optimizer costs beside fused AdamW's", "15 min",
        (Rows("results.*.optimizers", "wall_ms -ratio.cpu:x ratio.cpu.quiet:x ratio.wall:x",
              "{recipe[name]}: {parameters:,} parameters, {threads} thread(s)"),),
        rounds=30, here=True,
        options={
            "--preset": {"action": "append", "help": "whose shapes; may be repeated (bert_tiny and bert_base)"},
            "--layers": (None, "cut or stretch to this many layers (bert_base: 2 by default)"),
            "--optimizers": {"nargs": "+", "metavar": "KIND", "help": "only these; all by default"},
            "--threads": ([1, 2], "of torch"), "--device": {"choices": ["cpu", "cuda"], "default": "cpu"},
        },
    ),
    "sampled_words": Benchmark(
        "what a sampled softmax saves per step at a large vocabulary, and what it costs in score", "15 min",
        (Rows("arms", "-seconds +speed-up:x steps losses:nats", "by number of sampled words; 0: all"),),
        rounds=7, steps=10, here=True,
        options={
            "--objective": {"default": "causal", "choices": ["causal", "masked"]}, "--vocabulary": (30_528, "words"),
            "--train": (0, "steps of the full softmax in the race; 0: no race"), "--seeds": (1, "of the race"),
            "--set": SET,
        },
    ),
    "adasum": Benchmark(
        "held-out loss at equal tokens as the batch grows, with AdaSum and without", "2 h",
        (Rows("arms", "rows rate losses:nats -mean_loss:nats beside_the_mean_of_gradients:nats"),),
        options={
            "--optimizer": {"default": "adamw", "choices": ["adamw", "lamb", "lans"], "help": "(%(default)s)"},
            "--rows": (8, "of 64 tokens in the smallest batch"), "--times": ([2, 4, 8], "multiples, powers of two"),
            "--tokens": (200_000, "of every run"), "--rates": ([1e-3, 2e-3, 4e-3], "tried first"),
            "--seeds": (3, "of every arm"), "--set": SET,
        },
    ),
    "telemetry": Benchmark(
        "what all telemetry costs, as a share of step time", "5 min",
        (Rows("", "-overhead:share interval:share off_ms scalars_ms layers_ms"),),
        preset="bert_tiny", rounds=60, steps=10, here=True,
    ),
    "forecast": Benchmark(
        "how far forecasts of time and memory are off, over varied recipes", "1 h",
        (
            Rows("runs", "error measured.seconds forecast.seconds time_error:share inside measured.memory_bytes "
                         "forecast.memory_bytes measured_bytes forecast_bytes memory_error:share"),
            Rows("summary", "recipes inside_the_band -time_error.median:share time_error.worst:share "
                            "-memory_error.median:share memory_error.worst:share", "in the median and at worst"),
        ),
        file=lambda options: f"docs/results/forecast{'' if options.runs is None else '-runs'}.json",
        options={
            "--only": ONLY, "--eager": (False, "leave out what has to be compiled"),
            "--again": (False, "measure again what the file holds, calibration included"),
            "--steps": (12, "steps of each"), "--threads": (1, "CPU threads of each"),
            "--runs": (None, "memory alone: of N whole runs of each of a few recipes"),
        },
    ),
    "processes": Benchmark(
        "one process beside two on this machine, beside its forecast", "15 min",
        (Rows("arms", "step_ms waited_ms sent_mib"),
         Rows("", "+strong:x +weak:share link_gb_per_s forecast_ms error:share", "two processes")),
        preset="fast", rounds=3, steps=40, warmup=10,
    ),
    "plain_ddp": Benchmark(
        "steps of two processes beside torchrun's with torch's own DDP, in turns", "5 min",
        (Rows("", "step_ms -undisturbed:x by_round:x", "ours beside plain DDP"),),
        preset="fast", rounds=12, steps=10,
    ),
    "places": Benchmark(
        "steps of two processes under Ray beside torchrun's agent, in turns", "15 min",
        (Rows("step_ms", "."), Rows("", "-ratio:x cores_of_an_idle_cluster", "Ray beside torchrun's agent")),
        preset="fast", rounds=4, steps=40, warmup=10,
        options={"--address": ("auto", "HOST:PORT of the Ray cluster")},
    ),
    "parallel_memory": Benchmark(
        "memory of each process under every way of parallel training, beside its formula", "5 min",
        (Rows("arms", "computed_mib -measured_mib error:share"),),
        preset="fast", steps=3, saved_as="parallel-memory",
    ),
    "scale": Benchmark(
        "how far forecasts for many devices are off published results", "seconds",
        (
            Rows("points", "system round batch step_ms forecast_ms error:share alone_ms alone_error:share"),
            Rows("runs", "system minutes forecast_minutes error:share", "whole trainings, from one"),
            Rows("summary", "-median:share worst:share system count", "error from others, and from one alone"),
        ),
        options={"--points": (PUBLISHED, "published results"),
                 "--overlap": (0.0, "share of the sending that hides behind the backward pass, in every forecast")},
    ),
    "gpu": Benchmark(
        "all that a GPU is asked, in ten minutes; also written `workbench bench --gpu`", "10 min of a GPU",
        (Rows("parts", "state seconds +result.tokens_per_second +result.mfu:share "
                       "+result.share_of_product:share "
                       "result.memory_bytes error"),),
        file=lambda options: "out/bench/gpu.json",
        options={
            "parts": {"nargs": "*", "metavar": "PART", "help": "all by default: data, bert_base_512, bert_large_512, "
                      "tiny_128, tiny_128_large_batch, lans, execution"},
            "--device": {"choices": ["cuda", "cpu"], "default": "cuda"},
            "--scale": (1.0, "factor on the size of every model and batch"), "--steps": (20, "timed, in every round"),
            "--minutes": (9.5, "for all parts together"), "--set": SET,
        },
    ),
    "startup": Benchmark(
        "seconds until `import workbench` and `workbench runs` answer, and from a launch to its first point", "15 min",
        (Rows("seconds", "-."), Rows("first_points", "-seconds stages", "from a launch to its first point")),
        options={"--repeats": (10, "of each command"), "--launches": (3, "of each kind")},
    ),
}  # fmt: skip
"""By name."""
