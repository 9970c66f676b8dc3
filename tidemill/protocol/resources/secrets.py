"""Secrets on the wire: their names; a value goes in and never comes out."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tidemill.protocol.resources.values import SECRET, Time


class PutSecret(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value of a secret, at most 32 KiB."""

    value: Annotated[str, Meta(min_length=1, max_length=32_768, extra_json_schema=SECRET)]

    def __repr__(self) -> str:
        return "PutSecret(***)"


class SecretView(msgspec.Struct, frozen=True, kw_only=True):
    """A secret, without its value."""

    name: str
    created_at: Time
    changed_at: Time


class SecretPutView(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a secret that was put."""

    name: str
    created: bool
