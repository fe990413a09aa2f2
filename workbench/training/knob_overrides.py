"""Knobs that were turned while a run trained, and the way back to before the last of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.store.checkpoints import checkpoints, step_of


@dataclass
class KnobOverrides:
    """Hold the knobs that were changed; kept in every checkpoint, since ``recipe.json`` stays what was launched.

    Attributes:
        overrides: values by path.
        change: the last one, all that was turned at one step: ``step``, ``text`` and the overrides ``before``.
    """

    overrides: dict[str, Any] = field(default_factory=dict)
    change: dict[str, Any] | None = None

    @classmethod
    def of(cls, saved: Mapping[str, Any], back_to: int | None = None) -> KnobOverrides:
        """Read them from a checkpoint.

        Args:
            saved: its ``state.json``.
            back_to: step of a change that is to be undone; it may have been made before the checkpoint of that step.
        """
        change = saved.get("change")
        if change and change["step"] == back_to:
            return cls(dict(change["before"]))
        return cls(dict(saved["overrides"]), change)

    @property
    def step(self) -> int | None:
        """Return the step of the last change and of the checkpoint before it; None without a change."""
        return self.change["step"] if self.change else None

    def state(self) -> dict[str, Any]:
        """Return the content for a checkpoint."""
        return {"overrides": self.overrides, "change": self.change}

    def turn(self, path: str, value: Any, step: int, text: str) -> None:
        """Take down a change."""
        if self.change is None or self.change["step"] != step:
            self.change = {"step": step, "text": text, "before": dict(self.overrides)}
        else:
            self.change["text"] += f", {text}"
        self.overrides[path] = value

    def way_on(self, folder: Path) -> tuple[int | None, str]:
        """Return where a run resumes whose numbers stopped being finite: under the last change they would do so again.

        Args:
            folder: of its checkpoints.

        Returns:
            Step to resume from, None for the newest checkpoint; and that in words.
        """
        steps = [step_of(path) for path in checkpoints(folder)]
        if self.change and self.step in steps:
            return self.step, f"resume goes on from step {self.step:,}, before {self.change['text']}"
        if steps:
            return None, f"a resume would only repeat it: fork step {steps[-1]:,} with what helps, or begin anew"
        without = f", without {self.change['text']}" if self.change else ""
        return None, f"it left no checkpoint: begin it anew{without}"
