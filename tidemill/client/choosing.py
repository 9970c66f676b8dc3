"""Which server a client speaks to: as flags say, then the environment, then the current context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidemill.client.contexts import Context, ContextFile, check_server
from tidemill.client.credentials import Credentials, FixedToken
from tidemill.client.renewing import ContextCredentials

DEFAULT_SERVER = "http://127.0.0.1:8080"

SERVER_VARIABLE = "TIDEMILL_SERVER"
FLAG = "--server"
DEFAULT = "default"
CONTEXT_VARIABLE = "TIDEMILL_CONTEXT"
NAMESPACE_VARIABLE = "TIDEMILL_NAMESPACE"
KEY_VARIABLE = "TIDEMILL_API_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was said by flags."""

    server: str | None = None
    context: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A server, what to show to it, and why it was chosen."""

    server: str
    namespace: str | None
    credentials: Credentials
    origin: str  # for people: --server, TIDEMILL_SERVER, context NAME
    context: str | None = None  # the context whose tokens are shown

    @property
    def named_by(self) -> str:
        """Who named the server, for people; nobody needs to be told what they have just typed."""
        return self.origin if self.origin not in {FLAG, DEFAULT} else ""


def choose(
    wanted: Wanted, environ: Mapping[str, str], file: ContextFile | None = None
) -> Choice | None:
    """The server that is meant; None when nobody names one.

    A context's tokens are shown to no other server than its own, however that is named.
    """
    file = file or ContextFile.of(environ)
    namespace = wanted.namespace or environ.get(NAMESPACE_VARIABLE) or None
    key = environ.get(KEY_VARIABLE) or None
    if wanted.server:
        return _of_server(file, wanted.server, namespace, key, FLAG)
    if wanted.context:
        return _of_context(file, wanted.context, namespace)
    if server := environ.get(SERVER_VARIABLE):
        return _of_server(file, server, namespace, key, SERVER_VARIABLE)
    if name := environ.get(CONTEXT_VARIABLE):
        return _of_context(file, name, namespace)
    if current := file.read().current:
        chosen = _of_context(file, current, namespace)
        return chosen if key is None else _shown(chosen, FixedToken(key))
    return None


def choose_or_default(environ: Mapping[str, str]) -> Choice:
    """Like `choose`, for programs; the address at which `tidemill up` serves when nobody says."""
    chosen = choose(Wanted(), environ)
    if chosen is not None:
        return chosen
    key = FixedToken(environ.get(KEY_VARIABLE) or None)
    return _plain(DEFAULT_SERVER, environ.get(NAMESPACE_VARIABLE) or None, key, DEFAULT)


def credentials_of(file: ContextFile, name: str, context: Context) -> Credentials:
    """What a context shows: its API key, or the tokens of its login."""
    if context.api_key is not None:
        return FixedToken(context.api_key)
    return ContextCredentials(file, name, context)


def _plain(server: str, namespace: str | None, shown: Credentials, origin: str) -> Choice:
    return Choice(
        server=check_server(server), namespace=namespace, credentials=shown, origin=origin
    )


def _of_server(
    file: ContextFile, server: str, namespace: str | None, key: str | None, origin: str
) -> Choice:
    """A server by its address: with the key if there is one, else as in a context that has it."""
    name = file.read().of_server(check_server(server)) if key is None else None
    if name is None:
        return _plain(server, namespace, FixedToken(key), origin)
    return replace(_of_context(file, name, namespace), origin=origin)


def _of_context(file: ContextFile, name: str, namespace: str | None) -> Choice:
    context = file.read().named(name)
    return Choice(
        server=check_server(context.server),
        namespace=namespace or context.namespace,
        credentials=credentials_of(file, name, context),
        origin=f"context {name}",
        context=name,
    )


def _shown(choice: Choice, shown: Credentials) -> Choice:
    return replace(choice, credentials=shown, context=None)
