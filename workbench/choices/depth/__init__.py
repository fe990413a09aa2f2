"""Depth: which layers run, which train, which exist, micro-batch by micro-batch."""

from workbench.choices.depth.full import Full
from workbench.choices.depth.plan import STATES, Depth, LayerPlan
from workbench.choices.depth.progressive_drop import ProgressiveDrop

__all__ = ["STATES", "Depth", "Full", "LayerPlan", "ProgressiveDrop"]
