"""What a process asks of the interpreter once all that stays in memory is there."""

from __future__ import annotations

import gc
import sys

YOUNG_OBJECTS_MAX = 50_000
USER_OBJECTS_MAX = 10_000
MIDDLE_ROUNDS = 20
OLD_ROUNDS = 50
SWITCH_SECONDS = 0.0005


def settle_in() -> None:
    """Make the interpreter spend its time on work: for a serving process that is wired.

    The collector of cycles looks at every container that lives, each time that some hundred new
    ones were made: 15 % of the time of a busy process. Values have no cycles, so there is little to
    find: it looks more seldom, and what a cycle holds goes some ten thousand objects later.

    A thread that wants the interpreter lets another one have it for 5 ms by default, as long as a
    whole turn: the threads of SQLite would wait for that again and again.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, MIDDLE_ROUNDS, OLD_ROUNDS)
    sys.setswitchinterval(SWITCH_SECONDS)


def settle_in_beside_user_code() -> None:
    """The same for a worker, with more restraint: what user code makes is to go soon.

    A dozen objects live as long as an attempt does: by default the collector would look at all of
    them after every fifty attempts that begin, a tenth of the time of a busy worker.
    """
    gc.freeze()
    gc.set_threshold(USER_OBJECTS_MAX)
