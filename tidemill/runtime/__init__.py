"""Puts the parts together to processes, whoever starts them: a command, a program or a test."""

from __future__ import annotations

import os

# gRPC would start threads in a fork that is about to become a worker, and crash there. It reads
# this when it is imported, which no module below does before this one.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
