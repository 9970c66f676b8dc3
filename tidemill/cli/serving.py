"""How commands that serve until somebody stops them begin, wait and end."""

from __future__ import annotations

import asyncio
import os
from contextlib import AbstractAsyncContextManager

from tidemill.cli.interrupts import Interrupts
from tidemill.cli.output import say
from tidemill.runtime.logging_setup import log_to_stderr
from tidemill.runtime.loops import run_serving
from tidemill.runtime.roles import Role
from tidemill.runtime.settings import Settings
from tidemill.runtime.system import SystemClock


def serve(role: AbstractAsyncContextManager[Role], settings: Settings, hint: str = "") -> int:
    """Carry out a role until SIGTERM or Ctrl-C, which drain it; a second one ends it at once."""
    log_to_stderr(settings.log_level, SystemClock())
    return run_serving(_serve(role, hint))


async def _serve(role: AbstractAsyncContextManager[Role], hint: str) -> int:
    with Interrupts() as interrupts:
        begun = asyncio.Event()
        working = asyncio.create_task(_work(role, hint, begun, interrupts.first))
        heeding = asyncio.create_task(_heed(interrupts, begun, working))
        try:
            await working
        except asyncio.CancelledError:
            if not interrupts.first.is_set():
                raise
        finally:
            heeding.cancel()
    return 0


async def _work(
    role: AbstractAsyncContextManager[Role], hint: str, begun: asyncio.Event, stop: asyncio.Event
) -> None:
    async with role as serving:
        begun.set()
        say(f"{serving.name} {serving.parts.name} (process {os.getpid()}) serves", err=True)
        for name, text in serving.facts.items():
            say(f"  {name:8} {text}", err=True)
        if hint:
            say(hint, err=True)
        await serving.until(stop)


async def _heed(interrupts: Interrupts, begun: asyncio.Event, work: asyncio.Task[None]) -> None:
    """End a role that is only beginning; let one that has begun drain, unless somebody insists."""
    await interrupts.first.wait()
    if not begun.is_set():
        work.cancel()
    await interrupts.second.wait()
    os._exit(interrupts.exit_code)
