"""Trying dead letters again: by whoever serves, or here when nobody does."""

from __future__ import annotations

from typing import Any

from tidemill.cli.link import Link, find_run, find_task
from tidemill.cli.output import answer, command
from tidemill.cli.views.text import plural, printable, short_id
from tidemill.domain.errors import Conflict
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.task_run import TaskState
from tidemill.protocol.resources import ReplayMany
from tidemill.runtime.connecting import Reached
from tidemill.runtime.settings import Settings


async def replay_one(link: Link, run: str, task: str, as_json: bool) -> int:
    """Have one task tried again; see its run to the end when nobody else does."""
    async with link.open() as reached:
        run_id = await find_run(reached, run)
        details = await find_task(reached, run_id, task)
        if await _somebody_serves(reached):
            after = await reached.client.replay(run_id, task)
            words = f"{printable(task)} runs again: {command(f'show {short_id(run_id)}')}"
            answer(after, words, as_json)
            return 0
    if details.task.state is not TaskState.FAILED:
        raise Conflict(f"{task} is {details.task.state}: only a FAILED task can be replayed")
    key = TaskKey(RunId(run_id), details.task.position)
    return await _replay_here(key, link.settings, as_json)


async def replay_many(reached: Reached, wanted: dict[str, Any], as_json: bool) -> int:
    """Have many tried again, so many a second."""
    after = await reached.client.replay_many(ReplayMany(**wanted))
    more = f"; more are left: {command('dead groups')}" if after.more else ""
    answer(after, f"{plural(after.replayed, 'task')} run again{more}", as_json)
    return 0


async def _somebody_serves(reached: Reached) -> bool:
    """On PostgreSQL, a worker must be connected; else this process does the work."""
    if reached.store is None or reached.store.path is not None:
        return reached.served
    return bool(await reached.client.workers())


async def _replay_here(key: TaskKey, settings: Settings, as_json: bool) -> int:
    from tidemill.cli.session import RunSession
    from tidemill.runtime.resuming import settings_for
    from tidemill.runtime.system import SystemClock
    from tidemill.runtime.wiring import reading

    async with reading(settings.store, SystemClock()) as store:
        run = await store.reader.run("default", key.run_id)
        settings = await settings_for(store, settings, [run])
    session = RunSession(settings, [key.run_id], quiet=as_json)
    code = await session.run_again(replay=key)
    if as_json:
        session.print_run()
    return code
