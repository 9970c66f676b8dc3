"""How often somebody may try: counted in the store, so that all processes count together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, ip_address, ip_network

import msgspec

from tidemill.domain.errors import RateLimited
from tidemill.domain.identifiers import SECOND, Moment
from tidemill.domain.identity import Attempts
from tidemill.domain.identity_rules import failed, tried
from tidemill.engine.identity.context import Caller, Identity
from tidemill.ports.identity import LoginTable

FORGET_MICROS: Moment = 30 * 60 * SECOND


class Door:
    """What is tried, and from where: an address, an account, and the two together."""

    def __init__(self, caller: Caller, account: str) -> None:
        place = place_of(caller.address)
        self.address = f"address {place}"
        self.account = f"account {account}"
        self.pair = f"account {account} from {place}"

    @property
    def subjects(self) -> list[str]:
        """Everything that is counted."""
        return [self.address, self.account, self.pair]


def place_of(address: str) -> str:
    """Where somebody is: with IPv6 one has not an address but a network of them, a /64 at least."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((found, 64), strict=False))


async def count_try(identity: Identity, door: Door) -> None:
    """Count a try before anything costly is done for it; RateLimited when it is one too many.

    The same for accounts that there are and for those that there are not.
    """
    now = identity.now()
    async with identity.store.transaction() as tx:
        counters = await _change(tx.identity.logins, door.subjects, lambda one: tried(one, now))
        await tx.identity.logins.save_attempts(list(counters.values()), now - FORGET_MICROS)
    locked_until = max(one.locked_until for one in counters.values())
    if locked_until > now:
        wait = (locked_until - now) / SECOND
        raise RateLimited("too many tries: wait before the next one", retry_seconds=wait)


async def count_failure(logins: LoginTable, door: Door, now: Moment) -> None:
    """Count a failure from one address on one account."""
    counters = await _change(logins, [door.pair], lambda one: failed(one, now))
    await logins.save_attempts(list(counters.values()), now - FORGET_MICROS)


async def count_success(logins: LoginTable, door: Door, now: Moment) -> None:
    """Forget the failures before it."""
    counters = await _change(logins, [door.pair], _forgiven)
    await logins.save_attempts(list(counters.values()), now - FORGET_MICROS)


def _forgiven(attempts: Attempts) -> Attempts:
    return msgspec.structs.replace(attempts, failures=0, locked_until=0)


async def _change(
    logins: LoginTable, subjects: list[str], change: Callable[[Attempts], Attempts]
) -> Mapping[str, Attempts]:
    found = await logins.attempts(subjects)
    return {subject: change(attempts) for subject, attempts in found.items()}
