"""The bytes of one row of the outbox: like the real ones, run ids and compression included."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Sequence

SMALL_BYTES_MAX = 4_096
_HEAD = b'{"type":"%%b","namespace":"default","run_id":"%%b","workflow":"%b","at":%d,"state":"%%b"'
_TASK = b',"task":"step-%d","position":%d'
_GRANT = b',"epoch":1,"attempt":1'
_WORKFLOW = b"bench"


def now_micros() -> int:
    """Microseconds since 1970, as the tables have them."""
    return time.time_ns() // 1_000


class Facts:
    """Collects the facts of one transaction."""

    def __init__(self) -> None:
        self._parts = list[bytes]()
        self._now = now_micros()
        self._head = _HEAD % (_WORKFLOW, self._now)

    def begun(self, run_ids: Iterable[str]) -> None:
        """Runs that begin with a first task that waits."""
        self._add(b"workflow.started", b"RUNNING", run_ids, b"")
        self.ready(run_ids, 0)

    def ready(self, run_ids: Iterable[str], step: int) -> None:
        """Tasks that wait for a slot."""
        self._add(
            b"task.ready",
            b"READY",
            run_ids,
            _TASK % (step, step) + b',"attempt":1,"executor":"noop"',
        )

    def leased(self, run_ids: Iterable[str], step: int) -> None:
        """Tasks that were given to a worker."""
        self._add(b"task.started", b"RUNNING", run_ids, _TASK % (step, step) + _GRANT)

    def ended(self, run_ids: Iterable[str], step: int, *, last: bool) -> None:
        """Tasks that have ended, and their runs with the last one."""
        tail = _TASK % (step, step) + _GRANT + b',"started_at":%d' % self._now
        self._add(b"task.completed", b"SUCCEEDED", run_ids, tail)
        if last:
            self._add(b"workflow.completed", b"SUCCEEDED", run_ids, b"")

    def encoded(self) -> bytes:
        """One JSON array, compressed when it is long."""
        text = b"[" + b",".join(self._parts) + b"]"
        return text if len(text) <= SMALL_BYTES_MAX else zlib.compress(text, 1)

    def _add(self, kind: bytes, state: bytes, run_ids: Iterable[str], tail: bytes) -> None:
        head, tail = self._head, tail + b"}"
        self._parts += [head % (kind, run_id.encode(), state) + tail for run_id in run_ids]


def start_facts(run_ids: Sequence[str]) -> bytes:
    """What a submission tells."""
    facts = Facts()
    facts.begun(run_ids)
    return facts.encoded()
