"""A bar for work by the thousand: how far, how fast, how long still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class _Rate(ProgressColumn):
    """Items a second."""

    def render(self, task: Task) -> Text:
        """The speed of late, or nothing before there is one."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s", style="cyan")


@contextmanager
def bar(total: int | None) -> Iterator[Callable[[int], None]]:
    """Draw a bar on standard error for the block; what is yielded takes the count so far."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("sending", total=total)
        yield lambda count: progress.update(task, completed=count)
