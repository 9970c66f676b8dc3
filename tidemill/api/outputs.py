"""Which definitions have an output: a task of its own makes it, which people do not count."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import msgspec

from tidemill.domain.identifiers import VersionId
from tidemill.domain.run import Run, RunKind
from tidemill.ports.store import Payloads

KNOWN_MAX = 20_000
READ_MAX = 20
"""Definitions can be large: so many are read at once."""


class _Head(msgspec.Struct, frozen=True):
    """All that is looked at of a definition; compiling each would hold up a list."""

    output: str | None = None


class Outputs:
    """What is known of definitions; they never change, so each is read once."""

    def __init__(self) -> None:
        self._known: dict[VersionId, bool] = {}

    async def among(self, payloads: Payloads, runs: Iterable[Run]) -> frozenset[VersionId]:
        """The definitions of these runs that have an output."""
        # Only what people define has one: other shapes are made here, without.
        wanted = dict.fromkeys(run.version_id for run in runs if run.kind is RunKind.RUN)
        found = {name: self._known[name] for name in wanted if name in self._known}
        missing = [name for name in wanted if name not in found]
        for first in range(0, len(missing), READ_MAX):
            for version in await payloads.versions(missing[first : first + READ_MAX]):
                found[version.id] = _has_output(version.spec)
        self._keep(found)
        return frozenset(name for name, has_output in found.items() if has_output)

    def _keep(self, found: dict[VersionId, bool]) -> None:
        self._known.update(found)
        for name in list(islice(self._known, max(0, len(self._known) - KNOWN_MAX))):
            del self._known[name]


def _has_output(spec: bytes) -> bool:
    try:
        return msgspec.json.decode(spec, type=_Head).output is not None
    except msgspec.DecodeError:
        return False


__all__ = ["Outputs"]
