"""Who asks is looked up for every request, and for many requests at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from tests.identity.stage import House
from tidemill.engine.gathering import Gatherer
from tidemill.ports.identity import FamilyHolder
from tidemill.stores.tables.identity_reader import StoreIdentityReader


async def test_requests_that_come_together_are_looked_up_together(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    real = StoreIdentityReader.family_holders

    async def counted(self: StoreIdentityReader, ids: Sequence[str]) -> Mapping[str, FamilyHolder]:
        batches.append(len(ids))
        await asyncio.sleep(0)
        return await real(self, ids)

    monkeypatch.setattr(StoreIdentityReader, "family_holders", counted)
    tokens = [house.root, *[await house.user(f"u{n}@mill.test") for n in range(4)]]
    batches.clear()

    answers = await asyncio.gather(
        *(house.ask(tokens[n % 5], "GET", "/v1/auth/me") for n in range(100))
    )

    assert {answer.status_code for answer in answers} == {200}
    assert len(batches) < 20
    ids = {answer.json()["id"] for answer in answers}
    assert len(ids) == 5


async def test_one_request_after_another_is_looked_up_each_time(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = StoreIdentityReader.family_holders

    async def counted(self: StoreIdentityReader, ids: Sequence[str]) -> Mapping[str, FamilyHolder]:
        asked.append(len(ids))
        return await real(self, ids)

    monkeypatch.setattr(StoreIdentityReader, "family_holders", counted)

    for _ in range(5):
        await house.got(house.root, "GET", "/v1/auth/me")

    assert asked == [1] * 5


async def test_who_was_just_answered_can_ask_again_at_once() -> None:
    async def double(numbers: Sequence[int]) -> list[int]:
        return [2 * number for number in numbers]

    gatherer: Gatherer[int, int] = Gatherer(double)

    async with asyncio.timeout(5):
        found = [await gatherer.ask(number) for number in range(50)]

    assert found == [2 * number for number in range(50)]
