"""Benchmarks of trained models: each gives scores by name, which a run keeps by step."""
