"""Certificates and keys from PEM files, checked when they are read and not at the first call."""

from __future__ import annotations

import ssl
from pathlib import Path

from tidemill.domain.errors import InvalidInput, Problem

PEM_BYTES_MAX = 1024 * 1024


def read_pem(path: Path) -> bytes:
    """A file in PEM form; InvalidInput names the file when it is none."""
    try:
        with path.open("rb") as file:
            data = file.read(PEM_BYTES_MAX + 1)
    except OSError as error:
        raise _invalid(path, f"cannot be read: {error.strerror}") from error
    if len(data) > PEM_BYTES_MAX or b"-----BEGIN " not in data:
        raise _invalid(path, "is no file in PEM form")
    return data


def read_certificates(path: Path) -> bytes:
    """Certificates to trust."""
    data = read_pem(path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=data.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise _invalid(path, "holds no certificate that can be read") from error
    return data


def check_key_pair(certificate: Path, key: Path) -> None:
    """Refuse a certificate and a key that cannot be read, or that do not belong together."""
    read_pem(certificate)
    read_pem(key)
    try:
        # A key that wants a password gets an empty one: nobody is there to be asked.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None)
        text = f"and {key} are no certificate and its key{f': {reason}' if reason else ''}"
        raise _invalid(certificate, text) from error


def _invalid(path: Path, message: str) -> InvalidInput:
    return InvalidInput([Problem(path=str(path), message=message, code="security")])
