"""Passwords in argon2id, on a few threads of their own.

The parameters are those of RFC 9106 for machines with little memory to spare: 64 MiB, three passes,
four lanes. A hash says with which parameters it was made; one with others is made anew at the next
login. So many at once, and so many waiting: whoever comes then is told to try again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher as Argon2
from argon2 import Type
from argon2.exceptions import InvalidHashError, VerificationError

from tidemill.domain.errors import Unavailable

MEMORY_KIB = 64 * 1024
PASSES = 3
LANES = 4
THREADS = 2
WAITING_MAX = 64

T = TypeVar("T")


class Argon2Passwords:
    """Implements ports.identity.PasswordHasher."""

    def __init__(
        self,
        *,
        memory_kib: int = MEMORY_KIB,
        passes: int = PASSES,
        lanes: int = LANES,
        threads: int = THREADS,
    ) -> None:
        self._argon2 = Argon2(
            time_cost=passes, memory_cost=memory_kib, parallelism=lanes, type=Type.ID
        )
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="passwords")
        self._under_way = 0
        # What stands for the hash of nobody: the same work to compare with, and no password fits.
        self._nobodys = f"$argon2id$v=19$m={memory_kib},t={passes},p={lanes}${'A' * 22}${'A' * 43}"
        self.verified = 0  # how often the slow work was done

    async def hash(self, password: str) -> str:
        """What to store of a password."""
        return await self._slowly(lambda: self._argon2.hash(password))

    async def verify(self, password: str, stored: str | None) -> bool:
        """Whether it is the password; without a hash, False after the same work."""
        return await self._slowly(lambda: self._verify(password, stored))

    def is_outdated(self, stored: str) -> bool:
        """Whether a hash was made with other parameters than are used today."""
        return self._argon2.check_needs_rehash(stored)

    def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _verify(self, password: str, stored: str | None) -> bool:
        self.verified += 1
        try:
            matches = self._argon2.verify(stored or self._nobodys, password)
        except (VerificationError, InvalidHashError):
            return False
        return matches and stored is not None

    async def _slowly(self, work: Callable[[], T]) -> T:
        if self._under_way >= WAITING_MAX:
            raise Unavailable("too many passwords are being checked: try again in a moment")
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._under_way -= 1
