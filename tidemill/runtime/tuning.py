"""What a process asks of the interpreter once all that stays in memory is there."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS_MAX = 50_000
USER_OBJECTS_MAX = 10_000
MIDDLE_ROUNDS = 20
OLD_ROUNDS = 50
SWITCH_SECONDS = 0.0005


@contextmanager
def settled_in() -> Iterator[None]:
    """Let the interpreter spend its time on work, while a system that is wired serves.

    The collector of cycles looks at every container that lives, each time that some hundred new
    ones were made: 15 % of the time of a busy process. Values have no cycles, so there is little to
    find: it looks more seldom, and what a cycle holds goes some ten thousand objects later.

    A thread that wants the interpreter lets another one have it for 5 ms by default, as long as a
    whole turn: the threads of SQLite would wait for that again and again.

    A process may have several systems, one after the other: none must stay for the sake of the
    next one, and whoever embeds them gets the interpreter back as it was.
    """
    thresholds, switch_seconds = gc.get_threshold(), sys.getswitchinterval()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, MIDDLE_ROUNDS, OLD_ROUNDS)
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(switch_seconds)


def settle_in_beside_user_code() -> None:
    """The like for a worker, with more restraint: what user code makes is to go soon.

    A dozen objects live as long as an attempt does: by default the collector would look at all of
    them after every fifty attempts that begin, a tenth of the time of a busy worker.
    """
    gc.freeze()
    gc.set_threshold(USER_OBJECTS_MAX)
