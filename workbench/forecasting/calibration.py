"""Rates of this machine, from a few kernels and small models: measured once and remembered.

Measured in a process of its own, with the trainer's number of threads: a notebook's kernel keeps its threads, and never
touches a GPU.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psutil
import torch
from filelock import FileLock, Timeout
from pydantic import ValidationError

from workbench.base.cache_folder import cache_folder
from workbench.base.errors import WorkbenchError
from workbench.base.heap_settings import NAMES, heap_settings
from workbench.choices.architectures.pre_ln import PreLN
from workbench.choices.choice import registry
from workbench.choices.execution.attention_probe import attention_benchmark
from workbench.choices.execution.hardware import Mode
from workbench.choices.optimizers.layerwise import layerwise_path
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.forecasting.kernel_rates import kernel_rates
from workbench.forecasting.rates import OptimizerRates, Rates
from workbench.ops.remembered import FOLDER, contradiction, device_name, fastest, recalled, remember, subject_of
from workbench.ops.timing import Sample, measure, timed
from workbench.training.machine import product_benchmark

NAME, VERSION = "forecast", 16
"""Name and version of the measurement; raise the version whenever what is measured, or what it means, changes."""
RETRY_SECONDS = 600.0
"""A measurement of a slow moment is not repeated sooner: the moment may last."""
LENGTHS = (64, 128, 512)
SIDES = (64, 160, 384)
"""Sides of the matrices on which optimizers are measured."""
TABLE = (16384, 256)
"""An embedding: with its gradient and state too large for a cache."""
DEAR_SECONDS = 0.2
"""An optimizer that takes longer at one side is not measured at the next."""
TIMEOUT_SECONDS = 600.0
_POLL_SECONDS = 0.2
POLL_SECONDS = 0.3
"""Between two questions whether a measurement is still wanted."""


def calibrated(mode: Mode, say: Callable[[str], None] | None = None, poll: Callable[[], None] | None = None) -> Rates:
    """Return the rates of this machine in a mode: remembered, or measured now.

    They are measured again if their file is damaged, or if a run has since found a matrix product clearly faster than
    it was when they were measured.

    Args:
        say: called with one line before a measurement.
        poll: called several times a second during one; what it raises ends it, with its process.

    Raises:
        WorkbenchError: the measuring process failed; the end of its stderr is quoted.
    """
    # Of single kernels: they serve recipes that are compiled, too.
    mode, say, poll = mode._replace(compiled=False), say or (lambda line: None), poll or (lambda: None)
    known, _ = _remembered(mode)
    if known is None:
        with _alone(say, poll):
            # Whoever was waited for may have measured it.
            known, line = _remembered(mode)
            if known is None:
                say(line)
                known = _kept(mode, measured(mode, poll))
    return known


def measured_again(mode: Mode, say: Callable[[str], None]) -> Rates:
    """Return the rates of this machine, measured now and remembered in place of those that were.

    Args:
        say: called with one line before.

    Raises:
        WorkbenchError: the measuring process failed; the end of its stderr is quoted.
    """
    mode = mode._replace(compiled=False)
    with _alone(say, lambda: None):
        say("measuring this machine again: about 20 s, longer where others work")
        return _kept(mode, measured(mode, fresh=True))


@contextlib.contextmanager
def _alone(say: Callable[[str], None], poll: Callable[[], None]) -> Iterator[None]:
    """Let no other process measure while this lasts: two at once would take each other's time."""
    folder = cache_folder() / FOLDER
    with contextlib.ExitStack() as held:
        # Where nothing can be written, nothing is remembered either.
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            lock, told = FileLock(folder / "measuring.lock"), False
            while not lock.is_locked:
                try:
                    held.enter_context(lock.acquire(timeout=_POLL_SECONDS))
                except Timeout:
                    poll()
                    if not told:
                        say("waiting for another process that measures this machine")
                    told = True
        yield


