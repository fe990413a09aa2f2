"""A run that is compared with another run's checkpoint, token by token or document by document."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.costs import quick_ones
from tests.training.test_resume import Live, assert_same, train
from workbench.base.errors import RunError
from workbench.choices.data.order import RowOrder
from workbench.choices.data.prepare import prepare
from workbench.recipes.recipe import Recipe
from workbench.store.folder import read_object, write_json
from workbench.training.reference import check_reference, document_losses, load_reference, reference_folder
from workbench.training.session import Session
from workbench.training.status import Status


@pytest.fixture
def causal(tiny: Recipe) -> Recipe:
    return tiny.with_(objective="causal", budget={"amount": 6, "evaluations": 1})


@pytest.mark.parametrize("objective", quick_ones(["causal", "masked"], "masked"))
def test_a_selective_run_resumes_bit_for_bit_and_pays_for_its_reference(
    tiny: Recipe, live: Live, objective: str
) -> None:
    plain = tiny.with_(objective=objective, budget={"amount": 6, "evaluations": 1})
    kind = {"causal": "selective", "masked": "selective_masked"}[objective]
    reference = live(plain.with_(architecture={"layers": 1}))
    train(reference)
    recipe = plain.with_(objective={"kind": kind, "keep": 0.5, "run": reference.folder.id})
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    train(parts, stop_at=3)
    assert_same(straight, train(parts, resume=True))
    assert whole.telemetry.series("every_token_loss") == parts.telemetry.series("every_token_loss")
    alone = live(plain.with_(objective={"kind": kind, "keep": 0.5}))
    without = train(alone).meta["useful_flops"]
    assert 1.05 * without < straight.meta["useful_flops"] < 1.34 * without, "a forward pass of a smaller model"
    assert whole.telemetry.series("loss")[1][1:] != alone.telemetry.series("loss")[1][1:]


def test_documents_are_sorted_by_the_losses_that_a_slow_loop_finds(causal: Recipe, live: Live) -> None:
    reference = live(causal)
    train(reference)
    order = {"kind": "curriculum", "by": "loss", "run": reference.folder.id, "pacing": "sorted"}
    run, prepared = live(causal.with_(data={"order": order})), prepare(causal.data, say=lambda line: None)
    status = Status(run.folder)
    session = Session(run.folder, status, False)
    rows: RowOrder = session.assembled.order  # type: ignore[attr-defined]
    found = load_reference(reference.folder, None, torch.device("cpu"))
    losses_D = slow_losses(found, prepared.train, 32)
    assert np.allclose(document_losses(found, prepared.train, 32, print), losses_D, rtol=1e-4)
    read = rows.places(np.arange(rows.rows)).ravel()
    documents = np.searchsorted(prepared.train.offsets_D1, read, side="right") - 1
    seen = losses_D[documents[np.flatnonzero(np.diff(documents, prepend=-1))]]
    assert (np.diff(seen) > -1e-4).all(), "from the lowest loss to the highest"
    for part in (session.training, session.writer, status):
        part.close()


def slow_losses(reference, store, length) -> np.ndarray:
    """Mean nats of each document's tokens, one at a time, rows cut from the text as it is stored."""
    model, sums, counts = reference.model, np.zeros(store.documents), np.zeros(store.documents)
    document_N = np.repeat(np.arange(store.documents), np.diff(store.offsets_D1))
    for begin in range(0, store.tokens - length + 1, length):
        row, documents = store.ids_N[begin : begin + length].astype(np.int64), document_N[begin : begin + length]
        for document in np.unique(documents):
            piece = torch.from_numpy(row[documents == document])[None]
            alone = piece_batch(piece)
            log = model.head(model.backbone(piece, alone, reference.plan)).detach().double().log_softmax(-1)[0]
            for t in range(piece.shape[1] - 1):
                sums[document] -= float(log[t, piece[0, t + 1]])
                counts[document] += 1
    return np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum() / counts.sum())


def piece_batch(piece: torch.Tensor):
    from workbench.choices.data.tokens import Batch

    positions = torch.arange(piece.shape[1])[None]
    return Batch(piece, positions, torch.zeros_like(piece, dtype=torch.int32), torch.zeros(1, dtype=torch.int64))


def test_references_that_cannot_be_compared_with_are_refused(causal: Recipe, tiny: Recipe, live: Live) -> None:
    run, prepared = live(causal), prepare(causal.data, say=lambda line: None)
    with pytest.raises(RunError, match=r"objective.run: no run 'nowhere'"):
        reference_folder("nowhere", None, "objective.run", run.folder)
    train(run, stop_at=2)
    with pytest.raises(RunError, match=r"is stopped, not finished.*objective\.step"):
        reference_folder(run.folder.id, None, "objective.run", run.folder)
    assert reference_folder(run.folder.id, 2, "objective.run", run.folder) == run.folder
    with pytest.raises(RunError, match="has no checkpoint of step 7"):
        load_reference(run.folder, 7, torch.device("cpu"))
    check_reference(run.folder, causal, prepared, 32, "objective.run")
    with pytest.raises(RunError, match="built for rows of 32 tokens, and rows here have 64"):
        check_reference(run.folder, causal, prepared, 64, "objective.run")
    with pytest.raises(RunError, match="must predict the next token"):
        check_reference(run.folder, tiny, prepared, 32, "objective.run")
    check_reference(run.folder, tiny, prepared, 32, "objective.run", causal=False)
    for kind in ("causal", "hybrid"):
        with pytest.raises(RunError, match=r"hidden token at its place; name a run with objective 'masked'"):
            check_reference(run.folder, tiny.with_(objective=kind), prepared, 32, "objective.run", causal=False)
    environment = read_object(run.folder.environment)
    write_json(run.folder.environment, environment | {"data": {"tokenizer_sha256": "another"}})
    with pytest.raises(RunError, match="another tokenizer"):
        check_reference(run.folder, causal, prepared, 32, "objective.run")


def test_a_run_without_its_reference_says_so(causal: Recipe, live: Live, tmp_path: Path) -> None:
    run = live(causal.with_(objective={"kind": "selective", "run": "20260101-000000-gone-abcdef-0000"}))
    status = Status(run.folder)
    with pytest.raises(RunError, match=r"objective.run: no run"):
        Session(run.folder, status, False)
    status.close()
