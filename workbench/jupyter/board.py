"""``wb.Board``: everybody's runs, answers in lessons and leaderboards, for who teaches."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import traitlets

from workbench.base.text import plain
from workbench.client.launch import launch
from workbench.client.listing import Listing
from workbench.jupyter import cell_widgets
from workbench.jupyter.bundles import BundledWidget, code, style
from workbench.jupyter.headless import headless
from workbench.jupyter.runs.runs_table import RunsTable
from workbench.jupyter.saved_output import VIEW, view_bundle
from workbench.launchers.processes import child_environment, module_command
from workbench.recipes.recipe import Recipe
from workbench.store.folder import runs_root
from workbench.workshop.board import board
from workbench.workshop.tables import board_html, board_text
from workbench.workshop.task import recipe_fields

Put = Callable[[Recipe, str], None]


class BoardAnswers:
    """A page's questions to the board, and the page told of what changes.

    Args:
        table: of the runs, which follows them. tell: takes a message to the page.
        put: puts the recipe of an entry into a form, with words about it; None where there is no form.
    """

    def __init__(self, table: RunsTable, tell: Callable[[dict[str, Any]], None], put: Put | None = None) -> None:
        self._table, self._tell, self._put = table, tell, put
        self._told: dict[str, Any] | None = None
        table.observe(lambda _change: self._look(), names="rows")

    def hear(self, message: Any) -> bool:
        """Take a message of the page; returns False for one that is not about the board."""
        asked = message.get("board") if isinstance(message, dict) else None
        if asked not in ("open", "look", "put", "launch", "enter"):
            return False
        if asked == "open":
            # A page that was loaded again has nothing.
            self._told = {}
        try:
            if asked in ("put", "launch"):
                self._reproduce(message, asked)
            elif asked == "enter":
                # To score a model takes seconds, in which the page asks other things.
                chosen = str(message.get("run")), str(message.get("task"))
                threading.Thread(target=self._enter, args=chosen, name="workbench-board-enter", daemon=True).start()
        except Exception as error:  # the board is where the user who pressed looks
            self._tell({"board": "said", "text": str(error) or type(error).__name__, "error": True})
        self._look()
        return True

    def _look(self) -> None:
        # Not before a page asks: most Labs never show the board.
        if self._told is None:
            return
        found = board(self._table.root, self._table.rows)
        if found != self._told:
            self._told = found
            self._tell({"board": "shown", "found": found})

    def _enter(self, run: str, task: str) -> None:
        command = module_command("workbench", "enter", f"--runs={self._table.root}", "--", run, task)
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=child_environment()
        )
        said = done.stdout if done.returncode == 0 else done.stderr.rpartition("error: ")[2]
        self._tell({"board": "said", "text": said.strip(), "error": done.returncode != 0})
        self._look()

    def _reproduce(self, message: Mapping[str, Any], how: str) -> None:
        fields = recipe_fields(self._table.root, str(message.get("task")), str(message.get("recipe")))
        recipe = Recipe.model_validate(fields)
        if how == "put" and self._put is not None:
            self._put(recipe, f"recipe {recipe.hash} of the leaderboard")
            said = f"the recipe of {plain(recipe.name)} is in the form; Undo takes it back"
        else:
            notices: list[str] = []
            run = launch(recipe, runs_dir=self._table.root, say=notices.append)
            said = "; ".join([f"launched {plain(run.name)} again", *notices])
            self._table.refresh()
        self._tell({"board": "said", "text": said, "error": False})


class Board(BundledWidget):
    """Everybody's runs by owner, live; predictions beside outcomes of each lesson; the leaderboard of each task.

    Args:
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.
        live: follow the runs; else tables as they stand. None: wherever there is a page.

    Example:
        >>> import workbench as wb
        >>> wb.Board()  # doctest: +SKIP
    """

    _code = code("board")
    _css = style("board")

    can_put = traitlets.Bool(False).tag(sync=True)

    def __init__(self, runs_dir: str | Path | None = None, *, live: bool | None = None) -> None:
        self.root = runs_root(runs_dir)
        self._live = not headless() if live is None else live
        super().__init__()
        self._table: RunsTable | None = None
        if self._live:
            self._table = RunsTable(self.root)
            answers = BoardAnswers(self._table, lambda message: self.send(message))
            self.on_msg(lambda _widget, message, _buffers: answers.hear(message))

    @property
    def found(self) -> dict[str, Any]:
        """Return the board as it stands: :func:`workbench.workshop.board.board`."""
        return board(self.root, Listing(self.root).look().rows)

    def __repr__(self) -> str:
        return board_text(self.found)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        found = self.found
        still = {"text/html": board_html(found), "text/plain": board_text(found)}
        if not self._live:
            return still
        cell_widgets.shown(self)
        return {VIEW: view_bundle(self.model_id, "")[VIEW], **still}

    def close(self) -> None:
        """Stop reading and leave the page."""
        cell_widgets.forget(self)
        table: RunsTable | None = getattr(self, "_table", None)
        if table is not None:
            table.close()
        super().close()
