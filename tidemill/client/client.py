"""The client: every resource of the API, as methods of one object."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self, Unpack

import httpx

from tidemill.client.auth import AuthCalls
from tidemill.client.bulk import BulkCalls
from tidemill.client.choosing import DEFAULT_SERVER, Choice, choose_or_default
from tidemill.client.connection import Connection, Place
from tidemill.client.credentials import Credentials, FixedToken
from tidemill.client.dead_letters import DeadLetterCalls
from tidemill.client.identity import IdentityCalls
from tidemill.client.jobs import JobCalls
from tidemill.client.looking import LookingCalls
from tidemill.client.runs import RunCalls, StartOptions
from tidemill.client.secrets import SecretCalls
from tidemill.client.workflows import WorkflowCalls
from tidemill.domain.workflow import Workflow
from tidemill.protocol.resources import EventView, RunView


class Client(
    RunCalls,
    JobCalls,
    BulkCalls,
    WorkflowCalls,
    DeadLetterCalls,
    LookingCalls,
    AuthCalls,
    IdentityCalls,
    SecretCalls,
):
    """Speaks to one Tidemill server; an async context manager.

    `server` is http://HOST:PORT, https://HOST or unix:PATH. `token` is an API key or an access
    token, or an object that renews them.
    """

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        token: str | Credentials | None = None,
        namespace: str | None = None,
        timeout: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        shown = FixedToken(token) if token is None or isinstance(token, str) else token
        place = Place(server=server, namespace=namespace, timeout=timeout, transport=transport)
        super().__init__(Connection(place, shown))

    @classmethod
    def over(cls, connection: Connection) -> Self:
        """A client over a connection that was made elsewhere."""
        client = cls.__new__(cls)
        RunCalls.__init__(client, connection)
        return client

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Self:
        """The server that TIDEMILL_SERVER or the current context names, else the usual one here."""
        return cls.chosen(choose_or_default(os.environ if environ is None else environ))

    @classmethod
    def chosen(cls, choice: Choice) -> Self:
        """The server of a choice, with its credentials."""
        place = Place(server=choice.server, namespace=choice.namespace, origin=choice.named_by)
        return cls.over(Connection(place, choice.credentials))

    @property
    def server(self) -> str:
        """Whom it speaks to."""
        return self.connection.place.server

    async def submit(
        self,
        workflow: str | Workflow,
        input: Mapping[str, Any] | None = None,  # noqa: A002 - the word that the API has
        **options: Unpack[StartOptions],
    ) -> RunHandle:
        """Like `start`; what comes back can be waited for."""
        started = await self.start(workflow, input, **options)
        return RunHandle(self, started.id, created=started.created)

    def handle(self, run_id: str) -> RunHandle:
        """A run that is there already."""
        return RunHandle(self, run_id, created=False)

    async def close(self) -> None:
        """Let go of every connection; safe to call twice."""
        await self.connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class RunHandle:
    """One run, seen through a client; `created` is False when its key had started it before."""

    def __init__(self, client: Client, run_id: str, *, created: bool) -> None:
        self.id = run_id
        self.created = created
        self._client = client

    def __repr__(self) -> str:
        return f"RunHandle({self.id!r})"

    async def status(self) -> RunView:
        """The run as it is now."""
        return await self._client.run(self.id)

    async def wait(self, timeout: float | None = None) -> RunView:
        """The run as it ended; TimeoutError when it has not after so many seconds."""
        return await self._client.wait(self.id, timeout)

    async def result(self, timeout: float | None = None) -> Any:
        """What the run led to; RunFailed when it did not succeed."""
        return await self._client.result(self.id, timeout)

    def events(self, after: str | None = None) -> AsyncIterator[EventView]:
        """What happens in the run, without end."""
        return self._client.events(self.id, after=after)

    async def cancel(self) -> RunView:
        """Stop it."""
        return await self._client.cancel(self.id)
