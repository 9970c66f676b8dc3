"""A proxy before PostgreSQL that can lose the answer to a COMMIT, or all that is asked."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tests.servers.proxy import Line, Proxy, proxied

COMMIT = b"COMMIT\0"


class LossyProxy(Proxy):
    """Passes everything on until `lose_next_commit` is set: then one answer never arrives.

    While `frozen`, nothing arrives at all, as with a server that is stopped.
    """

    lose_next_commit = False
    frozen = False

    async def carry_questions(self, reader: asyncio.StreamReader, line: Line) -> None:
        """Pass on what the client asks, or lose what was asked for to be lost."""
        while data := await reader.read(65_536):
            if self.frozen:
                continue
            losing = self.lose_next_commit and COMMIT in data
            if losing:
                line.answers.cancel()
                await asyncio.wait([line.answers])
            line.to_server.write(data)
            await line.to_server.drain()
            if losing:
                self.lose_next_commit = False
                await line.from_server.read(65_536)  # it has committed, and nobody hears of it
                return


def lossy_proxy(dsn: str, folder: Path) -> AbstractAsyncContextManager[tuple[LossyProxy, str]]:
    """A proxy before the server of the address given, and its own address."""
    return proxied(LossyProxy, dsn, folder)
