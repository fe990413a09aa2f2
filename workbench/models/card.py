"""The README of an exported model: what it is, what it reached, how to load it, what made it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.base.text import many
from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.modular import Modular
from workbench.choices.objectives.two_networks import TwoNetworks
from workbench.recipes.recipe import Recipe
from workbench.store.evaluations import is_part, score_label
from workbench.store.score_table import ScoreRow, notes_of
from workbench.telemetry.baselines import References
from workbench.telemetry.streams import number
from workbench.training.evaluate import points_until

LOADERS = {False: ("AutoModelForMaskedLM", "fill-mask"), True: ("AutoModelForCausalLM", "text-generation")}
"""transformers' class and pipeline by whether the objective is causal."""

# The run read documents as [CLS] text [SEP], whatever these are called. By whether the tokenizer adds both itself.
_MASKED = {
    True: """fill = pipeline("fill-mask", model=model, tokenizer=tokenizer)
fill(f"some text with a {tokenizer.mask_token} in it")""",
    False: """fill = pipeline("fill-mask", model=model, tokenizer=tokenizer)
text = f"{tokenizer.cls_token}some text with a {tokenizer.mask_token} in it{tokenizer.sep_token}"
fill(text, tokenizer_kwargs={"add_special_tokens": False})""",
}
_GENERATE = "print(tokenizer.decode(model.generate(ids, max_new_tokens=20)[0]))"
_CAUSAL = {
    True: f"""ids = tokenizer("some text to go on with", return_tensors="pt").input_ids[:, :-1]  # no [SEP] at the end
{_GENERATE}""",
    False: f"""ids = tokenizer("some text to go on with", add_special_tokens=False).input_ids
ids = torch.tensor([[tokenizer.cls_token_id, *ids]])  # as every document of the run began
{_GENERATE}""",
}
_STATES = {
    True: """states = model(**tokenizer("some text", return_tensors="pt")).last_hidden_state""",
    False: """text = f"{tokenizer.cls_token}some text{tokenizer.sep_token}"
states = model(**tokenizer(text, add_special_tokens=False, return_tensors="pt")).last_hidden_state""",
}
_REPLACED = {framed: text.replace("states", "replaced").replace("last_hidden_state", "logits > 0")
             for framed, text in _STATES.items()}  # fmt: skip


def model_card(
    recipe: Recipe,
    evaluations: dict[str, Any],
    facts: dict[str, Any],
    class_name: str,
    own_class: bool,
    beyond: Mapping[str, str] | None = None,
    framed: bool = True,
    scores: Sequence[ScoreRow] = (),
) -> str:
    """Return the card as Markdown, with the header that the Hugging Face Hub reads.

    Args:
        facts: facts of the model: id of its ``run``, ``step``, ``tokens`` read, ``parameters``, ``layers`` that exist
            now.
        class_name: the model's class in transformers, or in ``workbench.transformers``.
        own_class: whether it is one of ours, which transformers learns by an import.
        beyond: what made the model besides its recipe, by name.
        framed: whether the tokenizer itself adds the tokens that the run's documents begin and end with.
        scores: of benchmarks, at this step.
    """
    causal = recipe.objective.exports_causal
    auto, task = LOADERS[causal]
    if class_name == "WorkbenchModel":  # without a head over the vocabulary
        auto, task = "AutoModel", "feature-extraction"
    elif class_name == "WorkbenchForPreTraining":  # says which tokens were replaced
        auto, task = "AutoModelForPreTraining", "feature-extraction"
    return (
        "\n\n".join(
            part
            for part in (
                f"---\nlibrary_name: transformers\npipeline_tag: {task}\ntags:\n- workbench\n---\n\n# {recipe.name}",
                recipe.notes,
                f"{_architecture(recipe.architecture)} Trained by the workbench: "
                f"{type(recipe.objective).summary()[:1].lower()}{type(recipe.objective).summary()[1:]}",
                _facts(recipe, evaluations, facts, beyond or {}),
                _scores(scores),
                f"## Use\n\n{_use(auto, class_name, own_class, framed)}",
                "## Limits\n\n" + _limits(recipe, own_class, framed),
                f"## Recipe\n\nHash `{recipe.hash}`; {_again(facts, beyond or {})}\n\n```json\n{recipe.to_json()}\n```",
            )
            if part
        )
        + "\n"
    )


def _scores(rows: Sequence[ScoreRow]) -> str:
    """Return the scores of benchmarks as a section, each with what it is held against; empty without any."""
    whole = [row for row in rows if not is_part(row.name)]
    lines = [f"| {score_label(row.name, row.score)} | {row.value} | {row.beside} | "
             f"{row.score.count:,} | {row.over_seeds} |" for row in whole]  # fmt: skip
    notes = [f"* {note}" for note in notes_of(whole)]
    head = "| score | value | held against | items | over seeds |\n|---|---|---|---|---|\n"
    return f"## Scores\n\n{head}" + "\n".join(lines) + "\n\n" + "\n".join(notes) if whole else ""


