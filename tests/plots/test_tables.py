"""Tables of the report."""

from __future__ import annotations

from dataclasses import replace

from workbench.plots import tables


def test_result_compares_speed_with_the_first(view, plateau):
    assert "<td>1.00x</td><td>0.25x</td>" in tables.result_table([view, plateau])
    assert "against the first" not in tables.result_table([view])


def test_differences_only(view):
    other = replace(view, name="other", recipe={**view.recipe, "optimizer": {"kind": "lans", "lr": 3e-3}})
    page = tables.recipe_table([view, other], differing_only=True)
    assert "<td>adamw</td><td>lans</td>" in page
    assert "optimizer.lr" not in page
    whole = tables.recipe_table([view, other], differing_only=False)
    assert whole.count('class="differs"') == 1
    assert "optimizer.lr" in whole


def test_asked_by_axis(view):
    page = tables.choices_table(view.recipe)
    assert '<th scope="row">optimizer</th><td>adamw</td><td>lr 0.003</td>' in page


def test_everything_from_a_run_is_escaped(view):
    attack = {"<script>k": "<script>v"}
    bad = replace(view, recipe=attack, environment={"data": attack, **attack}, name="<script>n")
    bad.telemetry.events[0]["text"], kept = "<script>t", bad.telemetry.events[0]["text"]
    pages = [
        tables.recipe_table([bad], differing_only=False), tables.choices_table(bad.recipe),
        tables.environment_table([bad]), tables.fingerprint(bad),
        tables.events_table(bad), tables.result_table([bad]),
    ]  # fmt: skip
    bad.telemetry.events[0]["text"] = kept
    for page in pages:
        assert "<script" not in page
        assert "&lt;script&gt;" in page


def test_heldout_and_empty(view, empty):
    assert tables.heldout_table(view).count("<tr") == 5
    assert tables.heldout_table(view).count("<td>~") == 3, "the last is of all tokens"
    assert tables.heldout_table(replace(view, status="stopped")).count("<td>~") == 4
    assert "nothing here yet" in tables.heldout_table(empty)
    assert tables.escape("\ud800") == "?"


def test_losses_without_tokens_stand_between_their_neighbours(view):
    scalars = [
        {"step": 10, "tokens": 1000, "seconds": 1.0, "heldout_loss": 5.0},
        {"step": 20, "seconds": 2.0, "heldout_loss": 4.0},
        {"step": 30, "tokens": 3000, "seconds": 3.0, "heldout_loss": 3.0},
    ]
    damaged = replace(view, evaluations={}, telemetry=replace(view.telemetry, scalars=scalars))
    page = tables.heldout_table(damaged)
    assert '<th scope="row">20</th><td>2,000</td><td>2.0</td><td>~4.0000</td>' in page


def test_moments_that_no_calendar_knows_are_left_out(view):
    moments = (1e300, float("nan"), "noon", 0)
    events = [{"step": 1, "kind": "start", "text": "begun", "time": moment} for moment in moments]
    page = tables.events_table(replace(view, telemetry=replace(view.telemetry, events=events)))
    assert page.count("begun") == 4
    assert page.count("1970-01-01 00:00:00") == 1


def test_preparation_steps_of_a_run(view):
    step = {
        "kind": "quality<",
        "documents_in": 1200,
        "removed": 30,
        "changed": 2,
        "characters_in": 9,
        "characters_out": 8,
    }
    page = tables.preparation_table(replace(view, environment={"data": {"preparation": [step]}}))
    assert '<th scope="row">quality&lt;</th><td>1,200</td><td>30</td><td>2</td>' in page
    assert tables.preparation_table(view) == ""
