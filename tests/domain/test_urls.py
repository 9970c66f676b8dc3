"""Passwords leave addresses before anybody sees them."""

from __future__ import annotations

import pytest

from tidemill.domain.urls import mask_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:se@cret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:se/c?ret@host/db", "postgresql://me:***@host/db"),
        ("kafka://me:secret@a:9092,b:9092/shop", "kafka://me:***@a:9092,b:9092/shop"),
        ("redis://:secret@host/0", "redis://:***@host/0"),
        (
            "postgresql://host/db?password=secret&user=me",
            "postgresql://host/db?password=***&user=me",
        ),
        ("kafka://host?sasl_password=secret", "kafka://host?sasl_password=***"),
    ],
)
def test_a_password_is_masked(url: str, shown: str) -> None:
    assert mask_url(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "memory:",
        ".tidemill/tidemill.db",
        "postgresql://postgres@/postgres?host=/run/postgres",
        "kafka://a:9092,b:9092/shop?partitions=6",
    ],
)
def test_what_holds_no_password_stays_as_it_is(url: str) -> None:
    assert mask_url(url) == url
