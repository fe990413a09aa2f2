"""The latest question wins, none is answered twice, and idle leaves no thread."""

from __future__ import annotations

import doctest
import threading

import workbench.jupyter.feed.latest as module
from workbench.jupyter.feed.latest import Latest


def test_example() -> None:
    assert doctest.testmod(module).failed == 0


def test_what_was_overtaken_is_never_begun() -> None:
    answered: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def answer(question: int) -> None:
        answered.append(question)
        begun.set()
        assert go_on.wait(10)

    latest = Latest(answer, "test-latest")
    latest.ask(0)
    assert begun.wait(10)
    for question in range(1, 100):
        latest.ask(question)
    go_on.set()
    assert latest.wait(10)
    assert answered == [0, 99]


def test_questions_of_many_threads_end_with_the_last_one_answered() -> None:
    answered: list[int] = []
    latest = Latest(answered.append, "test-latest-many")
    askers = [threading.Thread(target=lambda: [latest.ask(i) for i in range(200)]) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    latest.ask(1000)
    assert latest.wait(10)
    assert answered[-1] == 1000
    assert not [thread for thread in threading.enumerate() if thread.name == "test-latest-many"]


def test_after_closing_nothing_begins() -> None:
    answered: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def answer(question: int) -> None:
        begun.set()
        assert go_on.wait(10)
        answered.append(question)

    latest = Latest(answer, "test-latest-closed")
    latest.ask(1)
    assert begun.wait(10)
    latest.ask(2)
    latest.close()
    latest.ask(3)
    go_on.set()
    assert latest.wait(10)
    assert answered == [1]
