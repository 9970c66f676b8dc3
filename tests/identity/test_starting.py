"""How a process comes by its identity: its signing key, and what it says at its first start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.identity.stage import PASSWORD, ROOT, Clock
from tidemill.domain.errors import InvalidInput, Unauthenticated
from tidemill.engine.identity.accounts import Person
from tidemill.engine.identity.bootstrap import bootstrap
from tidemill.engine.identity.context import Caller
from tidemill.ports.store import Store
from tidemill.runtime.identity_parts import open_identity, tell_how_to_begin
from tidemill.runtime.settings import Settings
from tidemill.runtime.system import SystemEntropy

ENTROPY = SystemEntropy()
PERSON = Person(email=ROOT, password=PASSWORD)


async def told(store: Store, **settings: str) -> str:
    """What a process says at its start."""
    lines: list[str] = []
    await tell_how_to_begin(store, ENTROPY, Settings(**settings), lines.append)  # type: ignore[arg-type]
    return "\n".join(lines)


async def test_the_first_start_says_how_to_begin_and_later_ones_do_not(
    memory_store: Store, clock: Clock
) -> None:
    text = await told(memory_store)
    parts = await open_identity(memory_store, clock, ENTROPY)

    await bootstrap(parts.identity, Caller(), text.rpartition(" ")[2], PERSON)

    assert "/v1/auth/bootstrap" in text
    assert await told(memory_store) == ""
    parts.close()


async def test_a_given_token_is_not_printed(memory_store: Store) -> None:
    text = await told(memory_store, bootstrap_token="one-that-only-we-two-know")

    assert "TIDEMILL_BOOTSTRAP_TOKEN" in text
    assert "only-we-two" not in text


async def test_a_server_for_one_user_says_nothing(memory_store: Store) -> None:
    assert await told(memory_store, auth="single-user") == ""


async def test_servers_of_one_store_sign_with_one_key(any_store: Store, clock: Clock) -> None:
    one, two = [await open_identity(any_store, clock, ENTROPY) for _ in "12"]
    token = (await told(any_store)).rpartition(" ")[2]

    tokens = await bootstrap(one.identity, Caller(), token, PERSON)

    assert (await two.principals.of(tokens.access)).name == "root"
    one.close()
    two.close()


async def test_a_key_file_takes_the_place_of_the_key_in_the_store(
    memory_store: Store, clock: Clock, tmp_path: Path
) -> None:
    file = tmp_path / "signing.key"
    file.write_text(ENTROPY.secret())
    own = await open_identity(memory_store, clock, ENTROPY, Settings(signing_key_file=file))
    stored = await open_identity(memory_store, clock, ENTROPY)
    token = (await told(memory_store)).rpartition(" ")[2]

    tokens = await bootstrap(own.identity, Caller(), token, PERSON)

    assert await own.principals.of(tokens.access)
    with pytest.raises(Unauthenticated):
        await stored.principals.of(tokens.access)
    own.close()
    stored.close()


def test_a_mode_of_registration_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="registration"):
        Settings(registration="everybody")
