"""`tidemill top`: how everything stands, live."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import click

from tidemill.cli.link import Link, link_options
from tidemill.cli.output import say

QUIT = {"q", "Q", "\x03", "\x1b"}
WIDTH_IN_A_PIPE = 120


@click.command()
@click.option("--once", is_flag=True, help="Print it once, as text, and end.")
@click.option(
    "--every",
    type=click.FloatRange(0.2, 60),
    default=1.0,
    metavar="SECONDS",
    help="How often to look.  [default: 1]",
)
@click.option("--json", "as_json", is_flag=True, help="Print it once, as JSON, and end.")
@link_options
def top(once: bool, every: float, as_json: bool, link: Link) -> None:
    """Queues, workers, rates and the newest runs, live; q quits.

    \b
    tidemill top
    tidemill top --once
    """
    live = not once and not as_json and sys.stdout.isatty() and sys.stdin.isatty()

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import print_json

        if as_json:
            print_json(await reached.client.overview())
        elif live:
            await _live(reached, every)
        else:
            await _print_once(reached)

    link.run(work)


async def _print_once(reached: Any) -> None:
    from rich.console import Console

    from tidemill.cli.views.dashboard import Dashboard

    board = Dashboard(_label(reached))
    await _look(reached, board)
    columns = shutil.get_terminal_size((WIDTH_IN_A_PIPE, 24)).columns  # COLUMNS counts first
    console = Console(width=columns, highlight=False)
    with console.capture() as drawn:
        console.print(board.draw(console.width, None))
    say(drawn.get().rstrip("\n"))


async def _live(reached: Any, every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    from tidemill.cli.views.dashboard import Dashboard
    from tidemill.domain.errors import Unavailable

    board, console, stop = Dashboard(_label(reached)), Console(highlight=False), None
    with _keys() as quit_asked, Live(console=console, screen=True, auto_refresh=False) as live:
        while stop is None:
            try:
                await _look(reached, board)
                board.trouble = ""
            except Unavailable as error:
                board.trouble = str(error)
            live.update(board.draw(console.width, console.height), refresh=True)
            with contextlib.suppress(TimeoutError):
                stop = await asyncio.wait_for(quit_asked.wait(), every)


def _label(reached: Any) -> str:
    return str(reached.store) if reached.store is not None else reached.client.server


async def _look(reached: Any, board: Any) -> None:
    overview = await reached.client.overview()
    runs = [run async for run in reached.client.runs(limit=50)]
    board.take(overview, runs)


@contextlib.contextmanager
def _keys() -> Iterator[asyncio.Event]:
    """Single keys instead of lines, for the block; the event says that somebody wants to quit."""
    import termios
    import tty

    loop, asked, keyboard = asyncio.get_running_loop(), asyncio.Event(), sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)

    def read() -> None:
        if sys.stdin.read(1) in {*QUIT, ""}:
            asked.set()

    tty.setcbreak(keyboard)
    loop.add_reader(keyboard, read)
    try:
        yield asked
    finally:
        loop.remove_reader(keyboard)
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
