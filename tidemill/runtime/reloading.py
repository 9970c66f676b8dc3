"""Takes up changed code: watches the files that workers import, and has the workers replaced."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TypeAlias

from tidemill.ports.clock import Clock
from tidemill.runtime.rehearsal import rehearse

POLL_SECONDS = 0.5
SETTLE_SECONDS = 0.1
SETTLE_LOOKS_MAX = 20
FILES_MAX = 5_000
_PASSED_OVER = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})

Look: TypeAlias = Mapping[str, tuple[int, int]]
"""When each file was changed, and how large it is."""


def watched_folders(imports: Sequence[str]) -> tuple[Path, ...]:
    """Where the files and modules that workers import lie; nothing is imported to find out."""
    found = (
        _file_folder(name) if name.endswith(".py") else _module_folder(name) for name in imports
    )
    return tuple(dict.fromkeys(folder for folder in found if folder is not None))


def look_at(folders: Sequence[Path]) -> Look:
    """The Python files below these folders as they are now, five thousand at most."""
    seen: dict[str, tuple[int, int]] = {}
    for path in _python_files(folders):
        try:
            status = Path(path).stat()
        except OSError:
            continue  # gone since, or a link to nowhere
        seen[path] = (status.st_mtime_ns, status.st_size)
        if len(seen) >= FILES_MAX:
            break
    return seen


class Reloader:
    """Looks twice a second. Code that cannot be imported is told of once, and the old goes on."""

    def __init__(
        self,
        imports: Sequence[str],
        replace: Callable[[], Awaitable[None]],
        tell: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._imports = tuple(imports)
        self._folders = watched_folders(imports)
        self._replace = replace
        self._tell = tell
        self._clock = clock
        self._told = ""

    async def run(self) -> None:
        """Watch until cancelled."""
        seen = await self._look()
        while True:
            await self._clock.sleep(POLL_SECONDS)
            now = await self._look()
            if now != seen:
                changed = _changed(seen, now)
                seen = await self._settled(now)
                await self._take_up(changed)

    async def _take_up(self, changed: str) -> None:
        places = {name: name for name in self._imports}
        problems = await asyncio.to_thread(rehearse, {}, places)
        trouble = "; ".join(map(str, problems))
        if not problems:
            self._tell(f"{changed} changed: workers are replaced")
            await self._replace()
        elif trouble != self._told:
            self._tell(f"{changed} changed, but the workers go on with the old code: {trouble}")
        self._told = trouble

    async def _settled(self, now: Look) -> Look:
        """Wait while somebody is still writing: editors and checkouts take several steps."""
        for _ in range(SETTLE_LOOKS_MAX):
            before = now
            await self._clock.sleep(SETTLE_SECONDS)
            now = await self._look()
            if now == before:
                break
        return now

    async def _look(self) -> Look:
        return await asyncio.to_thread(look_at, self._folders)


def _file_folder(name: str) -> Path:
    return Path(name).resolve().parent


def _module_folder(name: str) -> Path | None:
    """The folder of a top-level package or module, as a worker would find it."""
    top = name.partition(".")[0]
    spec = PathFinder.find_spec(top, [str(Path.cwd())]) or PathFinder.find_spec(top)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return Path(spec.origin).resolve().parent if spec.origin else None


def _python_files(folders: Sequence[Path]) -> Iterator[str]:
    for folder in folders:
        for place, below, names in os.walk(folder):
            below[:] = sorted(
                name for name in below if name not in _PASSED_OVER and not name.startswith(".")
            )
            yield from (f"{place}/{name}" for name in sorted(names) if name.endswith(".py"))


def _changed(before: Look, now: Look) -> str:
    differing = sorted(
        path for path in before.keys() | now.keys() if before.get(path) != now.get(path)
    )
    name = Path(differing[0]).name
    return f"{name} and {len(differing) - 1} more have" if differing[1:] else f"{name} has"
