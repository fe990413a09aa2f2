"""Execution: how the same mathematics is carried out."""

from workbench.choices.execution.execution import Execution
from workbench.choices.execution.native import Native

__all__ = ["Execution", "Native"]
