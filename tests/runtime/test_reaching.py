"""Reaching servers at start."""

from __future__ import annotations

import pytest

from tidemill.domain.errors import Unavailable
from tidemill.runtime.probing import answers
from tidemill.runtime.reaching import Reach, Unreachable, without_password

URL = "postgresql://me:secret@host/db"


class ImpatientClock:
    """Time passes only while somebody sleeps, and then at once."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> int:
        return round(self.seconds * 1e6)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


async def test_without_patience_one_try_is_all() -> None:
    tries: list[int] = []

    async def attempt() -> None:
        tries.append(1)
        raise Unavailable("connection refused")

    with pytest.raises(Unreachable) as refused:
        await Reach(ImpatientClock(), 0, print).until("store", URL, attempt)

    assert str(refused.value) == (
        "store postgresql://me:***@host/db cannot be reached: connection refused"
    )
    assert len(tries) == 1


async def test_with_patience_it_is_tried_and_told_every_ten_seconds() -> None:
    clock, told = ImpatientClock(), list[str]()

    async def attempt() -> str:
        if clock.seconds < 25:
            raise Unavailable("connection refused")
        return "here"

    assert await Reach(clock, 60, told.append).until("store", URL, attempt) == "here"
    assert len(told) == 3
    assert told[0].endswith("connection refused; trying for 60 s more")


async def test_patience_ends() -> None:
    clock = ImpatientClock()

    async def attempt() -> None:
        raise Unavailable("connection refused")

    with pytest.raises(Unreachable):
        await Reach(clock, 30, lambda _: None).until("store", URL, attempt)
    assert clock.seconds == pytest.approx(30)


def test_a_library_that_quotes_the_password_is_not_quoted() -> None:
    for text in (f"cannot open {URL}", "bad password 'secret'", "user me:secret"):
        assert "secret" not in without_password(ValueError(text), URL)
    quoted = "postgresql://me:se%40cret@host/db"
    assert "se@cret" not in without_password(ValueError("wrong: se@cret"), quoted)


async def test_what_needs_no_server_always_answers() -> None:
    assert await answers("memory:")
    assert await answers("postgresql://me@/db?host=/run/postgres")
    assert not await answers("kafka://127.0.0.1:9,127.0.0.1:19")
