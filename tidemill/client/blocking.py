"""The client for programs without an event loop: the same methods, which wait for the answer.

There is no second copy of anything: each method is taken from the asynchronous client, with its
types, and run in the thread of a portal.
"""

from __future__ import annotations

import functools
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from tidemill.client.choosing import DEFAULT_SERVER, choose_or_default
from tidemill.client.client import Client, RunHandle
from tidemill.client.credentials import Credentials
from tidemill.client.portal import Portal
from tidemill.protocol.resources import EventView, RunView

P = ParamSpec("P")
R = TypeVar("R")


class _Answer(Generic[P, R]):
    """A method of the asynchronous client that answers once."""

    def __init__(self, method: Callable[Concatenate[Client, P], Coroutine[Any, Any, R]]) -> None:
        self._method = method

    def __get__(self, twin: BlockingClient, kind: type[BlockingClient]) -> Callable[P, R]:
        @functools.wraps(self._method)
        def call(*given: P.args, **named: P.kwargs) -> R:
            return twin.portal.call(self._method(twin.twin, *given, **named))

        return call


class _Items(Generic[P, R]):
    """A method of the asynchronous client that answers item by item."""

    def __init__(self, method: Callable[Concatenate[Client, P], AsyncIterator[R]]) -> None:
        self._method = method

    def __get__(self, twin: BlockingClient, kind: type[BlockingClient]) -> Callable[P, Iterator[R]]:
        @functools.wraps(self._method)
        def call(*given: P.args, **named: P.kwargs) -> Iterator[R]:
            return twin.portal.iterate(self._method(twin.twin, *given, **named))

        return call


class _Handle(Generic[P]):
    """A method of the asynchronous client that answers with a handle."""

    def __init__(
        self, method: Callable[Concatenate[Client, P], Coroutine[Any, Any, RunHandle]]
    ) -> None:
        self._method = method

    def __get__(
        self, twin: BlockingClient, kind: type[BlockingClient]
    ) -> Callable[P, BlockingRunHandle]:
        @functools.wraps(self._method)
        def call(*given: P.args, **named: P.kwargs) -> BlockingRunHandle:
            handle = twin.portal.call(self._method(twin.twin, *given, **named))
            return BlockingRunHandle(twin, handle.id, created=handle.created)

        return call


class BlockingClient:
    """Speaks to one Tidemill server; a context manager. See `Client` for what each method does.

    `twin` is an asynchronous client that nobody else uses, in place of a server.
    """

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        token: str | Credentials | None = None,
        namespace: str | None = None,
        timeout: float = 30.0,
        twin: Client | None = None,
    ) -> None:
        self.twin = twin or Client(server, token=token, namespace=namespace, timeout=timeout)
        self.portal = Portal()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Self:
        """The server that TIDEMILL_SERVER or the current context names, else the usual one here."""
        choice = choose_or_default(os.environ if environ is None else environ)
        return cls(twin=Client.chosen(choice))

    @property
    def server(self) -> str:
        """Whom it speaks to."""
        return self.twin.server

    start = _Answer(Client.start)
    submit = _Handle(Client.submit)
    runs = _Items(Client.runs)
    run = _Answer(Client.run)
    tasks = _Items(Client.tasks)
    task = _Answer(Client.task)
    outcome = _Answer(Client.outcome)
    wait = _Answer(Client.wait)
    result = _Answer(Client.result)
    cancel = _Answer(Client.cancel)
    pause = _Answer(Client.pause)
    resume = _Answer(Client.resume)
    retry = _Answer(Client.retry)

    submit_job = _Answer(Client.submit_job)
    jobs = _Items(Client.jobs)
    job = _Answer(Client.job)
    bulk = _Items(Client.bulk)

    deploy = _Answer(Client.deploy)
    validate = _Answer(Client.validate)
    workflows = _Items(Client.workflows)
    workflow = _Answer(Client.workflow)
    versions = _Items(Client.versions)
    version = _Answer(Client.version)
    delete_workflow = _Answer(Client.delete_workflow)

    dead_letters = _Items(Client.dead_letters)
    dead_letter_groups = _Answer(Client.dead_letter_groups)
    replay = _Answer(Client.replay)
    replay_many = _Answer(Client.replay_many)
    discard = _Answer(Client.discard)

    workers = _Answer(Client.workers)
    queues = _Answer(Client.queues)
    overview = _Answer(Client.overview)
    events = _Items(Client.events)

    login = _Answer(Client.login)
    refresh = _Answer(Client.refresh)
    logout = _Answer(Client.logout)
    me = _Answer(Client.me)
    bootstrap = _Answer(Client.bootstrap)
    register = _Answer(Client.register)
    change_password = _Answer(Client.change_password)

    users = _Items(Client.users)
    user = _Answer(Client.user)
    create_user = _Answer(Client.create_user)
    change_user = _Answer(Client.change_user)
    invitations = _Items(Client.invitations)
    invite = _Answer(Client.invite)
    withdraw_invitation = _Answer(Client.withdraw_invitation)
    members = _Items(Client.members)
    add_member = _Answer(Client.add_member)
    set_member = _Answer(Client.set_member)
    remove_member = _Answer(Client.remove_member)
    service_accounts = _Items(Client.service_accounts)
    create_service_account = _Answer(Client.create_service_account)
    disable_service_account = _Answer(Client.disable_service_account)
    keys = _Items(Client.keys)
    create_key = _Answer(Client.create_key)
    revoke_key = _Answer(Client.revoke_key)
    namespaces = _Items(Client.namespaces)
    namespace = _Answer(Client.namespace)
    create_namespace = _Answer(Client.create_namespace)
    change_namespace = _Answer(Client.change_namespace)
    audit = _Items(Client.audit)
    verify_audit = _Answer(Client.verify_audit)

    secrets = _Answer(Client.secrets)
    put_secret = _Answer(Client.put_secret)
    delete_secret = _Answer(Client.delete_secret)

    def handle(self, run_id: str) -> BlockingRunHandle:
        """A run that is there already."""
        return BlockingRunHandle(self, run_id, created=False)

    def close(self) -> None:
        """Let go of every connection and end the thread; safe to call twice."""
        if not self.portal.closed:
            self.portal.call(self.twin.close())
            self.portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BlockingRunHandle:
    """One run, seen through a blocking client."""

    def __init__(self, client: BlockingClient, run_id: str, *, created: bool) -> None:
        self.id = run_id
        self.created = created
        self._client = client

    def __repr__(self) -> str:
        return f"BlockingRunHandle({self.id!r})"

    def status(self) -> RunView:
        """The run as it is now."""
        return self._client.run(self.id)

    def wait(self, timeout: float | None = None) -> RunView:
        """The run as it ended; TimeoutError when it has not after so many seconds."""
        return self._client.wait(self.id, timeout)

    def result(self, timeout: float | None = None) -> Any:
        """What the run led to; RunFailed when it did not succeed."""
        return self._client.result(self.id, timeout)

    def events(self, after: str | None = None) -> Iterator[EventView]:
        """What happens in the run, without end."""
        return self._client.events(self.id, after=after)

    def cancel(self) -> RunView:
        """Stop it."""
        return self._client.cancel(self.id)
