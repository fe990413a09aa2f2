"""Tensor parallel: what it cannot cut is refused before launch. Steps are compared in test_parallel.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.tiny_runs import tiny_recipe
from workbench.base.errors import RecipeError
from workbench.choices.execution.parallel.twin import Cut
from workbench.choices.execution.ranks import Ranks


@pytest.mark.parametrize(
    ("changes", "processes", "why"),
    [
        ({}, 4, r"architecture\.heads: 4 processes cannot have equal parts of 2; use parallel 'data', or 2 processes"),
        ({"architecture": {"ffn_width": 33}}, 2, r"architecture\.ffn_width: 2 processes cannot have equal parts of 33"),
        ({"architecture": {"positions": "alibi"}}, 2, r"architecture\.positions: 'alibi' is of all heads, .*'rope'"),
        ({"architecture": {"kind": "post_ln", "dropout": 0.1}}, 2, r"architecture\.dropout: 0\.1 is of all heads"),
        (
            {"architecture": {"kind": "transformers"}},
            2,
            r"architecture\.kind: parallel 'tensor' cuts blocks of our own",
        ),
        (
            {"optimizer": "lamb"},
            2,
            r"parallel\.kind: 'tensor' cuts tensors, and 'lamb' .*; use 'data', or optimizer adamw",
        ),
        ({"optimizer": {"average": 0.9}}, 2, r"optimizer\.average: an average is kept of whole weights"),
        ({"execution": {"compile": True}}, 2, r"execution\.compile: True is not for .* 'tensor'; use False, or 'data'"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(
    corpus: Path, changes: dict[str, object], processes: int, why: str
) -> None:
    recipe = tiny_recipe(corpus).with_(execution={"parallel": "tensor"}).with_(**changes)
    with pytest.raises(RecipeError, match=why):
        recipe.check_together(processes)


def test_rows_need_not_be_enough_for_the_processes(corpus: Path) -> None:
    recipe = tiny_recipe(corpus).with_(execution={"parallel": "tensor"}, data={"batch_size": 1})
    recipe.check_together(2)
    with pytest.raises(RecipeError, match="1 row at a time cannot be shared by 2 processes"):
        recipe.with_(execution={"parallel": "data"}).check_together(2)


def test_stacked_matrices_are_cut_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cut, "dim", 0)
    monkeypatch.setattr(Cut, "local", torch.empty(6, 1))
    weight = torch.arange(12.0)[:, None]
    part = Cut(weight, None, parts=3).of(weight, Ranks(1, 2))
    assert part.flatten().tolist() == [2, 3, 6, 7, 10, 11], "queries, keys and values of the second half of the heads"
