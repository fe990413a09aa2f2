"""The probe that picks an implementation of attention, in a layer of the recipe's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch._dynamo.utils import counters

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.choice import resolve
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.attention_probe import attention_benchmark
from workbench.ops import remembered
from workbench.ops.attention import ATTENTION
from workbench.ops.remembered import Benchmark, fastest
from workbench.ops.timing import measure
from workbench.recipes.recipe import Recipe

CPU = torch.device("cpu")


def architecture(kind: str = "pre_ln", **changes: object) -> Architecture:
    found = resolve("architecture", {"kind": kind, "layers": 6, "width": 16, "heads": 2, **changes})
    assert isinstance(found, Architecture)
    return found


def probe(layer: Architecture | None = None, *, compiled: bool = False, **changes: object) -> Benchmark:
    settings = {"precision": "fp32", "dtype": torch.float32, "rows": 2, "length": 16, "causal": False}
    return attention_benchmark(layer or architecture(), CPU, compiled=compiled, **{**settings, **changes})  # type: ignore[arg-type]


@pytest.fixture
def measurements(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Names of the candidates of every measurement, each of a few rounds."""
    found: list[set[str]] = []

    def quick(samples, **rest):  # type: ignore[no-untyped-def]
        found.append(set(samples))
        return measure(samples, **{**rest, "least_seconds": 0.0, "limit_seconds": 0.0})

    monkeypatch.setattr(remembered, "measure", quick)
    return found


def test_the_probe_measures_once_per_shape(tmp_path: Path, measurements: list[set[str]]) -> None:
    seconds = probe().seconds(tmp_path)
    assert set(seconds) == set(ATTENTION)
    assert min(seconds.values()) > 0
    (file,) = tmp_path.iterdir()
    record = json.loads(file.read_text())
    assert record["subject"]["torch"] == torch.__version__
    assert record["subject"]["shape_BT"] == [2, 16]
    assert probe().seconds(tmp_path) == seconds
    assert measurements == [set(ATTENTION)]
    probe(length=32).seconds(tmp_path)
    assert measurements == [set(ATTENTION)] * 2


def test_what_changes_the_answer_is_measured_apart() -> None:
    first = probe().subject
    others = [
        probe(precision="tf32"), probe(causal=True), probe(compiled=True), probe(architecture(heads=4)),
        probe(architecture(dropout=0.1)), probe(architecture(positions="learned")),
    ]  # fmt: skip
    subjects = [json.dumps(other.subject, sort_keys=True) for other in others]
    assert len({json.dumps(first, sort_keys=True), *subjects}) == len(others) + 1
    # Layers are alike, however many there are.
    assert probe(architecture(layers=2)).subject == first


def test_what_is_remembered_decides(tmp_path: Path, measurements: list[set[str]]) -> None:
    probe().seconds(tmp_path)
    (file,) = tmp_path.iterdir()
    record = json.loads(file.read_text())
    for name in ATTENTION:
        record["value"] = {other: 1.0 if other == name else 2.0 for other in ATTENTION}
        file.write_text(json.dumps(record))
        assert fastest(probe().seconds(tmp_path)) == name
    assert len(measurements) == 1


def test_many_rows_are_probed_as_few() -> None:
    assert probe(rows=1 << 20, length=512).subject["shape_BT"][0] == 16
    assert probe(rows=1, length=1 << 20).subject["shape_BT"][0] == 1


@pytest.mark.parametrize("kind", ["pre_ln", "post_ln", "transformers"])
def test_every_architecture_is_probed_and_random_states_stay(kind: str, measurements: list[set[str]]) -> None:
    state = torch.random.get_rng_state()
    more = {"model": "bert"} if kind == "transformers" else {}
    found = probe(architecture(kind, **more), dtype=torch.bfloat16, precision="bf16", causal=False).seconds(None)
    assert set(found) == set(ATTENTION)
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.extended
@pytest.mark.usefixtures("graphs_alone")
def test_compiled_layers_leave_the_graphs_of_a_run_alone(measurements: list[set[str]]) -> None:
    recipe = Recipe(architecture={"kind": "pre_ln", "layers": 1, "width": 16, "heads": 2})
    backbone = recipe.architecture.build(Vocabulary(64, 64, 1, 2, 3, 0, 4), 16, causal=False, attention="plain")
    backbone.compile_blocks()
    run_once(backbone)
    counters.clear()
    assert set(probe(compiled=True).seconds(None)) == set(ATTENTION)
    graphs = counters["stats"]["unique_graphs"]
    run_once(backbone)
    assert counters["stats"]["unique_graphs"] == graphs, "the run's blocks were compiled again"


def run_once(backbone: torch.nn.Module) -> None:
    tokens = torch.full((2, 16), 5)
    places = torch.arange(16).expand(2, 16)
    backbone(tokens, Batch(tokens, places, (places >= 8).int(), tokens[:, 0]), LayerPlan.full(1)).sum().backward()
