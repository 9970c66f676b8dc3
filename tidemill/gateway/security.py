"""What opens the gateway without identity: TLS from PEM files, and tokens that are shared."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import grpc

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.protocol.certificates import check_key_pair, read_certificates, read_pem

TOKENS_MAX = 100
TOKEN_CHARACTERS_MAX = 512
TOKEN_FILE_BYTES_MAX = 64 * 1024

_TOKEN = re.compile(r"[\x21-\x7e]+")


class TokenCheck(Protocol):
    """Says whether a token opens the door."""

    def accepts(self, token: str) -> bool:
        """Whether the token is one of those in force, in a time that tells nothing about them."""


class Tokens:
    """Tokens that stay the same for the life of the process."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self._tokens = checked_tokens(tokens, "token")

    def accepts(self, token: str) -> bool:
        """Compare with every token, also after one has matched."""
        given = token.encode(errors="replace")
        return sum(hmac.compare_digest(given, known) for known in self._tokens) > 0


class TokenFile:
    """Tokens from a file, one per line, read again whenever the file has changed.

    To rotate: add the new token, move the workers over, remove the old one. A file that cannot be
    read any more, or holds nothing usable, leaves the tokens as they were last.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = _stamp(path)
        self._tokens = Tokens(read_tokens(path))

    def accepts(self, token: str) -> bool:
        """Compare with the tokens that the file holds now."""
        self._refresh()
        return self._tokens.accepts(token)

    def _refresh(self) -> None:
        try:
            stamp = _stamp(self._path)
            if stamp != self._seen:
                self._tokens = Tokens(read_tokens(self._path))
                self._seen = stamp
        except InvalidInput:
            return


def read_tokens(path: Path) -> tuple[str, ...]:
    """The tokens of a file, one per line; empty lines and lines that begin with # are left out."""
    text = _read(path).decode("utf-8", "replace")
    lines = (line.strip() for line in text.splitlines())
    tokens = tuple(line for line in lines if line and not line.startswith("#"))
    checked_tokens(tokens, str(path))
    return tokens


def checked_tokens(tokens: Iterable[str], source: str) -> tuple[bytes, ...]:
    """The tokens as bytes; InvalidInput, which never shows one, when they cannot be used."""
    found = tuple(tokens)
    if not 1 <= len(found) <= TOKENS_MAX:
        raise _invalid(source, f"must hold 1 to {TOKENS_MAX} tokens, one per line")
    for number, token in enumerate(found, 1):
        if len(token) > TOKEN_CHARACTERS_MAX or not _TOKEN.fullmatch(token):
            fix = f"use up to {TOKEN_CHARACTERS_MAX} visible ASCII characters without spaces"
            raise _invalid(source, f"token {number} cannot be used: {fix}")
    return tuple(token.encode() for token in found)


def server_credentials(
    certificate: Path, key: Path, client_ca: Path | None = None
) -> grpc.ServerCredentials:
    """TLS from PEM files. With `client_ca`, only clients with a certificate of it get in."""
    check_key_pair(certificate, key)
    pair = (read_pem(key), read_pem(certificate))
    roots = None if client_ca is None else read_certificates(client_ca)
    return grpc.ssl_server_credentials(
        [pair], root_certificates=roots, require_client_auth=roots is not None
    )


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(TOKEN_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    if len(data) > TOKEN_FILE_BYTES_MAX:
        raise _invalid(str(path), f"is larger than {TOKEN_FILE_BYTES_MAX} bytes")
    return data


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    return found.st_mtime_ns, found.st_size, found.st_ino


def _unreadable(path: Path, error: OSError) -> InvalidInput:
    return _invalid(str(path), f"the token file cannot be read: {error.strerror}")


def _invalid(path: str, message: str) -> InvalidInput:
    return InvalidInput([Problem(path=path, message=message, code="security")])