def _remembered(mode: Mode) -> tuple[Rates | None, str]:
    """Return the rates that still hold; else None, and what is said before they are measured."""
    folder = cache_folder() / FOLDER
    line = (
        "measuring this machine, once for runs of this precision on as many threads: "
        "about 20 s, longer where others work"
    )
    # A damaged record is measured again.
    with contextlib.suppress(ValidationError):
        if (record := recalled(folder, NAME, _subject(mode))) is not None:
            known = Rates.model_validate(record.value)
            product = product_benchmark(mode).recalled(folder)
            why = contradiction({"product": known.product}, product) if product else ""
            if not why or record.age_seconds < RETRY_SECONDS:
                return known, ""
            line = f"measuring this machine again, which was slow when it was measured: the matrix {why}"
    return None, line


def _kept(mode: Mode, rates: Rates) -> Rates:
    remember(cache_folder() / FOLDER, NAME, _subject(mode), rates.model_dump(mode="json"), rates.disagreement)
    return rates


def measured(mode: Mode, poll: Callable[[], None] | None = None, *, fresh: bool = False) -> Rates:
    """Return the rates of this machine, measured now in a process of its own, without reading remembered ones.

    Args:
        poll: see :func:`calibrated`.
        fresh: also without the parts that a measurement of the last minutes has left that was interrupted.

    Raises:
        WorkbenchError: that process failed; the end of its stderr is quoted.
    """
    return Rates.model_validate_json(_run_child(mode, {} if fresh else _subject(mode), poll or (lambda: None)))


def _subject(mode: Mode) -> dict[str, Any]:
    """Return the subject that rates are valid for."""
    device, environment = torch.device(mode.device), _environment(mode)
    return subject_of(
        device, mode.threads, mode=list(mode), version=VERSION, optimizers=sorted(registry("optimizer")),
        heap=[environment.get(name, "") for name in NAMES], layerwise=layerwise_path(device),
    )  # fmt: skip


def _environment(mode: Mode) -> dict[str, str]:
    # A trainer's, so that its rates are measured.
    return {**os.environ, **heap_settings(os.environ), "OMP_NUM_THREADS": str(mode.threads)}


def _run_child(mode: Mode, subject: dict[str, Any], poll: Callable[[], None]) -> str:
    command = [sys.executable, "-m", "workbench.forecasting.calibration", json.dumps(mode), json.dumps(subject)]
    pipe, deadline = subprocess.PIPE, time.monotonic() + TIMEOUT_SECONDS
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=_environment(mode)) as child:
        try:
            while True:
                poll()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    out, errors = child.communicate(timeout=POLL_SECONDS)
                    break
                if time.monotonic() > deadline:
                    raise WorkbenchError(
                        f"measuring this machine took more than {TIMEOUT_SECONDS:g} s; is it very busy?"
                    )
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        tail = "\n".join(errors.splitlines()[-8:])
        raise WorkbenchError(f"measuring this machine failed:\n{tail}")
    return out.splitlines()[-1]


def rates_here(mode: Mode, subject: dict[str, Any] | None = None) -> Rates:
    """Measure everything here and now, in this process, with its present threads (about fifteen seconds on a CPU).

    Args:
        subject: that the rates are valid for: parts of them are kept under it, and those of an interrupted measurement
            not older than :data:`RETRY_SECONDS` are taken over. None measures all and keeps nothing.
    """
    began = time.perf_counter()
    device, dtype = torch.device(mode.device), mode.dtype
    torch.manual_seed(0)

    def part(name: str, work: Callable[[], Any]) -> Any:
        return _part(name, subject, work) if subject else work()

    # Measured anew: how fast the machine is right now.
    product = part("product", lambda: product_benchmark(mode).measured(None)["product"])
    kernels, disagreement = part("kernels", lambda: kernel_rates(mode))
    return Rates(
        device=device_name(device),
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        kernels=kernels,
        attention_choice={
            str(length): fastest(
                attention_benchmark(
                    PreLN(), device, mode.precision, dtype, 16, length, causal=False, compiled=False
                ).seconds(cache_folder() / FOLDER)
            )
            for length in LENGTHS
        },
        optimizers=_optimizers(list(registry("optimizer")), device, part),
        memory_bytes=_memory(device),
        product=product,
        disagreement=disagreement,
        seconds=round(time.perf_counter() - began, 2),
    )