def _architecture(choice: Architecture) -> str:
    """Return one sentence about this model: a choice's own summary speaks of its defaults."""
    summary = type(choice).summary()
    if not isinstance(choice, Modular):
        return summary
    biases = "biases" if choice.bias else "no biases"
    where = summary.partition(";")[0]
    return f"{where}; positions {choice.positions}, norm {choice.norm}, feed-forward {choice.ffn}, {biases}."


def _again(facts: dict[str, Any], beyond: Mapping[str, str]) -> str:
    if not beyond:
        return "`workbench train --recipe recipe.json` trains it again."
    told = "; ".join(f"{name}: {text}" for name, text in beyond.items())
    return (
        f"`recipe.json` alone does not train it again, for it does not say everything ({told}). "
        f"`workbench notebook {facts['run']}` writes a notebook that begins with what cannot be repeated."
    )


def _facts(recipe: Recipe, evaluations: dict[str, Any], facts: dict[str, Any], beyond: Mapping[str, str]) -> str:
    losses = [
        (each["step"], number(each.get("loss"))) for each in points_until(evaluations.get("heldout"), facts["step"])
    ]
    points = [(step, loss) for step, loss in losses if not math.isnan(loss)]
    references = References.of(evaluations, {}, causal=recipe.objective.causal)
    finished, two = recipe.architecture.layers, isinstance(recipe.objective, TwoNetworks)
    rows = {
        references.title: f"{points[-1][1]:.4f} nats at step {points[-1][0]}" if points else "not evaluated",
        **({"scored": "the generator, which the run trained beside this model"} if two else {}),
        "losses without context": "; ".join(f"{name} {nats:.4f}" for name, nats in references.levels.items())
        or "not known",
        "learned": (references.learned(points[-1][1]) if points else None) or "not known",
        "parameters": f"{facts['parameters']:,}",
        "layers": str(facts["layers"])
        + (f" of {finished}: the run had not grown up" if facts["layers"] < finished else ""),
        "trained for": f"{many(facts['step'], 'step')}, {facts['tokens']:,} tokens, seed {recipe.seed}",
        "data": _knob_text(recipe.data),
        "tokenizer": _knob_text(recipe.data.tokenizer),
        "objective": _knob_text(recipe.objective),
        "architecture": _knob_text(recipe.architecture),
        "depth": _knob_text(recipe.depth),
        "optimizer": _knob_text(recipe.optimizer),
        # A bar would end the table's cell.
        **{name: text.replace("|", "\\|") for name, text in beyond.items()},
    }
    return "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows.items())


def _knob_text(choice: Any) -> str:
    """Return a choice in one cell: its kind, and the knobs that were turned."""
    turned = choice.model_dump(mode="json", exclude_defaults=True, exclude={"kind", "tokenizer"})
    # One level: what a schedule is made of stands in the recipe below.
    knobs = [f"{name} {getattr(getattr(choice, name), 'kind', value)}" for name, value in turned.items()]
    # A bar would end the table's cell.
    return f"`{choice.kind}`" + (": " + ", ".join(knobs).replace("|", "\\|") if knobs else "")


def _use(auto: str, class_name: str, own_class: bool, framed: bool) -> str:
    extra = ", pipeline" if auto == "AutoModelForMaskedLM" else ""
    lines = ["import workbench.transformers  # teaches transformers this model type"] if own_class else []
    lines += [
        *(["import torch"] if auto == "AutoModelForCausalLM" and not framed else []),
        f"from transformers import {auto}, AutoTokenizer{extra}",
        "",
        'tokenizer = AutoTokenizer.from_pretrained("FOLDER")',
        f'model = {auto}.from_pretrained("FOLDER").eval()',
        {"AutoModelForMaskedLM": _MASKED, "AutoModelForCausalLM": _CAUSAL, "AutoModelForPreTraining": _REPLACED}.get(
            auto, _STATES
        )[framed],
    ]
    code = "```python\n" + "\n".join(lines) + "\n```"
    if not own_class:
        return f"A `{class_name}`; transformers alone loads it.\n\n{code}"
    return (
        f"A `{class_name}` of the package `workbench`, which must be installed. The folder holds no code and none is "
        f"downloaded (`trust_remote_code` is not needed).\n\n{code}"
    )


def _limits(recipe: Recipe, own_class: bool, framed: bool) -> str:
    limits = [
        f"* Rows of at most {recipe.data.longest} tokens; the tokenizer cuts when asked to (`truncation=True`).",
        "* Ids at the end of the vocabulary, up to a multiple of 64, are padding and were never seen.",
    ]
    if not framed:
        limits.append(
            "* The tokenizer does not add both tokens between which the run read each document (`cls_token`, "
            "`sep_token`): add them as above."
        )
    if own_class and recipe.objective.exports_causal:
        limits.append("* `generate` reads the whole row again for every token: there is no cache of keys and values.")
    if recipe.data.kind == "embedded":
        limits.append("* Trained on the documentation of installed software: a model to study, not to use.")
    return "\n".join(limits)
