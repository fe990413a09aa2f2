"""Who calls: a coroutine, through whatever comprehension, or a plain function, whatever loop is running."""

from __future__ import annotations

import asyncio

from workbench.store.awaited import called_from_coroutine


def method() -> bool:
    return called_from_coroutine()


def test_plain_callers_are_no_coroutines() -> None:
    assert not method()
    assert [method() for _ in range(1)] == [False]


def test_coroutines_are_seen_through_comprehensions_and_not_through_functions() -> None:
    def between() -> bool:
        return method()

    async def body() -> list[bool]:
        return [method(), *(method() for _ in range(1)), *[method() for _ in range(1)], between()]

    assert asyncio.run(body()) == [True, True, True, False]
