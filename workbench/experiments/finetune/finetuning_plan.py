"""The plan of a fine-tuning: an encoder, a task, a few learning rates; whatever makes it void is refused first."""

from __future__ import annotations

import hashlib
import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from workbench.base.errors import RecipeError
from workbench.base.text import plain
from workbench.experiments.finetune.encoder import Encoder
from workbench.experiments.plan import RunsPlan, begun, known
from workbench.experiments.validation import at_once, is_number, seeds_of
from workbench.store.folder import RunFolder

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

Form = Literal["classes", "numbers", "answers"]
SMALL_WIDTH = 512
SMALL_RATES, LARGE_RATES = (1e-4, 3e-4, 1e-3), (2e-5, 5e-5, 1e-4)
"""Learning rates of encoders narrower than :data:`SMALL_WIDTH`, and of others: BERT's own are among the last."""
MOST_SEEDS, MOST_RATES = 20, 12


class Job(NamedTuple):
    """One run of a fine-tuning: whether it begins ``trained`` or ``untrained``, its learning rate and its seed."""

    start: str
    rate: float
    seed: int


@dataclass(frozen=True, repr=False, kw_only=True)
class FinetuningPlan(RunsPlan):
    """A fine-tuning as its folder keeps it.

    Attributes:
        encoder: that it begins with. task: its name. metric: name of the score that rates are chosen by.
        recipes: as JSON by start, of the first rate and seed. rates: learning rates to choose from.
        examples: in train, dev and test. asked: the options of the call, by name, to repeat it.
    """

    encoder: Encoder
    task: str
    metric: str
    recipes: dict[str, dict[str, Any]]
    rates: tuple[float, ...]
    examples: dict[str, int]
    asked: dict[str, Any]
    at_once: int

    def __repr__(self) -> str:
        return f"<fine-tuning of {plain(self.encoder.name, 60)} on {self.task}: {len(self.jobs)} runs>"

    @property
    def jobs(self) -> list[Job]:
        """All runs; those of the encoder first."""
        return [Job(*each) for each in itertools.product(self.recipes, self.rates, self.seeds)]

    def run_folder(self, job: Job) -> RunFolder:
        """See :meth:`RunsPlan.run_folder`."""
        digest = hashlib.sha256(repr((self.id, *job)).encode()).hexdigest()[:10]
        return RunFolder(Path(self.runs_dir) / f"{self.id[:15]}-{job.start}-s{job.seed}-{digest}")

    def recipe_of(self, job: Job) -> Recipe:
        """See :meth:`RunsPlan.recipe_of`."""
        from workbench.recipes.recipe import Recipe

        name = f"{self.task} {job.start} {job.rate:g}" + f" seed {job.seed}" * (len(self.seeds) > 1)
        return Recipe(**self.recipes[job.start]).with_(name=name[:80], seed=job.seed, optimizer={"lr": job.rate})

    def facts_of(self, job: Job) -> dict[str, Any]:
        """See :meth:`RunsPlan.facts_of`."""
        return job._asdict()

    def title_of(self, job: Job) -> str:
        """See :meth:`RunsPlan.title_of`."""
        return f"{self.encoder.name}, {job.start}, rate {job.rate:g}, seed {job.seed}"

    def launch_options(self, job: Job) -> dict[str, Any]:
        """Return what puts tokenizer and weights of the encoder into a run."""
        return {"initial": self.encoder.put_into}

    @classmethod
    def _parts(cls, raw: dict[str, Any]) -> dict[str, Any]:
        return {"encoder": Encoder(**known(Encoder, raw["encoder"]))}

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def plan_finetuning(
    run: Any,
    task: Any,
    *,
    data: str | Path | None = None,
    text: str | Sequence[str] = (),
    label: str = "",
    form: Form | None = None,
    rates: Sequence[float] | None = None,
    epochs: float = 3.0,
    batch: int = 16,
    length: int | None = None,
    limit: int | None = None,
    seeds: int | Sequence[int] = 1,
    untrained: bool = False,
    step: int | None = None,
    changes: Sequence[tuple[str, Any]] = (),
    name: str | None = None,
    runs_dir: str | Path | None = None,
) -> FinetuningPlan:
    """Return the plan of a fine-tuning; see :func:`workbench.experiments.finetune.finetune.finetune`.

    Raises:
        RecipeError, DataError, RunError: as there; nothing was launched.
    """
    from workbench.choices.data.examples import Examples
    from workbench.choices.tasks.known import find_task

    columns = (text,) if isinstance(text, str) and text else tuple(text)
    own = Path(task).expanduser().is_file()
    asked = {
        "task": str(Path(task).expanduser().absolute()) if own else str(task),
        "data": None if data is None else str(Path(data).expanduser().absolute()), "text": columns, "label": label,
        "form": form, "epochs": epochs, "batch": batch, "length": length, "limit": limit, "untrained": untrained,
        "changes": tuple(changes),
    }  # fmt: skip
    encoder = Encoder.of(run, step, runs_dir)
    if encoder.run is not None and runs_dir is None:
        runs_dir = encoder.run.path.parent
    if not (is_number(epochs) and epochs > 0):
        raise RecipeError(f"epochs: {epochs!r:.60} is no number above 0")
    chosen = seeds_of(seeds, "fine-tuning", 0, 1, MOST_SEEDS)
    files = find_task(task, data, columns, label, form)
    examples = Examples(task=files.name, paths=files.paths, form=files.form, text=files.text, label=files.label,
                        score=files.score, limit=limit)  # fmt: skip
    splits = examples.splits()
    objective = _objective(files.form, splits) | {"encoder": encoder.described}
    starts = ["trained", "untrained"] if untrained else ["trained"]
    count = len(splits["train"])
    recipes = {start: _recipe(encoder, examples, objective, start, count, asked) for start in starts}
    first = recipes["trained"]
    usual = SMALL_RATES if first.architecture.width < SMALL_WIDTH else LARGE_RATES
    given = tuple(rates) if rates else usual
    if len(given) > MOST_RATES or not all(is_number(rate) and rate > 0 for rate in given):
        raise RecipeError(f"rates: at most {MOST_RATES} numbers above 0, got {given!r:.100}")
    return FinetuningPlan(
        **begun(name or f"{files.name}-{encoder.name}", first.hash, runs_dir),
        name=name or f"{files.name}: {encoder.name}"[:80], seeds=chosen, score="nats", warnings=(), encoder=encoder,
        task=files.name, metric=files.score, recipes={start: recipe.to_dict() for start, recipe in recipes.items()},
        rates=given, examples={part: len(found) for part, found in splits.items()}, asked=asked,
        at_once=at_once([0 if first.execution.gpus() else first.execution.threads or 10**6]),
    )  # fmt: skip


