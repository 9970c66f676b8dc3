"""Who may reach a process from outside: TLS, tokens, and what is refused without them."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.gateway.security import TokenCheck, TokenFile, Tokens, server_credentials
from tidemill.runtime.addresses import parse_endpoint
from tidemill.runtime.settings import Settings


def check_listening(settings: Settings) -> None:
    """Refuse to be reachable from other machines in the clear, or by anybody."""
    if settings.listen is None or settings.insecure:
        return
    if parse_endpoint(settings.listen).is_loopback:
        return
    if problems := list(_missing(settings)):
        raise InvalidInput(problems)


def _missing(settings: Settings) -> Iterator[Problem]:
    reached = f"{settings.listen} is reached from other machines"
    if settings.tls_cert is None:
        fix = f"{reached}: give --tls-cert and --tls-key, or --insecure to go without TLS"
        yield Problem(path="--listen", message=fix, code="security")
    if settings.token_file is None and settings.token is None:
        fix = f"{reached}: give --token-file or TIDEMILL_TOKEN, or --insecure to go without"
        yield Problem(path="--listen", message=fix, code="security")


def token_check(settings: Settings) -> TokenCheck | None:
    """What tokens open the gateway; None when it needs none."""
    if settings.token is not None:
        return Tokens([settings.token])
    return TokenFile(settings.token_file) if settings.token_file is not None else None


def gateway_credentials(settings: Settings) -> grpc.ServerCredentials | None:
    """TLS for the gateway; None to go in the clear."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return server_credentials(settings.tls_cert, settings.tls_key, settings.tls_client_ca)
