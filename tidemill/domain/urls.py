"""Addresses that people give as URLs, and what of them may be shown."""

from __future__ import annotations

import re

MASK = "***"
_USER = re.compile(r"(://[^/?#:@]*):[^/?#]*@")
_USER_ODD = re.compile(r"(://[^:@]*):.*@", re.DOTALL)  # a password that should have been quoted
_QUERY = re.compile(r"([?&][^=&#]*(?:password|passwd|secret|token)[^=&#]*)=[^&#]*", re.IGNORECASE)


def mask_url(text: str) -> str:
    """The same URL without any password, for messages, logs and listings."""
    pattern = _USER if _USER.search(text) else _USER_ODD
    return _QUERY.sub(rf"\1={MASK}", pattern.sub(rf"\1:{MASK}@", text))
