"""The cluster: every role on nodes of its own, restarted from the store whenever one dies."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from tests.simulation.chance import Chance
from tests.simulation.journal import Journal
from tests.simulation.loop import SimLoop
from tests.simulation.nodes import Node, NodeClock, NodeEntropy

SKEW_SECONDS_MAX = 3_600.0
RESTART_SECONDS = (0.1, 0.5, 2.0, 8.0, 15.0)

Start = Callable[[Node, NodeClock, NodeEntropy], Coroutine[Any, Any, None]]


class Role:
    """One place in the cluster; its node is replaced after each death."""

    def __init__(self, name: str, start: Start, *, may_end: bool) -> None:
        self.name = name
        self.start = start
        self.may_end = may_end
        self.starts = 0
        self.node: Node | None = None
        self.finished = False


class Cluster:
    """All roles, and how they come back."""

    def __init__(self, loop: SimLoop, chance: Chance, journal: Journal) -> None:
        self.loop = loop
        self.chance = chance
        self.journal = journal
        self.roles: dict[str, Role] = {}
        self.nodes: list[Node] = []  # all that ever lived, kept as the loop keeps tasks
        self.on_role_ended: Callable[[str, BaseException | None], None] = lambda _n, _e: None

    def add(self, name: str, start: Start, *, may_end: bool = False) -> None:
        """Add a role and start it. One that may end is a program, not a service."""
        role = Role(name, start, may_end=may_end)
        self.roles[name] = role
        self._start(role)

    def living(self, prefix: str) -> list[Node]:
        """The nodes of this kind that are up."""
        found = [role.node for name, role in self.roles.items() if name.startswith(prefix)]
        return [node for node in found if node is not None and node.alive]

    def mend(self) -> None:
        """Resume what sleeps and start what is down, for good."""
        for role in self.roles.values():
            if role.node is not None and role.node.alive:
                role.node.resume()
            elif not role.finished:
                self._start(role)

    def _start(self, role: Role) -> None:
        if role.finished or (role.node is not None and role.node.alive):
            return
        role.starts += 1
        node = Node(self.loop, f"{role.name}.{role.starts}")
        role.node = node
        self.nodes.append(node)
        self.journal.note(node.name, "starts")
        node.on_kill.append(lambda: self._note_death(role, node))
        clock = NodeClock(self.loop, self._skew())
        entropy = NodeEntropy(self.loop, Random(self.chance.random.getrandbits(64)))
        main = node.spawn(role.start(node, clock, entropy))
        outside = contextvars.Context()
        main.add_done_callback(lambda task: self._note_end(role, node, task), context=outside)

    def _skew(self) -> float:
        if not self.chance.sometimes("node.skew"):
            return 0.0
        return self.chance.between(-SKEW_SECONDS_MAX, SKEW_SECONDS_MAX)

    def _note_death(self, role: Role, node: Node) -> None:
        self.journal.note(node.name, "is killed")
        delay = self.chance.random.choice(RESTART_SECONDS) if self.chance.faults_on else 0.1
        self.loop.call_outside(delay, lambda: self._start(role))

    def _note_end(self, role: Role, node: Node, task: asyncio.Task[None]) -> None:
        if not node.alive:
            return
        error = None if task.cancelled() else task.exception()
        self.journal.note(node.name, "ends", repr(error) if error else "")
        if error is not None or not role.may_end:
            self.on_role_ended(node.name, error)
        elif role.name.startswith("client"):
            role.finished = True
        else:
            # A worker that has drained, or was worn out, is replaced by its supervisor.
            node.kill()
