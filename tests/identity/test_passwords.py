"""Passwords: how they are hashed, how much of that at once, and what a stranger can measure."""

from __future__ import annotations

import asyncio
from time import process_time

import pytest

from tests.identity.stage import PASSWORD, ROOT, House
from tidemill.credentials import passwords
from tidemill.credentials.passwords import Argon2Passwords
from tidemill.domain.errors import Unavailable


@pytest.fixture
def cheap() -> Argon2Passwords:
    """As little work as can be."""
    return Argon2Passwords(memory_kib=8, passes=1, lanes=1)


async def test_point_08_passwords_are_kept_in_argon2id(cheap: Argon2Passwords) -> None:
    stored = await cheap.hash("a mill by the tide")

    assert stored.startswith("$argon2id$v=19$")
    assert await cheap.verify("a mill by the tide", stored)
    assert not await cheap.verify("a mill by the sea", stored)
    assert stored != await cheap.hash("a mill by the tide")
    cheap.close()


async def test_the_parameters_are_those_of_the_standard() -> None:
    hasher = Argon2Passwords()

    stored = await hasher.hash("a mill by the tide")

    assert "m=65536,t=3,p=4" in stored
    assert not hasher.is_outdated(stored)
    hasher.close()


async def test_without_a_hash_nothing_matches_after_the_same_work(cheap: Argon2Passwords) -> None:
    assert not await cheap.verify("", None)
    assert not await cheap.verify("x", "no hash at all")
    assert cheap.verified == 2
    cheap.close()


async def test_a_hash_with_old_parameters_is_made_anew_at_login(house: House) -> None:
    old = Argon2Passwords(memory_kib=16, passes=2, lanes=1)
    root = (await house.got(house.root, "GET", "/v1/auth/me"))["id"]
    async with house.store.transaction() as tx:
        await tx.identity.accounts.set_password(root, await old.hash(PASSWORD))
    old.close()

    await house.login(ROOT)

    async with house.store.transaction() as tx:
        found = await tx.identity.accounts.get(root)
    assert found is not None
    assert "m=8,t=1,p=1" in (found.password_hash or "")


async def test_there_is_a_bound_on_hashes_that_wait(
    cheap: Argon2Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "WAITING_MAX", 3)

    found = await asyncio.gather(*(cheap.hash("x") for _ in range(5)), return_exceptions=True)

    assert sum(isinstance(one, Unavailable) for one in found) == 2
    cheap.close()


@pytest.mark.slow
@pytest.mark.alone
async def test_point_08_a_stranger_cannot_measure_who_is_there(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasher = Argon2Passwords()
    monkeypatch.setattr(house.identity.hasher, "_argon2", hasher._argon2)
    monkeypatch.setattr(house.identity.hasher, "_nobodys", hasher._nobodys)
    await house.login(ROOT)  # which makes the hash anew
    known: list[float] = []
    unknown: list[float] = []
    for number in range(7):
        for email, times in ((ROOT, known), (f"user-{number}@mill.test", unknown)):
            body = {"email": email, "password": "wrong"}
            begun = process_time()
            headers = {"address": f"10.0.1.{number}"}
            await house.ask("", "POST", "/v1/auth/login", json=body, headers=headers)
            times.append(process_time() - begun)

    # The machine is shared: the count of hashes is exact (see the points), this is a rough look.
    assert min(known) == pytest.approx(min(unknown), rel=0.25)
