"""What stands beside the forms: the card of a choice or a panel, one at a time."""

from __future__ import annotations

from tests.jupyter.messages import say
from workbench.choices.choice import registry
from workbench.jupyter.compose.composer import Composer
from workbench.jupyter.compose.method_card import card_html
from workbench.jupyter.compose.side_panel import SidePanel


def test_one_card_at_a_time_and_it_follows_the_choice() -> None:
    composer = Composer()
    by_name = {section.name: section for section in composer.sections}
    by_name["optimizer"].help.value = True
    assert composer._beside.children == (composer._forms, composer.card)
    assert "adamw" in composer.card.title.value
    composer.axes["optimizer"].picker.value = "lans"
    assert composer.card.card.value == card_html(registry("optimizer")["lans"])
    by_name["depth"].help.value = True
    assert not by_name["optimizer"].help.value
    assert "depth: full" in composer.card.title.value
    say(composer.page, {"card": "optimizer.schedule"})
    assert "schedule: warmup_hold_decay" in composer.card.title.value
    assert not by_name["depth"].help.value
    say(composer.page, {"do": "close"})
    assert composer._beside.children == (composer._forms,)
    for path in ("optimizer.lr", "data.batch_size", "nothing", ""):
        say(composer.page, {"card": path})
        assert composer._beside.children == (composer._forms,), "a number has no card"


def test_the_card_of_every_choice_shows_something_and_runs_nothing() -> None:
    composer = Composer()
    for section in composer.sections:
        if section.help is not None:
            section.help.value = True
            assert composer.card in composer._beside.children
            section.help.value = False
            assert composer.card not in composer._beside.children
    for knob in composer.axes.values():
        assert knob.choice is not None
        shown = card_html(knob.choice)
        assert len(shown) > 40
        assert "<script" not in shown


def test_a_panel_stands_beside_the_form_where_a_card_would_and_one_at_a_time() -> None:
    composer = Composer()
    asked: list[str] = []
    panel = SidePanel(lambda: (asked.append("close"), composer.aside(None)), "More")
    composer.aside(panel)
    assert composer._beside.children == (composer._forms, panel)
    composer.show.value = "JSON"
    assert composer._beside.children == (composer.json, panel)
    say(composer.page, {"do": "close"})
    assert (asked, composer._beside.children) == (["close"], (composer.json,))
    composer.aside(panel)
    say(composer.page, {"card": "optimizer.schedule"})
    assert composer._beside.children == (composer.json, composer.card)
    composer.aside(panel)
    assert composer._beside.children == (composer.json, panel)
