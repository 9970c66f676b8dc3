"""What workers did and said, seen from outside: the checkers' second witness beside the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from tests.simulation.nodes import Node
from tests.simulation.violation import Violation
from tidemill.domain.events import WorkerReport
from tidemill.domain.identifiers import TaskKey, Token
from tidemill.protocol.messages import Goodbye, Hello, Outcomes, WorkerMessage


class Executions:
    """Every body that began, every report that left a worker."""

    def __init__(self) -> None:
        self.begun: dict[Token, Node] = {}
        self.bodies: Counter[str] = Counter()  # under way, by worker process
        self.reports: dict[Token, WorkerReport | None] = {}
        self.on_begin: Callable[[Token, Node], None] = lambda _token, _node: None
        self.on_inputs: Callable[[Token, dict[str, Any]], None] = lambda _token, _inputs: None
        self.on_violation: Callable[[Violation], None] = lambda _violation: None
        self.cancels_asked: set[str] = set()
        self.replays_asked: set[TaskKey] = set()

    def begin(self, token: Token, node: Node) -> None:
        """Note that a body begins; a token is good for one body."""
        self.on_begin(token, node)
        if token in self.begun:
            text = f"{token} began twice, on {self.begun[token].name} and on {node.name}"
            self.on_violation(Violation("I5", text))
        self.begun[token] = node
        self.bodies[node.name] += 1

    def end(self, node: Node) -> None:
        """Note that a body is really over."""
        self.bodies[node.name] -= 1

    def spy(self, message: WorkerMessage) -> None:
        """Note what a worker says about its grants."""
        match message:
            case Hello(finished=outcomes) | Outcomes(outcomes):
                for outcome in outcomes:
                    self.reports.setdefault(outcome.token, outcome.report)
            case Goodbye(released):
                self.note_released(released)
            case _:
                pass

    def is_live(self, token: Token) -> bool:
        """Whether some living process is at work on this grant and has not said how it ended."""
        node = self.begun.get(token)
        return node is not None and node.alive and token not in self.reports

    def note_released(self, tokens: Iterable[Token]) -> None:
        """Note what a worker hands back."""
        for token in tokens:
            self.reports.setdefault(token, None)
