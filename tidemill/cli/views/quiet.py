"""A run that is told at its end only, for programs that read JSON."""

from __future__ import annotations

from tidemill.cli.output import say
from tidemill.cli.views.model import TaskLine
from tidemill.cli.views.text import printable
from tidemill.domain.facts import Fact
from tidemill.domain.identifiers import Moment


class QuietView:
    """Shows nothing but notices, which go to standard error."""

    def __enter__(self) -> QuietView:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, fact: Fact, line: TaskLine | None) -> None:
        """Keep a fact to itself."""

    def notice(self, text: str, now: Moment) -> None:
        """Tell what is not about a task, beside the JSON."""
        say(printable(text), err=True)

    def refresh(self, now: Moment) -> None:
        """Let time pass."""
