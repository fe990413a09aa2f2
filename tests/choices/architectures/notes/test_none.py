"""No notes: a model without a notebook, whose input is as it was."""

from __future__ import annotations

from workbench.choices.architectures.notes import NoNotes

from ...objectives.test_token_prediction import VOCABULARY, model_of


def test_there_is_no_notebook() -> None:
    assert NoNotes().build(VOCABULARY, 16, 32) is None
    model = model_of("masked")
    assert model.backbone.notebook is None
    assert not any("notebook" in name for name in model.state_dict())
