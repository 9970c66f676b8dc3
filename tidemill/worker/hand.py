"""Commands in hand: taken from the broker, and not begun until a scheduler says `bound`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidemill.domain.identifiers import Token
from tidemill.protocol.messages import Assignment

KEPT_SECONDS = 13.0
"""How long a command is kept that cannot begin; soon after, its grant goes back by itself."""


@dataclass(slots=True)
class InHand:
    """One command."""

    assignment: Assignment
    number: int  # of this copy of the command
    alone: bool
    taken_at: float
    say_at: float  # when `started` is to be said, again
    said: int = 0  # how often it was


class Hand:
    """What was taken and not begun. One that must run alone is kept until nothing else runs."""

    def __init__(self, started_seconds: float) -> None:
        self._started_seconds = started_seconds
        self._commands: dict[Token, InHand] = {}
        self._taken = 0

    def __len__(self) -> int:
        return len(self._commands)

    def __contains__(self, token: Token) -> bool:
        return token in self._commands

    @property
    def tokens(self) -> tuple[Token, ...]:
        """What is in hand."""
        return tuple(self._commands)

    @property
    def alone(self) -> Token | None:
        """A command that wants the worker to itself."""
        return next((token for token, one in self._commands.items() if one.alone), None)

    def put(self, assignment: Assignment, alone: bool, now: float) -> None:
        """Take a command in hand."""
        self._taken += 1
        self._commands[assignment.token] = InHand(assignment, self._taken, alone, now, now)

    def number_of(self, token: Token) -> int | None:
        """The number of the copy that is in hand, if one is."""
        command = self._commands.get(token)
        return None if command is None else command.number

    def said_again(self, token: Token) -> bool:
        """Whether `started` was said more than once."""
        command = self._commands.get(token)
        return command is not None and command.said > 1

    def take(self, token: Token) -> InHand | None:
        """A command that may begin, or goes away."""
        return self._commands.pop(token, None)

    def to_say(self, now: float, *, running: int) -> list[Token]:
        """Whose `started` is to be said now. One that runs alone waits for all others."""
        due = [token for token in self._ready(running) if self._commands[token].say_at <= now]
        for token in due:
            self._commands[token].say_at = now + self._started_seconds
            self._commands[token].said += 1
        return due

    def drop_old(self, now: float, *, running: int) -> None:
        """Let go of what could not begin for too long; somebody else will get it."""
        ready = self._ready(running)
        old = [token for token, one in self._commands.items() if one.taken_at + KEPT_SECONDS <= now]
        self.drop(token for token in old if token not in ready)

    def next_at(self, *, running: int) -> float | None:
        """When something is to be said or dropped next."""
        ready = self._ready(running)
        times = (
            one.say_at if token in ready else one.taken_at + KEPT_SECONDS
            for token, one in self._commands.items()
        )
        return min(times, default=None)

    def _ready(self, running: int) -> set[Token]:
        others = running + sum(not one.alone for one in self._commands.values())
        return {token for token, one in self._commands.items() if not one.alone or not others}

    def drop(self, tokens: Iterable[Token]) -> None:
        """Let go of commands."""
        for token in tokens:
            self._commands.pop(token, None)