def _objective(form: str, splits: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the objective for labels of a form, as JSON.

    Raises:
        RecipeError: there is nothing to learn. DataError: also, or a label that training never shows.
    """
    from workbench.choices.tasks.splits import labels_of

    if form == "classes":
        return {"kind": "classify", "labels": labels_of(splits["train"], [*splits["dev"], *splits["test"]])}
    if form == "answers":
        return {"kind": "answer"}
    numbers = [each.label for each in splits["train"]]
    if not (spread := statistics.pstdev(numbers)):
        raise RecipeError(f"all training examples have the number {numbers[0]:g}: there is nothing to learn")
    return {"kind": "regress", "mean": statistics.fmean(numbers), "spread": spread}


def _recipe(
    encoder: Encoder, examples: Any, objective: dict[str, Any], start: str, count: int, asked: Mapping[str, Any]
) -> Recipe:
    from workbench.recipes.recipe import Recipe

    parts, batch, epochs = encoder.parts(start == "trained"), asked["batch"], asked["epochs"]
    data = examples.model_dump(mode="json") | {
        "tokenizer": parts.tokenizer, "sequence_length": asked["length"] or parts.longest, "batch_size": batch,
    }  # fmt: skip
    recipe = Recipe(
        name=examples.task,
        data=data,
        objective=objective | {"encoder": objective["encoder"] if start == "trained" else "",
                               "reads": "left" if parts.causal else "both"},
        architecture=parts.architecture,
        optimizer={"kind": "adamw", "lr": 1e-4, "beta2": 0.999, "weight_decay": 0.01, "clip_norm": 1.0,
                   "schedule": {"kind": "warmup_hold_decay", "warmup": 0.1}},
        execution=parts.execution,
        budget={"amount": max(1, math.ceil(count * epochs / batch)), "unit": "steps",
                "evaluations": max(1, round(epochs))},
    ).edited(asked["changes"])  # fmt: skip
    recipe.check_here()
    return recipe
