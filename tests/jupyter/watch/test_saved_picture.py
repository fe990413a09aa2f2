"""The picture beside a live view: made room for at once, drawn by a thread, gone when the view becomes static."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

from tests.jupyter.live import until
from workbench.jupyter.watch import saved_picture as module
from workbench.jupyter.watch.saved_picture import SavedPicture, saved_html


class Output:
    """Outputs under each display id."""

    def __init__(self) -> None:
        self.html: dict[str, str] = {}

    def publish(self, bundle: dict[str, Any], display_id: str, update: bool = False) -> None:
        assert update == (display_id in self.html)
        self.html[display_id] = bundle["text/html"]


def drawing() -> bool:
    return any(thread.name == "workbench-saved-picture" for thread in threading.enumerate())


def test_room_is_made_at_once_and_filled_later() -> None:
    output = Output()
    picture = SavedPicture(lambda: "<img>", output.publish)
    picture.refresh()
    assert output.html == {}, "nothing is drawn for a view that nobody showed"
    picture.show()
    picture.show()
    assert all(html.endswith('</style><div class="wb-saved"></div>') for html in output.html.values())
    assert len(output.html) == 2
    picture.refresh()
    until(lambda: all("<img>" in html for html in output.html.values()))
    assert all("run this cell again" in html for html in output.html.values())


def test_it_is_drawn_now_and_then_only(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    picture = SavedPicture(lambda: drawn.append(1) or "<img>", Output().publish)
    picture.show()
    picture.refresh()
    until(lambda: drawn == [1])
    for _ in range(10):
        picture.refresh()
    assert drawn == [1]
    picture.end()
    until(lambda: not drawing())
    assert drawn == [1]
    # What is due later is drawn by itself: the last change may be the last for a long time.
    monkeypatch.setattr(module, "DRAW_EVERY_SECONDS", 0.2)
    later = SavedPicture(lambda: drawn.append(2) or "<img>", Output().publish)
    later.show()
    later.refresh()
    until(lambda: drawn == [1, 2])
    for _ in range(10):
        later.refresh()
    until(lambda: drawn == [1, 2, 2] and not drawing())


def test_what_has_changed_as_a_whole_is_drawn_now() -> None:
    drawn: list[int] = []
    picture = SavedPicture(lambda: drawn.append(1) or "<img>", Output().publish)
    picture.show()
    picture.refresh()
    until(lambda: drawn == [1])
    picture.refresh()  # in a minute
    picture.refresh(now=True)
    until(lambda: drawn == [1, 1])
    picture.refresh(now=True)
    until(lambda: drawn == [1, 1, 1] and not drawing())
    picture.refresh()
    picture.end()
    until(lambda: not drawing())
    assert drawn == [1, 1, 1]


def test_a_drawing_that_comes_late_does_not_come_back() -> None:
    output, begun, go_on = Output(), threading.Event(), threading.Event()

    def draw() -> str:
        begun.set()
        go_on.wait(10)
        return "<img>"

    picture = SavedPicture(draw, output.publish)
    picture.show()
    picture.refresh()
    assert begun.wait(10)
    clearing = threading.Thread(target=picture.clear)
    clearing.start()
    until(lambda: picture._ended.is_set())
    go_on.set()
    clearing.join(10)
    assert list(output.html.values()) == ['<div class="wb-saved"></div>']


def test_a_run_that_cannot_be_read_leaves_the_last_picture() -> None:
    output = Output()

    def draw() -> str:
        raise FileNotFoundError("deleted")

    picture = SavedPicture(draw, output.publish)
    picture.show()
    picture.refresh()
    until(lambda: not drawing())
    assert [html.endswith('<div class="wb-saved"></div>') for html in output.html.values()] == [True]


def test_its_words_need_no_script() -> None:
    html = saved_html("<table></table>", "while it was open", "run this cell again")
    assert "<script" not in html
    assert re.search("Saved 20.*, while it was open", html)
