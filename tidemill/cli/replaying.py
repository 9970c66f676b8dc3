"""Trying dead letters again: by whoever serves, or here when nobody does."""

from __future__ import annotations

from typing import Any

from tidemill.cli.link import Link, find_run
from tidemill.cli.output import command, say
from tidemill.cli.views.text import plural, printable, short_id
from tidemill.domain.errors import Conflict
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.task_run import TaskState
from tidemill.protocol.resources import ReplayMany
from tidemill.runtime.connecting import Reached
from tidemill.runtime.settings import Settings


async def replay_one(link: Link, run: str, task: str, settings: Settings) -> int:
    """Have one task tried again; see its run to the end when nobody else does."""
    async with link.open() as reached:
        run_id = await find_run(reached, run)
        details = await reached.client.task(run_id, task)
        if await _somebody_serves(reached):
            await reached.client.replay(run_id, task)
            say(f"{printable(task)} runs again: {command(f'show {short_id(run_id)}')}")
            return 0
    if details.task.state is not TaskState.FAILED:
        raise Conflict(f"{task} is {details.task.state}: only a FAILED task can be replayed")
    return await _replay_here(RunId(run_id), details.task.position, settings)


async def replay_many(reached: Reached, chosen: dict[str, Any], rate: float, limit: int) -> int:
    """Have many tried again, so many a second."""
    after = await reached.client.replay_many(ReplayMany(rate=rate, limit=limit, **chosen))
    more = f"; more are left: {command('dead groups')}" if after.more else ""
    say(f"{plural(after.replayed, 'task')} run again{more}")
    return 0


async def _somebody_serves(reached: Reached) -> bool:
    """On PostgreSQL, a worker must be connected; else this process does the work."""
    if reached.store is None or reached.store.path is not None:
        return reached.served
    return bool(await reached.client.workers())


async def _replay_here(run_id: RunId, position: int, settings: Settings) -> int:
    from tidemill.cli.session import RunSession
    from tidemill.runtime.resuming import settings_for
    from tidemill.runtime.system import SystemClock
    from tidemill.runtime.wiring import reading

    async with reading(settings.store, SystemClock()) as store:
        run = await store.reader.run("default", run_id)
        settings = await settings_for(store, settings, [run])
    return await RunSession(settings, [run_id]).run_again(replay=TaskKey(run_id, position))
