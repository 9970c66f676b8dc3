"""`python -m tidemill.worker`: where a worker process gets its real clock and its real chance."""

from __future__ import annotations

import sys

from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.worker.main import main

if __name__ == "__main__":
    main(sys.argv[1:], SystemClock(), SystemEntropy())
