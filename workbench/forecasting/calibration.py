"""What this machine does in a second: a few kernels and a few small models, measured once and remembered.

Measured in a process of its own, with the trainer's number of threads: a notebook's kernel keeps its threads, and never
touches a GPU.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import torch
from pydantic import ValidationError

from workbench.choices.choice import registry
from workbench.choices.data.data import cache_folder
from workbench.choices.execution.native import PRECISIONS
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.clocks import thread_clock
from workbench.errors import WorkbenchError
from workbench.forecasting.compiled_rates import compiled_rates
from workbench.forecasting.fitted_rates import fit_rates
from workbench.forecasting.pricing import MAPPED_BYTES
from workbench.forecasting.rates import FusedRates, Mode, OptimizerRates, Rates, mode_of
from workbench.huge_pages import HUGE_PAGES
from workbench.ops.attention import choose_attention, device_words
from workbench.runs.folder import read_json, write_json

__all__ = ["Mode", "Rates", "calibrated", "measure", "mode_of"]

VERSION = 8
"""Part of the key: raise it whenever what is measured, or what it means, changes."""
MOVED_BYTES = {"cpu": 1 << 24, "cuda": 1 << 28}
"""Of the tensors that bandwidth is measured on: too many for a cache."""
LENGTHS = (64, 128, 512)
SIDES = (64, 160, 384)
"""Of the matrices on which optimizers are measured."""
TABLE = (16384, 256)
"""Another: with its gradient and state too large for a cache."""
DEAR_SECONDS = 0.2
"""An optimizer that takes longer for matrices of one side is not measured on those of the next."""
TIMEOUT_SECONDS = 600.0
FUSED = "fused"
"""Argument of the child process that times compiled code alone."""


def calibrated(mode: Mode, say: Callable[[str], None] | None = None) -> Rates:
    """The rates of this machine, measured now unless they are known for this device, mode and torch.

    A file that is damaged, or was measured by another torch or on another device, is measured again.

    Args:
        mode: see :class:`Mode`.
        say: told before something is measured.

    Raises:
        WorkbenchError: the measuring process failed; its last words are quoted.
    """
    environment = _environment(mode)
    key = [
        VERSION, device_words(torch.device(mode.device)), *mode, torch.__version__, sorted(registry("optimizer")),
        *(environment[name] for name in HUGE_PAGES),
    ]  # fmt: skip
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]
    file = cache_folder() / "forecast" / f"{digest}.json"
    known = read_json(file, {})
    if isinstance(known, dict) and known.get("key") == key:
        try:
            return Rates.model_validate(known.get("rates"))
        except ValidationError:
            pass  # damaged: measured again
    if say is not None:
        say("measuring this machine, once")
    rates = measured(mode)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, {"key": key, "rates": rates.model_dump(mode="json")}, durable=False)
    return rates


def measured(mode: Mode) -> Rates:
    """The rates of this machine, measured now in processes of their own, whatever is remembered.

    Compiled code is timed beside the rest, where there is a core for it: its compiler takes as long as everything else.

    Raises:
        WorkbenchError: a measuring process failed; its last words are quoted.
    """
    if not (mode.compiled and mode.device == "cpu" and (os.cpu_count() or 1) > mode.threads):
        return Rates.model_validate_json(_said_by_child(mode))
    began = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        fused = pool.submit(_said_by_child, mode, FUSED)
        rates = Rates.model_validate_json(_said_by_child(mode._replace(compiled=False)))
        fused_rates = FusedRates.model_validate_json(fused.result())
    return rates.model_copy(update={"fused": fused_rates, "seconds": round(time.perf_counter() - began, 2)})


def _environment(mode: Mode) -> dict[str, str]:
    # A trainer's: what is measured is what it will have.
    return {**HUGE_PAGES, **os.environ, "OMP_NUM_THREADS": str(mode.threads)}


def _said_by_child(mode: Mode, *part: str) -> str:
    command = [sys.executable, "-m", "workbench.forecasting.calibration", json.dumps(mode), *part]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=_environment(mode), check=False
        )
    except subprocess.TimeoutExpired:
        raise WorkbenchError(f"measuring this machine took more than {TIMEOUT_SECONDS:g} s; is it very busy?") from None
    if done.returncode:
        tail = "\n".join(done.stderr.splitlines()[-8:])
        raise WorkbenchError(f"measuring this machine failed:\n{tail}")
    return done.stdout.splitlines()[-1]


def measure(mode: Mode) -> Rates:
    """Measure everything here and now, in this process, with its present threads (about ten seconds on a CPU)."""
    began = time.perf_counter()
    device, dtype = torch.device(mode.device), PRECISIONS[mode.precision]
    torch.manual_seed(0)
    rates = Rates(
        device=device_words(device).partition(" (")[0],
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        kernels={},
        call=0.0,
        step=0.0,
        attention_choice={
            str(length): choose_attention(device, dtype, 16, length, 4, 64, False, None) for length in LENGTHS
        },
        optimizers={kind: _optimizer(kind, device) for kind in registry("optimizer")},
        moved=_moved(device),
        page=_page(device),
        memory_bytes=_memory(device),
        reference=0.0,
    )
    rates = fit_rates(rates, mode)
    if mode.compiled:
        rates = rates.model_copy(update={"fused": compiled_rates(device, dtype)})
    return rates.model_copy(update={"seconds": round(time.perf_counter() - began, 2)})


def seconds_of(
    work: Callable[[], Any],
    device: torch.device,
    least: float = 0.03,
    turns: int = 3,
    of: Callable[[list[float]], float] = min,
) -> float:
    """Seconds of one call of ``work``.

    Args:
        work: what is timed; called once before.
        device: waited for around every call.
        least: seconds to go on for, at least.
        turns: calls, at least.
        of: what is made of the readings: the least of a kernel's, since other work on the machine only ever adds.
    """
    clock = thread_clock(device)
    work()
    readings: list[float] = []
    began = time.perf_counter()
    while len(readings) < turns or time.perf_counter() - began < least:
        _wait(device)
        start = clock()
        work()
        _wait(device)
        readings.append(clock() - start)
    return of(readings)


def _moved(device: torch.device) -> float:
    """Bytes per second of reading gradients for their norm."""
    numbers = torch.randn(MOVED_BYTES[device.type] // 4, device=device)
    return 4 * numbers.numel() / seconds_of(lambda: torch.linalg.vector_norm(numbers), device)


def _page(device: torch.device) -> float:
    """Seconds per byte that writing to a large tensor takes longer when its memory is new."""
    if device.type != "cpu":
        return 0.0  # its memory is kept
    numbers = torch.randn(MAPPED_BYTES // 2, device=device)
    out = torch.empty_like(numbers)
    new = seconds_of(lambda: numbers * 1.5, device)
    known = seconds_of(lambda: torch.mul(numbers, 1.5, out=out), device)
    return max(0.0, (new - known) / (4 * numbers.numel()))


def _optimizer(kind: str, device: torch.device) -> OptimizerRates:
    choice = registry("optimizer")[kind]()
    assert isinstance(choice, OptimizerChoice)
    matrix: list[tuple[float, float]] = []
    for side in SIDES:
        seconds = _step(choice, "matrix", [(side, side)] * 2 + [(4 * side, side)], device)
        matrix.append((float(side), seconds / (6 * side**2)))
        if seconds > DEAR_SECONDS:
            break
    table = _step(choice, "embedding", [TABLE], device) / math.prod(TABLE)
    vector = _step(choice, "vector", [(256,)] * 8, device) / 8
    return OptimizerRates(matrix=tuple(matrix), embedding=table, vector=vector)


def _step(choice: OptimizerChoice, role: str, shapes: Sequence[tuple[int, ...]], device: torch.device) -> float:
    parameters = [torch.nn.Parameter(torch.randn(*shape, device=device) * 0.02) for shape in shapes]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter) * 1e-3
    decays = role != "vector"
    group = {
        "params": parameters, "names": [str(i) for i in range(len(shapes))], "weight_decay": 0.01 * decays,
        "decays": decays, "role": role, "parts": 1, "transposed": False,
    }  # fmt: skip
    optimizer = choice.build([group], device)
    # Whatever comes back every so many steps is to be met as often as it comes.
    period = int(getattr(choice, "every", 1)) if role == "matrix" else 1
    if period == 1:
        return seconds_of(optimizer.step, device, least=0.01)
    return seconds_of(optimizer.step, device, least=0.01, turns=period, of=lambda each: sum(each) / len(each))


def _memory(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return int(psutil.virtual_memory().total)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> None:
    """Child process: ``python -m workbench.forecasting.calibration '["cpu", 1, "bf16", false]'``; of compiled code
    alone with ``fused`` behind it."""
    mode = Mode(*json.loads(sys.argv[1]))
    torch.set_num_threads(mode.threads)
    if sys.argv[2:] == [FUSED]:
        print(compiled_rates(torch.device(mode.device), PRECISIONS[mode.precision]).model_dump_json())
    else:
        print(measure(mode).model_dump_json())


if __name__ == "__main__":
    main()
