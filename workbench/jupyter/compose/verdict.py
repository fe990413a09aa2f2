"""The line below the forms: whether the recipe can run, what is wrong first, and what the user is told meanwhile."""

from __future__ import annotations

import html
from collections.abc import Sequence

import ipywidgets
import traitlets

from workbench.base.text import many
from workbench.choices.choice import Problem
from workbench.jupyter.compose.composition import Composition
from workbench.jupyter.compose.knob import Brought, brought_lines
from workbench.jupyter.compose.recipe_editor import Edited
from workbench.jupyter.compose.recipe_texts import RecipeTexts
from workbench.jupyter.light_widgets import Light


class Verdict(Light, ipywidgets.HTML):
    """The state of a composition, in one sentence."""

    doubted = traitlets.Bool(False, help="a recipe that breaks no rule and yet is not advised")

    def __init__(self) -> None:
        super().__init__()
        self.add_class("lab-verdict")
        # What is shown of a recipe, around its verdict; nothing where something else is.
        self._around: tuple[str, str, str] | None = None
        # Once a forecast judges recipes, one that breaks no rule is not called ready before it has.
        self._awaits = False
        # Hash of what the forecast is of: of a fork, what that has left to train.
        self._awaited = ""
        self._judged = ("", "")
        self._reset = ""

    @property
    def doubt(self) -> str:
        """The warning against the recipe as it is composed now; empty where there is none, or nobody knows yet."""
        judged, doubt = self._judged
        return doubt if judged == self._awaited else ""

    def say(self, text: str, bad: bool = False, whole: str = "") -> None:
        """Tell the user something, until the next change; ``whole``: more, in its tooltip."""
        self._around = None
        kind = "lab-bad" if bad else "lab-said"
        # The way out comes first: a long text is cut.
        before = f"{self._reset} · " if bad and self._reset else ""
        self.value = f"{before}<span class='{kind}' title='{html.escape(whole or text)}'>{html.escape(text)}</span>"

    def await_forecast(self, recipe: str) -> None:
        """Take for the composed recipe's verdict that of the recipe with this hash."""
        if not self._awaits or recipe != self._awaited:
            self._awaits, self._awaited = True, recipe
            self._draw()

    def judge(self, recipe: str, doubt: str) -> None:
        """Hear what its forecast says of a recipe that breaks no rule.

        Args:
            recipe: its hash.
            doubt: why it will not get far; empty where nothing speaks against it.
        """
        self._judged = recipe, doubt
        self._draw()

    def show(
        self,
        composition: Composition,
        rest: list[Problem],
        count: int,
        message: str,
        brought: Sequence[Brought] = (),
        texts: RecipeTexts | None = None,
    ) -> None:
        """Show the state of the recipe, and first its first problem.

        Args:
            rest: problems that no knob shows; they come before those that one does.
            count: of knobs that were changed.
            message: what was just done.
            brought: what changed with them, by another choice.
            texts: text on the page that is not applied is all that is spoken of; of what was edited elsewhere and is
                not applied, Launch applies nothing.
        """
        # Last: where there is no room for both, whether the recipe can run is what stays.
        said = html.escape(message)
        message = f" · <span class='lab-said' title='{said}'>{said}</span>" if message else ""
        began = html.escape(composition.state.began)
        self._reset = reset = (
            f"<button class='lab-all' title='every knob as {began} has it'>reset all</button>" if count else ""
        )
        if texts is not None and (edited := texts.edited) is not None:
            self._show_edited(edited)
            return
        if composition.recipe is not None:
            changed = f"{many(count, 'knob')} changed" if count else f"as {began} has it"
            if texts is not None and (left := texts.left):
                views = " and ".join(left)
                why = f"what was edited in {views} is not applied: go there to apply or revert it"
                changed = f"<span class='lab-bad' title='{why}'>without the edits in {views}</span> · {changed}"
            if lines := brought_lines(brought):
                short = ", ".join(line.partition(":")[0] for line in lines)
                changed += f" <span title='{html.escape('; '.join(lines))}'>{short}</span>"
            self._around = composition.recipe.hash, f"{changed} {reset}", message
            self._awaited = composition.recipe.hash
            self._draw()
            return
        self._around, self._awaited = None, ""
        problems = composition.problems
        first = (rest or problems)[0]
        path, what = html.escape(first.path), html.escape(f"{first.path}: {first.message}")
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        # The ways out come first: a long reason is cut, and whole in its tooltip.
        told = f"<b>cannot run</b> {reset} {what}{more}"
        if not rest:
            # The knob says below itself what is wrong with it, and the line of help, too.
            told = f"<b>cannot run</b>: {path}{more} <button class='lab-go' data-path='{path}'>show</button> {reset}"
        self.value = f"<span class='lab-bad' title='{what}'>{told}</span>{message}"

    def _show_edited(self, edited: Edited) -> None:
        self._around = None
        change, why = html.escape(edited.change), html.escape(edited.why)
        if why:
            self.value = (
                f"<span class='lab-bad' title='{why}'><b>cannot run</b> the {edited.language} as edited: {why}</span>"
            )
        else:
            said = f"<b>edited, not applied</b>: Launch and Race apply it first: {change}"
            self.value = f"<span class='lab-said' title='{change}'>{said}</span>"

    def _draw(self) -> None:
        doubt = html.escape(self.doubt)
        self.doubted = bool(doubt)
        if self._around is None:
            return
        recipe, after, message = self._around
        if doubt:
            # The ways out come first: a long doubt is cut, and whole in its tooltip.
            bad = f"<span class='lab-bad' data-recipe='{recipe}' title='{doubt}'>{doubt}</span>"
            self.value = f"{after} · {bad}{message}"
            return
        word, title = "ready", ""
        if self._awaits and self._judged[0] != self._awaited:
            word, title = "Ready. Forecast follows.", "it breaks no rule; whether it fits here is being worked out"
        state = f"<span class='lab-good' data-recipe='{recipe}' title='{title}'>{word}</span>"
        self.value = f"{state} {after}{message}"
