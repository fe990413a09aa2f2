"""Telemetry of runs: streams, columns, quantities, baselines, speed."""
