"""Servers shared by all tests of a session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.servers import missing, postgres_server


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The address of a real PostgreSQL; its databases are whoever's asks."""
    with ExitStack() as stack:
        try:
            dsn = stack.enter_context(postgres_server())
        except (OSError, RuntimeError, ValueError) as error:
            missing("PostgreSQL", error)
        yield dsn
