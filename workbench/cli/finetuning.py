"""``workbench finetune``: an encoder on a task, at a few learning rates."""

from __future__ import annotations

import argparse
import json

from workbench.base.assignments import assignment
from workbench.base.errors import RecipeError
from workbench.cli.command import DONE
from workbench.cli.following import begun, existing, latest, say, seeds
from workbench.experiments.finetune.finetune import Finetuning


def finetune(options: argparse.Namespace) -> int:
    """Start a fine-tuning and follow it to its end; or follow, show or cancel an existing one; without any, list them.

    Raises:
        RecipeError, DataError, RunError: what cannot be fine-tuned; nothing was launched.
    """
    if (code := existing(Finetuning, options.run or "", options, new=bool(options.task))) is not None:
        return code
    if not options.task:
        raise RecipeError(
            f"fine-tune '{options.run}' on what? For example `workbench finetune {options.run} boolq --data DIR`; "
            f"fine-tunings here: {latest(Finetuning, options)}"
        )
    from workbench.experiments.finetune.finetune import finetune as start

    started = start(
        options.run, options.task, data=options.data, text=options.text or (), label=options.label or "",
        form=options.form, rates=_rates(options.rates), epochs=options.epochs, batch=options.batch,
        length=options.length, limit=options.limit, seeds=seeds(options.seeds), untrained=options.untrained,
        step=options.checkpoint, changes=[assignment(each) for each in options.set], name=options.name,
        runs_dir=options.runs, dry_run=options.dry_run, say=say,
    )  # fmt: skip
    if not isinstance(started, Finetuning):
        if options.json:
            print(json.dumps({"runs": len(started.jobs), "rates": started.rates, "examples": started.examples}))
        return DONE
    return begun(started, options)


def _rates(text: str | None) -> list[float] | None:
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise RecipeError(f"--rates '{text}' is no list of learning rates such as 1e-4,3e-4") from None
