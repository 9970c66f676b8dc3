"""Ends a server whose test process is gone: python leash.py PID SIGNAL FOLDER, a pipe as stdin."""

from __future__ import annotations

import os
import shutil
import sys


def main(pid: int, signal: int, folder: str) -> None:
    """Wait for the end of the pipe, which comes with the end of the test process at the latest."""
    while os.read(0, 1):
        pass
    try:
        os.kill(pid, signal)
    except ProcessLookupError:
        return  # stopped in order
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
