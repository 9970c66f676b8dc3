"""Starting runs of Python workflows on a server, and following them there."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, Generic, Protocol, TypedDict, TypeVar

from tidemill.domain.errors import InvalidWorkflow, Problem, TidemillError, Unavailable
from tidemill.domain.run import RUN_ENDED
from tidemill.domain.workflow import OUTPUT_ID, Workflow

R_co = TypeVar("R_co", covariant=True)

CLIENTS_MAX = 8
PATIENCE_SECONDS = 5.0
LACK_OF_WORKERS = "WORKERS"
OLDEST = "0"
_LOCAL = "<locals>"
_VARIABLES = {"server": "TIDEMILL_SERVER", "namespace": "TIDEMILL_NAMESPACE"}
_READ = ("TIDEMILL_", "XDG_CONFIG_HOME")

log = logging.getLogger(__name__)


class SubmitOptions(TypedDict, total=False):
    """Options of `flow.options(...)`, for runs that are submitted."""

    key: str  # the same key names the same run
    labels: Mapping[str, str]
    server: str  # else TIDEMILL_SERVER, the current context, or the server of this machine
    namespace: str


class Flow(Protocol[R_co]):
    """What can be submitted."""

    @property
    def definition(self) -> Workflow: ...
    def result_of(self, value: Any) -> R_co: ...


class RunHandle(Generic[R_co]):
    """One run on a server; `created` is False when its key had started it before."""

    def __init__(self, flow: Flow[R_co], client: Any, run_id: str, *, created: bool) -> None:
        self.id = run_id
        self.created = created
        self._flow = flow
        self._client = client

    def __repr__(self) -> str:
        return f"<run {self.id}>"

    def status(self) -> Any:
        """The run as it is now: a `tidemill.protocol.resources.RunView`."""
        return self._client.run(self.id)

    def wait(self, timeout: float | None = None) -> Any:
        """The run as it ended, however; TimeoutError when it has not after so many seconds."""
        with self._impatience():
            return self._client.wait(self.id, timeout)

    def result(self, timeout: float | None = None) -> R_co:
        """What the workflow returned; `tidemill.client.RunFailed` when it did not succeed."""
        with self._impatience():
            value = self._client.result(self.id, timeout)
        # A run without an output has the results of its last tasks, which nobody returned.
        return self._flow.result_of(None if self._flow.definition.output is None else value)

    def events(self) -> Iterator[Any]:
        """What happens in the run, from its start to its end, as CloudEvents.

        What changed is in their `data`: `task` (None for the run itself), `state`, `attempt`.
        """
        for event in self._client.events(self.id, after=OLDEST):
            yield event
            if event.data.task is None and event.data.state in RUN_ENDED:
                return

    def watch(self, tell: Callable[[str], object] = print) -> R_co:
        """Tell every change of the run and its tasks in a line, then return what `result` does."""
        with self._impatience():
            for event in self.events():
                if event.data.task != OUTPUT_ID:
                    tell(f"{event.data.task or event.data.workflow}: {event.data.state}")
        return self.result()

    def cancel(self) -> Any:
        """Stop it."""
        return self._client.cancel(self.id)

    @contextmanager
    def _impatience(self) -> Iterator[None]:
        """Say once why nothing happens: a task that no worker offers would wait without a word."""
        timer = threading.Timer(PATIENCE_SECONDS, self._tell_waits)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _tell_waits(self) -> None:
        with suppress(TidemillError):
            for wait in self._client.run(self.id, include=("waits",)).waits or ():
                if wait.code == LACK_OF_WORKERS:
                    log.warning("run %s: task %s waits: %s", self.id, wait.task, wait.message)

    async def wait_async(self, timeout: float | None = None) -> Any:
        """Like `wait`, for code that runs in an event loop."""
        import asyncio

        return await asyncio.to_thread(self.wait, timeout)

    async def result_async(self, timeout: float | None = None) -> R_co:
        """Like `result`, for code that runs in an event loop."""
        import asyncio

        return await asyncio.to_thread(self.result, timeout)


def submit(flow: Flow[R_co], value: Mapping[str, Any], options: SubmitOptions) -> RunHandle[R_co]:
    """Send the definition and the input, and return once the run is stored."""
    definition = flow.definition
    refuse_local(definition)
    client = _client(options)
    passed = {name: options[name] for name in ("key", "labels") if name in options}
    try:
        started = client.start(definition, value, **passed)
    except Unavailable as error:
        raise error from None  # the message says it all, and the rest is long
    return RunHandle(flow, client, started.id, created=started.created)


async def submit_async(
    flow: Flow[R_co], value: Mapping[str, Any], options: SubmitOptions
) -> RunHandle[R_co]:
    """The same without holding up the loop."""
    import asyncio

    return await asyncio.to_thread(submit, flow, value, options)


def deploy(flow: Flow[Any], options: SubmitOptions) -> Any:
    """Make the definition the latest version of its name on the server."""
    definition = flow.definition
    refuse_local(definition)
    try:
        return _client(options).deploy(definition)
    except Unavailable as error:
        raise error from None


def refuse_local(definition: Workflow) -> None:
    """InvalidWorkflow for tasks that no worker could import."""
    problems = [
        Problem(
            path=spec.id,
            message=f"{spec.params['function']} is defined inside a function, where no worker "
            "finds it: move it to the top of its module",
            code="NOT_IMPORTABLE",
        )
        for spec in definition.tasks
        if _LOCAL in str(spec.params.get("function", ""))
    ]
    if problems:
        raise InvalidWorkflow(problems)


def _client(options: SubmitOptions) -> Any:
    environ = {name: text for name, text in os.environ.items() if name.startswith(_READ)}
    environ |= {
        variable: str(options[name])  # type: ignore[literal-required]
        for name, variable in _VARIABLES.items()
        if name in options
    }
    return _shared_client(tuple(sorted(environ.items())))


@lru_cache(maxsize=CLIENTS_MAX)
def _shared_client(environ: tuple[tuple[str, str], ...]) -> Any:
    """One connection for all runs of a server: scripts submit them by the thousand."""
    from tidemill.client import BlockingClient

    client = BlockingClient.from_environment(dict(environ))
    atexit.register(client.close)
    return client


__all__ = ["RunHandle", "SubmitOptions", "deploy", "refuse_local", "submit", "submit_async"]
