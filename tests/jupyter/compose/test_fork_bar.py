"""The bar above the forms of a fork: checkpoints to choose from, and the way back."""

from __future__ import annotations

from tests.jupyter.live import run_folder
from workbench.jupyter.compose.fork_bar import ForkBar
from workbench.store.folder import RunFolder


def test_it_offers_the_checkpoints_and_tells_which_was_chosen(folder: RunFolder) -> None:
    for step in (5, 1200):
        (folder.checkpoints / f"step-{step}").mkdir(parents=True)
    moved: list[int] = []
    ended: list[bool] = []
    bar = ForkBar(moved.append, lambda: ended.append(True))
    assert bar.children == ()
    bar.show(folder, 5)
    assert "a &lt;b&gt;run&lt;/b&gt;" in bar.text.value, "names are data"
    assert bar.steps.options == (("from step 1,200 (newest)", 1200), ("from step 5", 5))
    assert (bar.steps.value, moved) == (5, []), "showing is no choice of the user's"
    bar.steps.value = 1200
    assert moved == [1200]
    bar.back.click()
    assert ended == [True]
    bar.hide()
    assert bar.children == ()


def test_another_run_is_shown_without_a_choice(folder: RunFolder) -> None:
    (folder.checkpoints / "step-5").mkdir(parents=True)
    other = run_folder(folder.path.parent / "run-b", "finished", False, name="b")
    (other.checkpoints / "step-9").mkdir(parents=True)
    moved: list[int] = []
    bar = ForkBar(moved.append, lambda: None)
    bar.show(folder, 5)
    bar.show(other, 9)
    assert (bar.steps.value, moved) == (9, [])
    bar.close()
