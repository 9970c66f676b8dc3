"""`tidemill resume`: finish what a crash or Ctrl-C left."""

from __future__ import annotations

import click

from tidemill.cli.options import absolute, complete, store_option, worker_options


@click.command(short_help="Finish what a crash or Ctrl-C left.")
@click.argument("run", required=False)
@worker_options
@store_option
def resume(run: str | None, imports: tuple[str, ...], slots: int, workers: int, store: str) -> int:
    """Finish RUN, or everything that was left unfinished.

    Workers import what they imported before; --import adds to it.
    """
    return complete(_resume(run, imports, slots, workers, store))


async def _resume(
    text: str | None, imports: tuple[str, ...], slots: int, workers: int, store: str
) -> int:
    from tidemill.cli.session import RunSession
    from tidemill.domain.errors import Conflict
    from tidemill.domain.run import RUN_ENDED
    from tidemill.runtime import inspection
    from tidemill.runtime.config import EmbeddedSettings, parse_store
    from tidemill.runtime.leftovers import LEFT, unfinished_runs
    from tidemill.runtime.resuming import settings_for
    from tidemill.runtime.system import SystemClock
    from tidemill.runtime.wiring import reading

    settings = EmbeddedSettings(
        store=parse_store(store), workers=workers, slots=slots, imports=absolute(imports)
    )
    async with reading(settings.store, SystemClock()) as opened:
        if text is None:
            found = [run for run in await unfinished_runs(opened) if run.quarantine in {None, LEFT}]
        else:
            found = [await inspection.find_run(opened, text)]
        settings = await settings_for(opened, settings, found)
    if not found:
        click.echo("nothing is left unfinished")
        return 0
    if found[0].state in RUN_ENDED:
        raise Conflict(f"run {found[0].id} has ended: {found[0].state}")
    return await RunSession(settings, [run.id for run in found]).run_again()
