"""What workers need to go on with runs that are in the store already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.run import Run
from tidemill.ports.store import Store
from tidemill.runtime.inspection import read_plan
from tidemill.runtime.leftovers import unfinished_runs
from tidemill.runtime.offering import serving
from tidemill.runtime.settings import Settings
from tidemill.runtime.sources import Sources
from tidemill.runtime.system import SystemClock
from tidemill.runtime.wiring import reading
from tidemill.stores.errors import StoreRefused


async def settings_for(store: Store, settings: Settings, runs: Sequence[Run]) -> Settings:
    """The settings with the modules, queues and labels of these runs.

    A module given in the settings takes the place of the one of the same name from now on.
    """
    by_version = {run.version_id: run for run in runs}
    workflows = [(await read_plan(store, run)).workflow for run in by_version.values()]
    sources = Sources(settings.store)
    sources.replace(by_version, settings.imports)
    imports = dict.fromkeys((*sources.recall(by_version), *settings.imports))
    _refuse_lost(imports)
    return serving(replace(settings, imports=tuple(imports)), workflows)


async def with_left_imports(settings: Settings, tell: Callable[[str], None]) -> Settings:
    """The settings with the modules of all runs that were left unfinished in a SQLite file.

    Those of them that are gone are told and left out: their tasks fail, and can be replayed later.
    What somebody gave stays, so that workers refuse a name with a mistake in it.
    """
    path = settings.store.path
    if path is None or not path.exists():
        return settings
    async with reading(settings.store, SystemClock()) as store:
        try:
            versions = {run.version_id for run in await unfinished_runs(store)}
        except StoreRefused:
            return settings  # a start that was cut short: the file has no tables yet
    given = settings.imports
    recalled = [one for one in Sources(settings.store).recall(versions) if one not in given]
    lost = _lost_files(recalled)
    for name in lost:
        tell(f"{name} is gone: runs that need it cannot go on")
    return replace(settings, imports=(*given, *(one for one in recalled if one not in lost)))


def _lost_files(imports: Iterable[str]) -> list[str]:
    return [name for name in imports if name.endswith(".py") and not Path(name).is_file()]


def _refuse_lost(imports: Iterable[str]) -> None:
    lost = _lost_files(imports)
    if lost:
        raise InvalidInput([_lost(name) for name in lost])


def _lost(name: str) -> Problem:
    file = Path(name).name
    message = f"{name} is gone: put it back, or give its new place as --import folder/{file}"
    return Problem(path="--import", message=message, code="NOT_FOUND")
