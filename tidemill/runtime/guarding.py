"""Who may reach a process from outside: TLS, tokens, and what is refused without them."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.engine.identity.principals import Principals
from tidemill.gateway.gates import Gate, IdentityGate, OpenGate, SharedTokens
from tidemill.gateway.security import TokenFile, Tokens, server_credentials
from tidemill.ports.clock import Clock
from tidemill.runtime.addresses import parse_endpoint
from tidemill.runtime.setting_checks import IDENTITY, SHARED_TOKEN, SINGLE_USER
from tidemill.runtime.settings import Settings


def check_listening(settings: Settings) -> None:
    """Refuse to be reachable from other machines in the clear, or by anybody."""
    if problems := [*_http_missing(settings), *_workers_missing(settings)]:
        raise InvalidInput(problems)


def _http_missing(settings: Settings) -> Iterator[Problem]:
    if settings.listen is None:
        return
    if settings.auth == SHARED_TOKEN:
        fix = "shared-token is for schedulers: give identity or single-user"
        yield Problem(path="--auth", message=fix, code="security")
    if parse_endpoint(settings.listen).is_loopback:
        return
    reached = f"{settings.listen} is reached from other machines"
    if settings.auth == SINGLE_USER:
        fix = f"{reached}, and single-user mode has no login: give --auth identity"
        yield Problem(path="--listen", message=fix, code="security")
    if settings.tls_cert is None and not settings.insecure:
        fix = f"{reached}: give --tls-cert and --tls-key, or --insecure to go without TLS"
        yield Problem(path="--listen", message=fix, code="security")


def workers_option(settings: Settings) -> str:
    """The flag of the address for workers: a short one for a scheduler, which has no other."""
    return "--listen" if settings.listen is None else "--listen-workers"


def _workers_missing(settings: Settings) -> Iterator[Problem]:
    listen = settings.listen_workers
    if listen is None:
        return
    yield from _workers_contradict(settings)
    if settings.insecure or parse_endpoint(listen).is_loopback:
        return
    reached = f"{listen} is reached from other machines"
    if settings.tls_cert is None:
        fix = f"{reached}: give --tls-cert and --tls-key, or --insecure to go without TLS"
        yield Problem(path=workers_option(settings), message=fix, code="security")
    if settings.auth != IDENTITY and settings.token_file is None and settings.token is None:
        fix = f"{reached}: give --token-file or TIDEMILL_TOKEN, or --insecure to go without"
        yield Problem(path=workers_option(settings), message=fix, code="security")


def _workers_contradict(settings: Settings) -> Iterator[Problem]:
    if settings.listen is None and settings.auth == SINGLE_USER:
        fix = "single-user is for api and up: give identity or shared-token"
        yield Problem(path="--auth", message=fix, code="security")
    shared = settings.token_file is not None or settings.token is not None
    if settings.auth == IDENTITY and shared:
        fix = "leave it out: with --auth identity every worker has a credential of its own"
        yield Problem(path="--token-file", message=fix, code="security")


def is_asked_who_calls(settings: Settings) -> bool:
    """Whether tasks get tokens: only where somebody can ask about them."""
    if settings.auth == IDENTITY or settings.signing_key_file is not None:
        return True
    return settings.auth == SINGLE_USER and settings.listen_workers is not None


def workers_gate(settings: Settings, principals: Principals | None, clock: Clock) -> Gate:
    """Who may come by the address for workers, as the settings say."""
    if settings.auth == IDENTITY:
        assert principals is not None, "identity was opened before"
        return IdentityGate(principals, clock)
    if settings.token is not None:
        return SharedTokens(Tokens([settings.token]))
    if settings.token_file is not None:
        return SharedTokens(TokenFile(settings.token_file))
    return OpenGate()


def gateway_credentials(settings: Settings) -> grpc.ServerCredentials | None:
    """TLS for the gateway; None to go in the clear."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return server_credentials(settings.tls_cert, settings.tls_key, settings.tls_client_ca)
