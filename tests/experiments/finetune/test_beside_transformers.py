"""An exported encoder in a plain loop of transformers, beside ``finetune``: equal within the spread of seeds."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import fmean, stdev

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup

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


def theirs(exported: Path, train: list[tuple[str, int]], dev: list[tuple[str, int]]) -> list[float]:
    found = []
    tokenizer = AutoTokenizer.from_pretrained(exported)

    def rows(examples: list[tuple[str, int]]) -> dict[str, torch.Tensor]:
        return dict(tokenizer([text for text, _ in examples], padding=True, truncation=True, return_tensors="pt"))

    for seed in SEEDS:
        torch.manual_seed(seed)
        model = AutoModelForSequenceClassification.from_pretrained(exported, num_labels=2)
        model.dropout.p = 0.1
        decayed = [p for p in model.parameters() if p.ndim > 1]
        plain = [p for p in model.parameters() if p.ndim < 2]
        groups = [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=RATE)
        steps = -(-len(train) * EPOCHS // BATCH)
        schedule = get_linear_schedule_with_warmup(optimizer, round(0.1 * steps), steps)
        order = [place for _ in range(EPOCHS) for place in torch.randperm(len(train)).tolist()]
        model.train()
        for at in range(0, len(order), BATCH):
            batch = [train[place] for place in order[at : at + BATCH]]
            model(**rows(batch), labels=torch.tensor([label for _, label in batch])).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            said = model(**rows(dev)).logits.argmax(-1)
        found.append(float((said == torch.tensor([label for _, label in dev])).float().mean()))
    return found


@pytest.mark.extended
def test_a_plain_loop_reaches_the_same_score_within_the_spread_of_seeds(
    encoder: RunFolder, task: Path, tmp_path: Path
) -> None:
    exported = tmp_path / "exported"
    export(encoder, exported)
    plan = plan_finetuning(str(encoder.path), task, text="text", label="label", rates=[RATE])
    splits = plan.recipe_of(Job("trained", RATE, 0)).data.splits()
    train, dev = ([(each.texts[0], int(each.label)) for each in splits[part]] for part in ("train", "dev"))
    mine, plain = ours(encoder, task, tmp_path), theirs(exported, train, dev)
    spread = (stdev(mine) ** 2 + stdev(plain) ** 2) ** 0.5 + len(dev) ** -0.5 / 2
    assert abs(fmean(mine) - fmean(plain)) < 2 * spread, (mine, plain)
    assert fmean(plain) > 0.6, "the task is learned at all"
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
