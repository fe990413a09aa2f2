"""Sweeps: one recipe at many settings, every run launched once, and what the runs say together. See ``sweep.py``."""
