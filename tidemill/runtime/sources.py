"""Which modules the workers of a definition need: remembered beside the store, for `resume`.

It is no part of the definition, since it names files of this machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidemill.domain.identifiers import VersionId
from tidemill.runtime.addresses import StoreAddress


def module_name(imported: str) -> str:
    """What tasks call a module that was imported by its name or by the path of its file."""
    return Path(imported).stem if imported.endswith(".py") else imported


class _Source(msgspec.Struct, frozen=True):
    imports: tuple[str, ...]


class Sources:
    """A folder with one small file per definition."""

    def __init__(self, address: StoreAddress) -> None:
        store = address.path if address.path is not None else Path(".tidemill/postgresql")
        self._folder = store.with_name(store.name + ".sources")

    def remember(self, version_id: VersionId, imports: Iterable[str]) -> None:
        """Note what to import; files by their absolute path, so that any folder will do later."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._folder / f"{version_id}.new"
        fresh.write_bytes(msgspec.json.encode(_Source(tuple(imports))))
        fresh.replace(self._path(version_id))

    def replace(self, version_ids: Iterable[VersionId], given: Iterable[str]) -> None:
        """Let modules take the place of those of the same name, for a file that has moved."""
        by_name = {module_name(name): name for name in given}
        for version_id in version_ids:
            known = self._read(version_id)
            moved = tuple(by_name.get(module_name(name), name) for name in known)
            if moved != known:
                self.remember(version_id, moved)

    def recall(self, version_ids: Iterable[VersionId]) -> tuple[str, ...]:
        """What the workers of these definitions must import, as far as it is known."""
        names: dict[str, None] = {}
        for version_id in version_ids:
            names.update(dict.fromkeys(self._read(version_id)))
        return tuple(names)

    def _read(self, version_id: VersionId) -> tuple[str, ...]:
        try:
            return msgspec.json.decode(self._path(version_id).read_bytes(), type=_Source).imports
        except (FileNotFoundError, msgspec.DecodeError):
            return ()

    def _path(self, version_id: VersionId) -> Path:
        return self._folder / f"{version_id}.json"
