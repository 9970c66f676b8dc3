"""Every case catches the worker that breaks its promise: the plain one, with one line spoiled."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.style.sources import ROOT
from tidemill.runtime.conformance.cases import CASES
from tidemill.runtime.conformance.suite import Verdict, run_suite

PLAIN = (ROOT / "examples" / "workers" / "plain_worker.py").read_text()

# Which case, what it says in the plain worker, and what the spoiled one says instead.
SPOILED = [
    ("greets properly", '("echo", "fail", "final", "sleep")', '("echo", "fail", "sleep")'),
    (
        "runs a batch",
        'return {"params": params, "inputs": inputs}',
        'raise TaskFailed("", "", True)',
    ),
    ("respects slots", "if len(self.running) >= self.slots:", "if self.slots == 0:"),
    ("returns results", "json.dumps(value, allow_nan=False)", "json.dumps(str(value))"),
    ("reports failures with type and message", "type=kind, message=str(error)", "type=kind"),
    ("retries are new attempts", "position=key[1], epoch=key[2]", "position=key[1], epoch=1"),
    ("final errors are final", 'getattr(error, "final", False)', "False"),
    ("cancels and confirms", "cancel_confirmed=wire.CancelConfirmed()", "released=wire.Released()"),
    ("pings when idle", "0 if self.unsent else PING_SECONDS", "0 if self.unsent else 2.8"),
    ("sends Holdings", "map(token_of, (*self.running, *self.finished))", "()"),
    ("repeats unacknowledged outcomes", '"finished": self.finished.values()', '"finished": ()'),
    (
        "keeps running attempts over a reconnect",
        '"held": map(token_of, self.running)',
        '"held": ()',
    ),
    ("obeys Welcome.keep", "self.stop(key)  # somebody", "pass  # somebody"),
    ("notices silence", "call.read(), SILENCE_SECONDS)", "call.read(), 60)"),
    ("accepts unknown fields", "self.handle(wire", 'b"unknown" in data and sys.exit(9)\n#'),
    ("leaves with Goodbye on SIGTERM", "add_signal_handler(signal.SIGTERM, ", "call_later(99, "),
    ("ends when its token is refused", "is grpc.StatusCode.UNAUTHENTICATED", "is None"),
]


async def test_each_case_fails_a_worker_that_breaks_its_promise(tmp_path: Path) -> None:
    assert [name for name, _, _ in SPOILED] == [case.name for case in CASES]

    verdicts = await asyncio.gather(*(_try(tmp_path, *spoiled) for spoiled in SPOILED))

    assert [verdict.name for verdict in verdicts if verdict.passed] == []


async def _try(folder: Path, name: str, honest: str, spoiled: str) -> Verdict:
    assert PLAIN.count(honest) == 1, honest
    script = folder / f"{name.replace(' ', '_')}.py"
    script.write_text(PLAIN.replace(honest, spoiled))
    chosen = [case for case in CASES if case.name == name]
    (verdict,) = await run_suite([sys.executable, str(script)], cases=chosen)
    return verdict
