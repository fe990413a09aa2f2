"""Execution: how the same mathematics is carried out."""

from workbench.choices.execution.auto import Auto
from workbench.choices.execution.engine import Engine
from workbench.choices.execution.execution import Execution, Process
from workbench.choices.execution.hardware import Mode
from workbench.choices.execution.memory import Memory
from workbench.choices.execution.memory_fit import SHARE
from workbench.choices.execution.memory_plan import WHOLE, MemoryPlan
from workbench.choices.execution.memory_saving import recompute_operations
from workbench.choices.execution.native import Native
from workbench.choices.execution.onnxruntime import OnnxRuntime

__all__ = [
    "Auto",
    "Engine",
    "Execution",
    "Memory",
    "MemoryPlan",
    "Mode",
    "Native",
    "OnnxRuntime",
    "Process",
    "SHARE",
    "WHOLE",
    "recompute_operations",
]
