"""What workers need to go on with runs that are in the store already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.domain.run import Run
from tidemill.ports.store import Store
from tidemill.runtime.config import EmbeddedSettings, serving
from tidemill.runtime.inspection import read_plan
from tidemill.runtime.sources import Sources


async def settings_for(
    store: Store, settings: EmbeddedSettings, runs: Sequence[Run]
) -> EmbeddedSettings:
    """The settings with the modules, queues and labels of these runs."""
    by_version = {run.version_id: run for run in runs}
    workflows = [(await read_plan(store, run)).workflow for run in by_version.values()]
    known = Sources(settings.store).recall(by_version)
    imports = dict.fromkeys((*known, *settings.imports))
    return serving(replace(settings, imports=tuple(imports)), workflows)
