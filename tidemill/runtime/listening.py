"""Sockets that listen for HTTP, opened before anything else begins."""

from __future__ import annotations

import socket
from pathlib import Path

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.runtime.addresses import Endpoint

BACKLOG = 2_048


def listen_tcp(endpoint: Endpoint) -> socket.socket:
    """A listening socket; InvalidInput, with the fix, when the address cannot be had."""
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(endpoint)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise cannot_listen("--listen", endpoint, error) from error
    listener.setblocking(False)
    return listener


def cannot_listen(option: str, endpoint: Endpoint, error: OSError) -> InvalidInput:
    """That the address of an option cannot be had, why, and what to do."""
    why = error.strerror or str(error)
    fix = f"give another, such as {option} {Endpoint(endpoint.host, 0)} for a free port"
    message = f"cannot listen on {endpoint}: {why}; {fix}"
    return InvalidInput([Problem(path=option, message=message, code="listen")])


def listen_unix(path: Path) -> socket.socket:
    """A listening unix socket that only this user may open."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener
