"""Secrets sealed with AES-256-GCM, under a key from a file; needs the extra `secrets`."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.ports.entropy import Entropy
from tidemill.ports.secrets import CannotUnseal, SecretKey

KEY_BYTES = 32
KEY_FILE_BYTES_MAX = 4_096
NONCE_BYTES = 12
FORMAT = b"\x01"
"""The first byte of what is stored, so that another way of sealing can follow."""


class AesSealing:
    """Implements ports.secrets.Sealing. What is sealed for one name opens under no other."""

    def __init__(self, key: bytes, entropy: Entropy) -> None:
        assert len(key) == KEY_BYTES, "a sealing key has 256 bits"
        self._cipher = AESGCM(key)
        self._entropy = entropy

    def seal(self, key: SecretKey, value: str) -> bytes:
        """What may be stored; it opens under this very key only."""
        nonce = bytes.fromhex(self._entropy.secret())[:NONCE_BYTES]
        return FORMAT + nonce + self._cipher.encrypt(nonce, value.encode(), _bound_to(key))

    def unseal(self, key: SecretKey, sealed: bytes) -> str:
        """The value; CannotUnseal when it was sealed with another key, or for another name."""
        if sealed[:1] != FORMAT:
            raise CannotUnseal(f"{key.name} was sealed in a way that this release does not know")
        nonce, body = sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
        try:
            return self._cipher.decrypt(nonce, body, _bound_to(key)).decode()
        except (InvalidTag, ValueError) as error:
            raise CannotUnseal(f"{key.name} was sealed with another key") from error


def read_sealing_key(path: Path) -> bytes:
    """The key in a file: 256 bits as hexadecimal digits, base64 or plain bytes."""
    try:
        with path.open("rb") as file:
            data = file.read(KEY_FILE_BYTES_MAX)
    except OSError as error:
        raise _bad_key(f"{path} cannot be read: {error.strerror}") from error
    for decode in (_from_hex, _from_base64, bytes):
        key = decode(data)
        if key is not None and len(key) == KEY_BYTES and len(set(key)) > KEY_BYTES // 4:
            return key
    raise _bad_key(f"{path} holds no key of 256 random bits")


def _from_hex(data: bytes) -> bytes | None:
    try:
        return bytes.fromhex(data.decode("ascii"))
    except ValueError:
        return None


def _from_base64(data: bytes) -> bytes | None:
    try:
        return base64.b64decode(data.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None


def _bound_to(key: SecretKey) -> bytes:
    return f"{key.namespace}\0{key.name}".encode()


def _bad_key(message: str) -> InvalidInput:
    text = f"{message}; `openssl rand -hex 32` makes a good one"
    return InvalidInput([Problem(path="--secrets-key-file", message=text, code="secrets_key")])
