"""Tokens as JWTs, signed with HMAC-SHA256 and nothing else."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Mapping
from pathlib import Path

import jwt
import msgspec

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.identifiers import SECOND
from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.ports.identity import TokenKind

ALGORITHM = "HS256"
HEADER = {"alg": ALGORITHM, "typ": "JWT"}
ISSUER = "tidemill"
LEEWAY_SECONDS = 30
KEY_BYTES = 32
TOKEN_CHARACTERS_MAX = 4_096
KEY_FILE_BYTES_MAX = 4_096
DISTINCT_BYTES_MIN = 16

_decode_header = msgspec.json.Decoder(dict[str, object]).decode
_KNOWN = re.compile(r"(secret|changeme|change-me|password|tidemill|example|default|jwt|your[-_ ])")


class _Claims(msgspec.Struct, frozen=True):
    """What every token says; by `typ` and `aud` none is taken for one of another kind."""

    iss: str
    aud: str
    typ: str
    sub: str
    jti: str
    iat: int
    nbf: int
    exp: int


class JwtSigner:
    """Implements ports.identity.TokenSigner with one key.

    Times are compared here, with the clock given: the library would ask its own.
    """

    def __init__(self, key: bytes, clock: Clock, entropy: Entropy) -> None:
        assert len(key) >= KEY_BYTES, "a signing key has at least 256 bits"
        self._key = key
        self._mac = hmac.new(key, digestmod="sha256")
        self._clock = clock
        self._entropy = entropy

    def sign(self, kind: TokenKind, subject: str, seconds: int, **claims: str | int) -> str:
        """A token about a subject."""
        assert 0 < seconds <= kind.seconds_max, f"a token of kind {kind.name} lives shorter"
        now = self._clock.now() // SECOND
        stated = {
            "iss": ISSUER,
            "aud": _audience(kind),
            "typ": kind.name,
            "sub": subject,
            "jti": self._entropy.session_id(),
            "iat": now,
            "nbf": now,
            "exp": now + seconds,
        }
        return self._signed(msgspec.json.encode({**claims, **stated}))

    def read(self, kind: TokenKind, token: str) -> Mapping[str, str | int] | None:
        """The claims of a token; None when it is not ours, not of this kind, or not valid now."""
        if len(token) > TOKEN_CHARACTERS_MAX or not _has_our_header(token):
            return None
        try:
            claims = jwt.decode(
                token,
                self._key,
                algorithms=[ALGORITHM],
                audience=_audience(kind),
                issuer=ISSUER,
                options={
                    "require": ["iss", "aud", "typ", "sub", "jti", "iat", "nbf", "exp"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
            stated = msgspec.convert(claims, _Claims)
        except (jwt.InvalidTokenError, msgspec.ValidationError, ValueError):
            return None
        return claims if self._is_valid(kind, stated) else None

    def _signed(self, payload: bytes) -> str:
        """What the library would make of it, in a tenth of the time: every task gets a token."""
        content = _FIRST + _segment(payload)
        mac = self._mac.copy()  # the key is worked in already
        mac.update(content)
        return (content + b"." + _segment(mac.digest())).decode()

    def _is_valid(self, kind: TokenKind, stated: _Claims) -> bool:
        now = self._clock.now() // SECOND
        return (
            stated.typ == kind.name
            and stated.iat <= now + LEEWAY_SECONDS
            and stated.nbf <= now + LEEWAY_SECONDS
            and now < stated.exp + LEEWAY_SECONDS
            and 0 < stated.exp - stated.iat <= kind.seconds_max
        )


def _segment(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


_FIRST = _segment(msgspec.json.encode(HEADER)) + b"."


def _audience(kind: TokenKind) -> str:
    return f"tidemill-{kind.name}"


def _has_our_header(token: str) -> bool:
    """Exactly what we write: no `kid`, `jku`, `jwk`, `x5u`, `crit`, no other algorithm."""
    first = token.partition(".")[0]
    try:
        header = _decode_header(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))
    except (binascii.Error, ValueError):
        return False
    return header == HEADER


def read_key_file(path: Path) -> bytes:
    """The signing key in a file: 256 bits or more, as hexadecimal digits, base64 or plain bytes.

    InvalidInput for one that somebody could guess.
    """
    try:
        with path.open("rb") as file:
            data = file.read(KEY_FILE_BYTES_MAX).strip()
    except OSError as error:
        raise _bad_key(f"{path} cannot be read: {error.strerror}") from error
    key = _decoded(data)
    if len(key) < KEY_BYTES:
        raise _bad_key(f"{path} holds {len(key) * 8} bits: a signing key has at least 256")
    if len(set(key)) < DISTINCT_BYTES_MIN or _KNOWN.search(data.decode("latin-1").lower()):
        raise _bad_key(f"{path} holds a key that can be guessed")
    return key


def _decoded(data: bytes) -> bytes:
    try:
        return bytes.fromhex(data.decode("ascii"))
    except ValueError:
        pass
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return data


def _bad_key(message: str) -> InvalidInput:
    text = f"{message}; `openssl rand -hex 32` makes a good one"
    return InvalidInput([Problem(path="--signing-key-file", message=text, code="signing_key")])