def _part(name: str, subject: dict[str, Any], work: Callable[[], Any]) -> Any:
    """Return a JSON-able part of a measurement: as an interrupted one has left it, or measured now and kept."""
    folder, name = cache_folder() / FOLDER, f"{NAME}-part-{name}"
    record = recalled(folder, name, subject)
    if record is not None and "part" in record.value and record.age_seconds < RETRY_SECONDS:
        return record.value["part"]
    found = work()
    remember(folder, name, subject, {"part": found}, 0.0)
    return found


def _optimizers(
    kinds: Sequence[str],
    device: torch.device,
    part: Callable[[str, Callable[[], Any]], Any] = lambda name, work: work(),
) -> dict[str, OptimizerRates]:
    """Return rates of every optimizer; those that step the same tensors take turns,
    and are one part (:func:`rates_here`).
    """

    def steps(role: str, shapes: Sequence[tuple[int, ...]]) -> dict[str, float]:
        names = list(left)
        return dict(part(f"{role}-{shapes[0][0]}", lambda: _steps(names, role, shapes, device)))

    matrix: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    left = list(kinds)
    for side in SIDES:
        seconds = steps("matrix", [(side, side)] * 2 + [(4 * side, side)])
        for kind in left:
            matrix[kind].append((float(side), seconds[kind] / (6 * side**2)))
        left = [kind for kind in left if seconds[kind] <= DEAR_SECONDS]
    left = list(kinds)
    tables = steps("embedding", [TABLE])
    vectors = steps("vector", [(256,)] * 8)
    return {
        kind: OptimizerRates(
            matrix=tuple(matrix[kind]), embedding=tables[kind] / math.prod(TABLE), vector=vectors[kind] / 8
        )
        for kind in kinds
    }


def _steps(
    kinds: Sequence[str], role: str, shapes: Sequence[tuple[int, ...]], device: torch.device
) -> dict[str, float]:
    """Return seconds of a step over tensors of one role, by optimizer."""
    parameters = [torch.nn.Parameter(torch.randn(*shape, device=device) * 0.02) for shape in shapes]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter) * 1e-3
    decays = role != "vector"
    group = {
        "params": parameters, "names": [str(i) for i in range(len(shapes))], "weight_decay": 0.01 * decays,
        "decays": decays, "role": role, "parts": 1, "transposed": False,
    }  # fmt: skip
    samples, periods = dict[str, Sample](), dict[str, int]()
    for kind in kinds:
        choice = registry("optimizer")[kind]()
        assert isinstance(choice, OptimizerChoice)
        # Work that an optimizer does every few steps counts as often as it happens.
        periods[kind] = int(getattr(choice, "every", 1)) if role == "matrix" else 1
        samples[kind] = timed(_repeated(choice.build([dict(group)], device).step, periods[kind]), device)
    found = measure(samples) if samples else {}
    return {kind: timing.seconds / periods[kind] for kind, timing in found.items()}


def _repeated(work: Callable[[], Any], times: int) -> Callable[[], None]:
    def repeated() -> None:
        for _ in range(times):
            work()

    return repeated


def _memory(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return int(psutil.virtual_memory().total)


def main() -> None:
    """Child process: ``python -m workbench.forecasting.calibration '["cpu", 1, "bf16", false]' '{subject}'``."""
    mode = Mode(*json.loads(sys.argv[1]))
    torch.set_num_threads(mode.threads)
    print(rates_here(mode, json.loads(sys.argv[2])).model_dump_json())


if __name__ == "__main__":
    main()
