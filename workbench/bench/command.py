"""``workbench bench NAME``: which benchmarks there are."""

from __future__ import annotations

import importlib
import os

from workbench.base.errors import check_known
from workbench.base.heap_settings import TORCH_HUGE_PAGES, heap_settings

BENCHES = {
    "peers": "tokens/s beside transformers' Trainer: the same maths, our architecture, which factor comes from what",
    "ladder": "seconds to one held-out score, from transformers' Trainer to the best recipe, rung by rung",
    "execution": "what each knob of the native engine gives: alone, added up, all together",
    "plans": "what executions `auto` and `memory` reach beside the defaults, over varied recipes",
    "study": "every method against its baseline: tuned alike, raced over fresh seeds at equal time",
    "methods": "what each method saves per step and per token",
    "demo": "what `make demo` reaches, seed by seed",
    "presets": "learning rate and warm-up of every preset, swept at its own budget",
    "optimizer_steps": "what a step of every optimizer costs beside fused AdamW's",
    "sampled_words": "what a sampled softmax saves per step at a large vocabulary, and what it costs in score",
    "adasum": "held-out loss at equal tokens as the batch grows, with AdaSum and without",
    "telemetry": "what all telemetry costs, as a share of step time",
    "forecast": "how far forecasts of time and memory are off, over varied recipes",
    "processes": "one process beside two on this machine, beside its forecast",
    "plain_ddp": "steps of two processes beside torchrun's with torch's own DDP, in turns",
    "places": "steps of two processes under Ray beside torchrun's agent, in turns",
    "parallel_memory": "memory of each process under every way of parallel training, beside its formula",
    "scale": "how far forecasts for many devices are off published results",
    "gpu": "all that a GPU is asked, in ten minutes; also written `workbench bench --gpu`",
    "startup": "seconds until `import workbench` and `workbench runs` answer, and from a launch to its first point",
}

HERE = ("optimizer_steps", "sampled_words", "telemetry")
"""Those that measure in this process, where torch alone can still ask for huge pages."""


def main(argv: list[str]) -> int:
    """Run one benchmark; returns the exit code.

    Raises:
        WorkbenchError: no benchmark of that name.
    """
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: workbench bench NAME [options]\n" + "\n".join(f"  {n:<16} {text}" for n, text in BENCHES.items()))
        return 0 if argv else 2
    bench = "gpu" if argv[0] == "--gpu" else argv[0]
    check_known("bench", bench, BENCHES)
    # As trainers have it, for every contender alike. The C library of this process has begun without.
    os.environ.update(heap_settings(os.environ))
    if bench in HERE:
        os.environ.update(TORCH_HUGE_PAGES | os.environ)
    # By name and only when asked for: the list of benchmarks must not load torch.
    code: int = importlib.import_module(f"workbench.bench.{bench}").main(argv[1:])
    return code
