"""Which tests stay together when pytest runs several processes side by side (`-n`)."""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadScopeScheduling

# Each has a server that all its tests share.
WHOLE_FILES = ("test_bus_losses.py", "test_newcomer.py")


class SideBySide(LoadScopeScheduling):  # type: ignore[misc]
    """Gives whoever is free the next test; those that need Kafka go to one process, and first."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """What a test is handed out with: its file, all tests with Kafka, or itself alone."""
    file = nodeid.partition("::")[0]
    if file.endswith(WHOLE_FILES):
        return file
    return "kafka" if "kafka" in nodeid else nodeid


def refuse_hidden_kafka(items: list[pytest.Item]) -> None:
    """A broker starts once if the tests that need it can be told by name."""
    for item in items:
        wanted = item.fixturenames if isinstance(item, pytest.Function) else ()
        if "kafka_server" in wanted and "kafka" not in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid} needs Kafka: say so in the name of the test")
