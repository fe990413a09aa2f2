"""The catalogue follows from the declarations: every registered choice, every field."""

from __future__ import annotations

import json

import pytest

from workbench.choices.choice import registry
from workbench.cli.catalogue import PARTS
from workbench.cli.command import main
from workbench.recipes.presets import get, names
from workbench.recipes.recipe import AXES


def test_every_choice_with_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choices", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {*AXES, *PARTS}
    for axis, choices in found.items():
        assert [choice["kind"] for choice in choices] == list(registry(axis))
        for choice in choices:
            fields = registry(axis)[choice["kind"]].model_fields
            assert set(choice["fields"]) == set(fields) - {"kind"}
            for name, field in choice["fields"].items():
                assert field["help"], f"{axis} {choice['kind']}.{name} has no help"
                assert field["type"]
                assert ("default" in field) != field.get("required", False)


def test_a_card_is_printed_and_what_a_knob_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choices", "depth", "multi_stage"]) == 0
    card = capsys.readouterr().out
    assert card.strip() == registry("depth")["multi_stage"].card().strip()
    assert card.count("\n## ") >= 4
    assert main(["choices", "depth", "multi_stage", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["card"].strip() == card.strip()
    assert main(["choices", "depth"]) == 0
    assert 'state = "reset" ("reset" | "copy"): optimizer state of added layers' in capsys.readouterr().out
    assert main(["choices", "depth", "multistage"]) == 2
    assert "did you mean 'multi_stage'" in capsys.readouterr().err


def test_bounds_units_and_types_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    main(["choices", "optimizer", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["optimizer"]
    schedules = {choice["kind"]: choice["fields"]["schedule"] for choice in found["optimizer"]}
    assert {(field["help"], field["unit"]) for field in schedules.values()} == {
        ("shape of the learning rate, as a factor on lr", "\u00d7 lr")
    }
    fields = {choice["kind"]: choice["fields"] for choice in found["optimizer"]}["adamw"]
    assert fields["lr"]["gt"] == 0
    assert fields["lr"]["type"] == "float"
    assert fields["weight_decay"]["type"] == "float or schedule"
    assert fields["clip_norm"]["type"] == "float or null"
    main(["choices", "data", "--json"])
    data = {choice["kind"]: choice["fields"] for choice in json.loads(capsys.readouterr().out)["data"]}
    assert data["files"]["sequence_length"]["unit"] == "tokens"
    assert data["files"]["paths"] == {
        **data["files"]["paths"],
        "required": True,
        "type": "list of str",
        "min_length": 1,
    }


def test_presets_are_listed_and_legal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == names()
    assert all(found.values())
    assert not any("`" in line for line in found.values())
    assert "gpt_tiny's size" in found["llama_like"]
    assert all(get(name).hash for name in found)
