"""What the exit status of a worker process tells whoever started it."""

from __future__ import annotations

USAGE = 2  # an option is wrong, or a module cannot be imported
WORN_OUT = 75  # temporary failure, in the words of sysexits.h: a fresh process will do
REFUSED = 78  # configuration error: a fresh process will be refused as well

UNUSABLE = frozenset({USAGE, REFUSED})
"""A worker that ends so without ever having had a session need not be tried again."""
