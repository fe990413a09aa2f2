"""An exported encoder in transformers' Trainer, beside ``finetune``: equal within the spread of seeds."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import fmean, stdev

import pytest
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    EvalPrediction,
    Trainer,
    TrainingArguments,
    set_seed,
)

import workbench.transformers  # noqa: F401  (teaches transformers our models)
from tests.tiny_runs import tiny_recipe
from workbench.experiments.finetune.encoder import Encoder
from workbench.experiments.finetune.finetuning_plan import Job, plan_finetuning
from workbench.models.export import export
from workbench.store.evaluations import scores_by_step
from workbench.store.folder import RunFolder
from workbench.training import worker

SEEDS, EPOCHS, RATE, BATCH = (0, 1, 2, 3), 4, 1e-3, 16


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> RunFolder:
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "20260101-000000-encoder-aaaaaa-0000")
    folder.path.mkdir()
    tiny_recipe(corpus, steps=200, name="encoder").save(folder.recipe)
    assert worker.main([str(folder.path)]) == 0
    return folder


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """Hard enough that seeds differ: does one word stand before another?"""
    from tests.corpus import CYCLE

    path, dice = tmp_path_factory.mktemp("task") / "order.csv", random.Random(1)
    lines = ["text,label"]
    for _ in range(800):
        words = dice.sample(CYCLE, 8)
        for word in CYCLE[:2]:
            if word not in words:
                words[dice.randrange(8)] = word
        both = [word for word in words if word in CYCLE[:2]]
        lines.append(f"{' '.join(words)},{int(both[:1] == [CYCLE[0]])}")
    path.write_text("\n".join(lines) + "\n")
    return path


def ours(encoder: RunFolder, task: Path, place: Path) -> list[float]:
    found = []
    plan = plan_finetuning(str(encoder.path), task, text="text", label="label", rates=[RATE], epochs=EPOCHS,
                           seeds=SEEDS, batch=BATCH)  # fmt: skip
    for seed in SEEDS:
        folder = RunFolder(place / f"ours-{seed}")
        folder.path.mkdir(parents=True)
        plan.encoder.put_into(folder, plan.recipe_of(Job("trained", RATE, seed))).save(folder.recipe)
        assert worker.main([str(folder.path)]) == 0
        found.append(list(scores_by_step(folder).values())[-1]["order dev accuracy"].value or 0.0)
    return found


def theirs(exported: Path, train: list[tuple[str, int]], dev: list[tuple[str, int]], place: Path) -> list[float]:
    found = []
    tokenizer = AutoTokenizer.from_pretrained(exported)

    def rows(examples: list[tuple[str, int]]) -> list[dict[str, object]]:
        return [dict(tokenizer(text, truncation=True)) | {"labels": label} for text, label in examples]

    def accuracy(predicted: EvalPrediction) -> dict[str, float]:
        return {"accuracy": float((predicted.predictions.argmax(1) == predicted.label_ids).mean())}

    for seed in SEEDS:
        # As run_glue.py builds its Trainer.
        arguments = TrainingArguments(
            output_dir=str(place / "trainer"), seed=seed, learning_rate=RATE, num_train_epochs=EPOCHS,
            per_device_train_batch_size=BATCH, weight_decay=0.01, warmup_steps=0.1, use_cpu=True, report_to=[],
            save_strategy="no", logging_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        set_seed(seed)
        model = AutoModelForSequenceClassification.from_pretrained(exported, num_labels=2)
        model.dropout.p = 0.1
        trainer = Trainer(
            model=model, args=arguments, train_dataset=rows(train), eval_dataset=rows(dev), compute_metrics=accuracy,
            processing_class=tokenizer,
        )  # fmt: skip
        trainer.train()
        found.append(trainer.evaluate()["eval_accuracy"])
    return found


@pytest.mark.extended
def test_the_trainer_reaches_the_same_score_within_the_spread_of_seeds(
    encoder: RunFolder, task: Path, tmp_path: Path
) -> None:
    exported = tmp_path / "exported"
    export(encoder, exported)
    plan = plan_finetuning(str(encoder.path), task, text="text", label="label", rates=[RATE])
    splits = plan.recipe_of(Job("trained", RATE, 0)).data.splits()
    train, dev = ([(each.texts[0], int(each.label)) for each in splits[part]] for part in ("train", "dev"))
    mine, others = ours(encoder, task, tmp_path), theirs(exported, train, dev, tmp_path)
    spread = (stdev(mine) ** 2 + stdev(others) ** 2) ** 0.5 + len(dev) ** -0.5 / 2
    assert abs(fmean(mine) - fmean(others)) < 2 * spread, (mine, others)
    assert fmean(others) > 0.6, "the task is learned at all"
    # And the folder itself is an encoder: the same weights.
    folder = RunFolder(tmp_path / "from-folder")
    folder.path.mkdir()
    again = plan_finetuning(str(exported), task, text="text", label="label", rates=[RATE], epochs=EPOCHS, batch=BATCH,
                            runs_dir=tmp_path)  # fmt: skip
    assert again.encoder == Encoder(str(exported))
    again.encoder.put_into(folder, again.recipe_of(Job("trained", RATE, 0))).save(folder.recipe)
    assert worker.main([str(folder.path)]) == 0
    score = list(scores_by_step(folder).values())[-1]["order dev accuracy"].value
    assert score == pytest.approx(mine[0], abs=0.05)
