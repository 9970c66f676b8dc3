"""What workers need to go on with runs that are in the store already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.run import Run
from tidemill.ports.store import Store
from tidemill.runtime.config import EmbeddedSettings, serving
from tidemill.runtime.inspection import read_plan
from tidemill.runtime.sources import Sources


async def settings_for(
    store: Store, settings: EmbeddedSettings, runs: Sequence[Run]
) -> EmbeddedSettings:
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


def _refuse_lost(imports: Iterable[str]) -> None:
    lost = [name for name in imports if name.endswith(".py") and not Path(name).is_file()]
    if lost:
        raise InvalidInput([_lost(name) for name in lost])


def _lost(name: str) -> Problem:
    file = Path(name).name
    message = f"{name} is gone: put it back, or give its new place as --import folder/{file}"
    return Problem(path="--import", message=message, code="NOT_FOUND")
