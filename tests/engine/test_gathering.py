"""Gathering many questions into one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tidemill.domain.errors import Conflict, TidemillError, Unavailable
from tidemill.engine.gathering import Gatherer


class Desk:
    """Answers batches when it is told to, and remembers them."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.open = asyncio.Event()
        self.open.set()

    async def answer(self, items: Sequence[int]) -> list[int | TidemillError]:
        self.batches.append(list(items))
        await self.open.wait()
        if 13 in items:
            raise ValueError("thirteen")
        return [Conflict("odd") if item == 7 else item * 10 for item in items]


async def test_questions_that_come_together_are_one_batch() -> None:
    desk = Desk()
    gatherer: Gatherer[int, int] = Gatherer(desk.answer)

    assert await asyncio.gather(*map(gatherer.ask, [1, 2, 3])) == [10, 20, 30]
    assert desk.batches == [[1, 2, 3]]


async def test_what_comes_while_a_batch_is_under_way_is_the_next_one() -> None:
    desk = Desk()
    desk.open.clear()
    gatherer: Gatherer[int, int] = Gatherer(desk.answer)

    first = gatherer.put(1)
    await asyncio.sleep(0)
    later = [gatherer.put(item) for item in (2, 3)]
    await asyncio.sleep(0)
    desk.open.set()

    assert [await answer for answer in (first, *later)] == [10, 20, 30]
    assert desk.batches == [[1], [2, 3]]


async def test_two_batches_may_be_under_way() -> None:
    desk = Desk()
    desk.open.clear()
    gatherer: Gatherer[int, int] = Gatherer(desk.answer, at_once=2)

    answers = []
    for item in (1, 2, 3, 4):
        answers.append(gatherer.put(item))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    under_way = list(desk.batches)
    desk.open.set()

    assert under_way == [[1], [2]]
    assert await asyncio.gather(*answers) == [10, 20, 30, 40]
    assert desk.batches == [[1], [2], [3, 4]]


async def test_a_batch_weighs_no_more_than_it_may_or_holds_one_item() -> None:
    desk = Desk()
    gatherer: Gatherer[int, int] = Gatherer(desk.answer, batch_max=5, weigh=lambda item: item)

    await asyncio.gather(*map(gatherer.ask, [2, 3, 9, 1]))

    assert desk.batches == [[2, 3], [9], [1]]


async def test_one_error_is_told_to_the_one_who_asked() -> None:
    gatherer: Gatherer[int, int] = Gatherer(Desk().answer)

    one, other = await asyncio.gather(gatherer.ask(7), gatherer.ask(1), return_exceptions=True)

    assert isinstance(one, Conflict)
    assert other == 10


async def test_when_the_work_fails_everyone_in_the_batch_is_told_and_the_next_goes_on() -> None:
    gatherer: Gatherer[int, int] = Gatherer(Desk().answer)

    told = await asyncio.gather(gatherer.ask(13), gatherer.ask(1), return_exceptions=True)

    assert [str(error) for error in told] == ["thirteen", "thirteen"]
    assert await gatherer.ask(2) == 20


async def test_too_many_who_wait_are_refused() -> None:
    desk = Desk()
    desk.open.clear()
    gatherer: Gatherer[int, int] = Gatherer(desk.answer, waiting_max=2)
    answers = [gatherer.put(1), gatherer.put(2)]

    with pytest.raises(Unavailable) as refused:
        await gatherer.ask(3)

    assert refused.value.code == "OVERLOADED"
    assert gatherer.waiting == 2
    desk.open.set()
    assert await asyncio.gather(*answers) == [10, 20]


async def test_whoever_has_gone_is_in_nobodys_way() -> None:
    desk = Desk()
    desk.open.clear()
    gatherer: Gatherer[int, int] = Gatherer(desk.answer)
    impatient = asyncio.create_task(gatherer.ask(1))
    patient = asyncio.create_task(gatherer.ask(2))
    await asyncio.sleep(0)

    impatient.cancel()
    await asyncio.sleep(0)
    desk.open.set()

    assert await patient == 20


async def test_closing_answers_those_who_wait_and_refuses_others() -> None:
    gatherer: Gatherer[int, int] = Gatherer(Desk().answer)
    answer = gatherer.put(1)

    await gatherer.close()
    await gatherer.close()

    assert answer.result() == 10
    with pytest.raises(Unavailable, match="about to stop"):
        await gatherer.ask(2)
