"""What the roles of one process share."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tidemill.domain.errors import InvalidInput, Unavailable
from tidemill.runtime.addresses import parse_store
from tidemill.runtime.parts import Parts
from tidemill.runtime.reaching import Unreachable
from tidemill.runtime.settings import Settings


def parts(start_retry: float) -> Parts:
    store = parse_store("postgresql://somebody:secret@nowhere/db")
    return Parts(Settings(store=store, bus="memory:", start_retry=start_retry), lambda _: None)


async def test_a_store_that_goes_away_while_a_role_begins_is_waited_for() -> None:
    said: Iterator[Unavailable | str] = iter(
        [Unavailable("connection was closed"), "the schema is there"]
    )

    async def ask() -> str:
        answer = next(said)
        if isinstance(answer, Unavailable):
            raise answer
        return answer

    assert await parts(start_retry=10).reached(ask) == "the schema is there"


async def test_a_store_that_goes_away_while_a_role_begins_is_named_without_its_password() -> None:
    async def ask() -> str:
        raise Unavailable("connection was closed")

    with pytest.raises(Unreachable, match="connection was closed") as raised:
        await parts(start_retry=0).reached(ask)

    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "option"),
    [
        (Settings(store=parse_store("postgresql://nowhere/db")), "--store"),
        (Settings(bus="postgresql://nowhere/db"), "--bus"),
    ],
)
def test_an_extra_that_is_missing_is_said_of_the_option_that_needs_it(
    settings: Settings, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tidemill.buses.postgres", None)

    with pytest.raises(InvalidInput) as refused:
        Parts(settings, lambda _: None)

    expected = f"{option}: PostgreSQL needs an extra: pip install 'tidemill[postgres]'"
    assert str(refused.value) == expected
