"""The forecaster: what this machine does in a second, what a recipe asks of it, and a run simulated with both."""
