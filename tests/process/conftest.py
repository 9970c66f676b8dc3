"""Fixtures for tests with real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.commands import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """An empty folder to run commands in."""
    shell = Shell(tmp_path)
    yield shell
    shell.close()
