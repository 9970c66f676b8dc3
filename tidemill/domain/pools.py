"""Pools: the workers behind a broker that may stand in for each other, as one holder of grants.

Workers of the same namespace, queues and labels share a pool. A task for them is granted to the
pool first, and bound to the worker that takes it up; until then nobody has begun it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidemill.domain.identifiers import SessionId

POOL_PREFIX = "pool-"
BROKER_PREFIX = "broker-"
TOPIC_CHARACTERS_MAX = 150

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")


class PoolKey(NamedTuple):
    """What the workers of a pool have in common."""

    namespace: str
    queues: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]

    @property
    def id(self) -> SessionId:
        """The name under which the pool holds grants, the same wherever it is worked out."""
        return SessionId(POOL_PREFIX + self._digest())

    @property
    def topic(self) -> str:
        """Where commands for the pool are sent: `tasks.default.orders` in the plain case.

        Brokers are narrow about names. What had to be changed, or could be read in two ways, is
        told apart by a few digits of the pool's id.
        """
        queues = "_".join(self.queues)
        labels = "_".join(f"{name}-{value}" for name, value in self.labels)
        parts = [self.namespace, queues, labels] if labels else [self.namespace, queues]
        text = ".".join(["tasks", *(_NOT_PLAIN.sub("_", part) for part in parts)])
        plain = len(self.queues) == 1 and not labels and all(map(_PLAIN.fullmatch, parts))
        if plain and len(text) <= TOPIC_CHARACTERS_MAX:
            return text
        return f"{text[:TOPIC_CHARACTERS_MAX]}.{self._digest()[:8]}"

    def _digest(self) -> str:
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()[:32]


def pool_key(namespace: str, queues: Iterable[str], labels: Mapping[str, str]) -> PoolKey:
    """The pool of a worker; the order in which it names queues and labels does not matter."""
    return PoolKey(namespace, tuple(sorted(set(queues))), tuple(sorted(labels.items())))


def is_pool(session_id: SessionId | None) -> bool:
    """Whether a grant is held by a pool, so that nobody has begun it."""
    return session_id is not None and session_id.startswith(POOL_PREFIX)


def is_behind_broker(session_id: SessionId) -> bool:
    """Whether a session is that of a worker which is reached over the broker."""
    return session_id.startswith(BROKER_PREFIX)
