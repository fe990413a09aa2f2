"""Benchmarks of trained models: each gives scores by name, which a run keeps by step."""

from workbench.scoring import lambada, minimal_pairs, multiple_choice
from workbench.scoring.benchmark import Benchmark, benchmarks, register, score

__all__ = ["Benchmark", "benchmarks", "lambada", "minimal_pairs", "multiple_choice", "register", "score"]
