"""ONNX Runtime's training engine: graphs exported once, optimised and differentiated by ORT, in a Python of its own."""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch

from workbench.base.errors import RecipeError, first_line
from workbench.choices.architectures.modular import Modular
from workbench.choices.choice import Problem, knob
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.full import Full
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.engine import Engine
from workbench.choices.execution.environment import EngineEnvironment
from workbench.choices.execution.execution import Execution
from workbench.choices.execution.ort_adapter import load_ortmodule
from workbench.choices.execution.whole_step import ScoredRows, inputs_of
from workbench.choices.objectives.causal import Causal
from workbench.choices.objectives.masked import Masked
from workbench.choices.objectives.objective import Loss, TrainingModel
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Progress

# Shape legend: B rows, T positions of a row, N labelled slots.

ENVIRONMENT = EngineEnvironment(
    name="onnxruntime",
    # The last release with training, 1.19.2 of September 2024, has no wheels for later ones.
    pythons=("3.11", "3.12"),
    packages=(
        "torch==2.13.0", "onnx==1.17.0", "ninja==1.13.2", "setuptools==84.2.1", "onnxruntime-training-cpu==1.19.2",
    ),
    shared=("numpy", "pydantic", "orjson", "psutil", "filelock", "safetensors", "tokenizers"),
    foreign=("onnxruntime", "onnxruntime-gpu", "onnxruntime-training"),
    test="workbench.choices.execution.ort_proof",
)  # fmt: skip
"""The one place that names versions; with others the adapter is a guess."""


