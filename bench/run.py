#!/usr/bin/env python3
"""The command: `bench/run.py --help`."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    # Started as a file, Python would look for modules in this folder, not in the repository.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    if importlib.util.find_spec("pytest") is None:  # its servers come from the tests
        print("error: bench needs what tests need: run `make setup` first", file=sys.stderr)
        sys.exit(2)
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # it would tell of every server that starts
    runpy.run_module("bench", run_name="__main__", alter_sys=True)
