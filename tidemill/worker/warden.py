"""Kills what a worker has left behind: a tiny process that waits for the worker's end.

It is run as a plain script, outside the package, so that it is small and there at once. Each line
on its standard input is `+PID` for a process group to watch over or `-PID` for one that has ended.
The end of the input means that the worker is gone, however it went.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Watch until the input ends, then kill every group that is still on the list."""
    watched: set[int] = set()
    for line in sys.stdin.buffer:
        if line.startswith(b"+"):
            watched.add(int(line[1:]))
        else:
            watched.discard(int(line[1:]))
    for group in watched:
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            """It was faster."""


if __name__ == "__main__":
    main()
