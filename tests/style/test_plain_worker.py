"""The example worker stays what it is an example of: short, and free of Tidemill's own code."""

from __future__ import annotations

import ast
import sys

from tests.style.sources import ROOT

PATH = ROOT / "examples" / "workers" / "plain_worker.py"
LINES_MAX = 200
ALLOWED = {"grpc", "grpc.aio", "worker_pb2", "tidemill.protocol.generated"}


def test_the_plain_worker_is_short() -> None:
    assert len(PATH.read_text().splitlines()) < LINES_MAX


def test_the_plain_worker_knows_grpc_the_messages_and_the_standard_library_alone() -> None:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(PATH.read_text())):
        if isinstance(node, ast.Import):
            modules.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")

    foreign = {name for name in modules if name.partition(".")[0] not in sys.stdlib_module_names}
    assert foreign <= ALLOWED
