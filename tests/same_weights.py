"""Compare the weights that every preset has after some steps with those of another revision.

``python tests/same_weights.py BASE`` trains each preset, made small, eagerly on one thread, once with the package in
this tree and once with the package in the folder BASE (a git worktree), and prints a table. The exit code is 1 if a
weight differs by more than ``--most``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

ROOT = Path(__file__).parents[1]
SMALL = {"width": 64, "heads": 2}
EXECUTION = {"device": "cpu", "precision": "fp32", "compile": False, "attention": "plain", "threads": 1}


def train(out: Path, only: list[str], steps: int) -> None:
    """Train the presets in this process and write their weights to ``out``."""
    from workbench.choices.data.prepare import prepare
    from workbench.training.assemble import assemble
    from workbench.training.loop import Training

    try:
        from workbench.recipes import presets
    except ImportError:
        from workbench import presets  # type: ignore[attr-defined, no-redef]
    weights: dict[str, dict[str, torch.Tensor]] = {}
    for name in only or presets.names():
        recipe = presets.get(name)
        architecture = SMALL | {"layers": 8 if recipe.architecture.layers == 12 else 2}
        if recipe.architecture.ffn_width:
            architecture["ffn_width"] = 128
        tokenizer = recipe.data.tokenizer.model_dump() | {"vocabulary_size": 1024}
        data = {"kind": "embedded", "packages": ("python",), "tokenizer": tokenizer}
        if isinstance(recipe.data.sequence_length, int) and isinstance(recipe.data.batch_size, int):
            data |= {"sequence_length": 32, "batch_size": 8}
        execution = EXECUTION | {"micro_batch_size": 4 if recipe.execution.micro_batch_size else None}
        recipe = recipe.with_(data=data, architecture=architecture, execution=execution, budget=f"{steps} steps")
        training = Training(recipe, assemble(recipe, prepare(recipe.data, say=lambda line: None)))
        while not training.progress.done:
            training.step()
        training.close()
        weights[name] = {key: value.clone() for key, value in training.model.state_dict().items()}
        print(name, flush=True)
    torch.save(weights, out)


def trained(root: Path, out: Path, only: list[str], steps: int) -> dict[str, dict[str, torch.Tensor]]:
    """Return the weights by preset and name, as the package in ``root`` trains them in a process of its own."""
    if out.exists():
        return dict(torch.load(out))
    command = [sys.executable, "-P", __file__, "--train", str(out), "--steps", str(steps), *only]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": str(root)}, stdout=subprocess.DEVNULL)
    return dict(torch.load(out))


def main() -> int:
    """Print the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="the other revision's folder, then presets (all when left out)")
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, default=20, help="optimizer steps")
    parser.add_argument("--most", type=float, default=1e-6, help="largest difference of a weight")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the other revision's weights here, or use them")
    options = parser.parse_args()
    if options.train:
        train(options.train, options.names, options.steps)
        return 0
    base, only = Path(options.names[0]).absolute(), options.names[1:]
    with tempfile.TemporaryDirectory() as folder:
        before = trained(base, options.keep or Path(folder) / "before.pt", only, options.steps)
        after = trained(ROOT, Path(folder) / "after.pt", only, options.steps)
    assert before.keys() <= after.keys(), before.keys() - after.keys()
    worst = 0.0
    for name, weights in before.items():
        assert weights.keys() == after[name].keys(), name
        gaps = [float((value - after[name][key]).abs().max()) for key, value in weights.items()]
        equal = all(torch.equal(value, after[name][key]) for key, value in weights.items())
        worst = max(worst, *gaps)
        print(f"{name:20} {'equal to the last bit' if equal else f'{max(gaps):.1e}'}")
    return int(not worst <= options.most)


if __name__ == "__main__":
    sys.exit(main())