class OnnxRuntime(Execution):
    """ONNX Runtime 1.19.2 on the CPU: ORTModule's optimised graphs in float32, to inspect; about as fast as eager."""

    kind: Literal["onnxruntime"] = "onnxruntime"
    environment: ClassVar[EngineEnvironment | None] = ENVIRONMENT
    precision: Literal["fp32", "bf16", "fp16"] = knob("fp32", "precision of products; ORT trains only in fp32 on a CPU")
    attention: Literal["plain", "sdpa"] = knob("plain", "attention implementation; ORT exports only plain")
    recompute: bool = knob(False, "keep only each layer's input, and recompute the rest in the backward pass")

    def engine(self, recipe: Any) -> OnnxRuntimeEngine:
        """See :class:`OnnxRuntimeEngine`."""
        return OnnxRuntimeEngine(recipe)

    def resolve_device(self) -> torch.device:
        """Return the CPU, the only device of these wheels."""
        return torch.device("cpu")

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse whatever ORT 1.19.2 cannot export, differentiate or repeat, each with its reason."""
        native = "or use execution 'native'"
        if self.device == "cuda":
            yield Problem(
                "execution.device",
                "ORT's last training wheels are for CUDA 11, which does not share a process with today's torch; use "
                f"'cpu', {native}",
            )
        if self.precision != "fp32":
            yield Problem(
                "execution.precision",
                f"'{self.precision}': ORT's training graphs fail under 16-bit autocast on a CPU; use 'fp32', {native}",
            )
        if self.micro_batch_size == "auto":
            yield Problem(
                "execution.micro_batch_size",
                f"'auto': what ORT's graphs keep cannot be measured; give a number, {native}",
            )
        if self.attention != "plain":
            yield Problem(
                "execution.attention",
                f"'{self.attention}': ORT's exporter cannot express it with dropout; use 'plain', {native}",
            )
        if not isinstance(recipe.depth, Full):
            yield Problem(
                "depth.kind",
                f"'{recipe.depth.kind}' changes which layers run or train, and ORT's graph is exported once with all "
                f"of them; use 'full', {native}",
            )
        if words := getattr(recipe.objective, "sampled_words", 0):
            yield Problem(
                "objective.sampled_words", f"{words}: ORT's graph holds the head over all words; use 0, {native}"
            )
        if recipe.architecture.keeps_notes():
            yield Problem("architecture.notes", f"ORT's graph changes no notes; use 'none', {native}")
        if not isinstance(recipe.architecture, Modular):
            yield Problem(
                "architecture.kind",
                f"'{recipe.architecture.kind}': ORT's environment has this package's own blocks alone; use 'pre_ln' or "
                f"'post_ln', {native}",
            )
        elif recipe.architecture.positions in ("tupe_a", "tupe_r"):
            yield Problem(
                "architecture.positions",
                f"'{recipe.architecture.positions}': ORT builds no gradient of its position table ('Squeeze: Dimension "
                f"of input 1 must be 1'); use 'rope' or another, {native}",
            )
        if not isinstance(recipe.objective, (Masked, Causal)):
            yield Problem(
                "objective.kind",
                f"'{recipe.objective.kind}': ORT exports 'masked' and 'causal' alone; use one of them, {native}",
            )
        elif recipe.objective.added_parts:
            added = " and ".join(recipe.objective.added_parts)
            yield Problem(
                "objective", f"ORT's graph has one head and one loss, and the objective adds {added}; {native}"
            )
        yield from super().problems(recipe)


class OnnxRuntimeEngine(Engine):
    """A recipe under :class:`OnnxRuntime`: forward and backward passes of training steps are ORT's, all else torch's.

    Weights and gradients are torch's tensors, shared with ORT; optimizer, checkpoints, evaluation and export see a
    model like any other.
    """

    def __init__(self, recipe: Any) -> None:
        super().__init__(recipe)
        self._graphs: dict[tuple[TrainingModel, int], Any] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> None:
        """See :meth:`Engine.start`; loads ORT, with as many threads as torch has.

        Raises:
            RecipeError: this Python has no ORT with training.
        """
        super().start()
        os.environ["ORTMODULE_MEMORY_OPT_LEVEL"] = str(int(self.recipe.execution.recompute))
        try:
            load_ortmodule()
        except ImportError as error:
            raise RecipeError(f"this Python has no ONNX Runtime training ({error}); {ENVIRONMENT.way_out}") from None
        self._folder = tempfile.TemporaryDirectory(prefix="workbench-graphs-")

    def forward(self, model: TrainingModel, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """See :meth:`Engine.forward`; the first one of a row length (B, T) exports and optimises a graph.

        Raises:
            RecipeError: ORT cannot carry this model out; never falls back to torch.
            MemoryError: its arena could not grow.
        """
        assert isinstance(model, TokenPrediction)
        seen, batch = model.inputs(batch, progress)
        taps = model.backbone.taps
        graph = self._graph(model, plan, batch.tokens_BT.shape[1])
        try:
            nats, hits, *rms = graph(*inputs_of(seen, batch))
        except Exception as error:
            if "Failed to allocate memory" in str(error):
                raise MemoryError(f"not enough memory in ONNX Runtime: {first_line(error)}") from error
            raise RecipeError(
                f"ONNX Runtime cannot train this model: {first_line(error)}; use execution 'native' (the whole error "
                "is in worker.log)"
            ) from error
        finally:
            model.backbone.taps = taps
        if taps is not None:
            taps.extend(rms)
        return model.loss_of(nats, hits)

    def save_graphs(self, folder: Path) -> None:
        """See :meth:`Engine.save_graphs`: ONNX as exported, as optimised with its gradients, and as executed."""
        if self._folder is not None:
            folder.mkdir(exist_ok=True)
            for path in Path(self._folder.name).glob("*.onnx"):
                shutil.copyfile(path, folder / path.name)

    def described(self) -> dict[str, Any]:
        """See :meth:`Engine.described`; with ORT's version."""
        version = importlib.import_module("onnxruntime").__version__ if self._folder else None
        return super().described() | {"onnxruntime": version}

    def _graph(self, model: TokenPrediction, plan: LayerPlan, length: int) -> Any:
        """Return one graph per row length: windows are cut into chunks by Python,
        which a traced graph takes for constants.
        """
        key = (model, length)
        if key not in self._graphs:
            assert self._folder is not None, "start() comes first"
            os.environ["ORTMODULE_SAVE_ONNX_PATH"] = self._folder.name
            ort = load_ortmodule()
            options = ort.DebugOptions(ort.LogLevel.ERROR, save_onnx=True, onnx_prefix=f"length_{length}")
            self._graphs[key] = ort.ORTModule(ScoredRows(model, plan), options)
        return self._graphs[key]
