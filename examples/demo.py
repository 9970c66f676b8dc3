"""`make demo`: two workflows on this machine, one of them with its worker killed on the way."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from orders.shop import Shop

HERE = Path(__file__).parent
TIDEMILL = [sys.executable, "-m", "tidemill.cli"]
WAIT_SECONDS_MAX = 30.0
WIDTH = min(76, shutil.get_terminal_size().columns)
INTERRUPTED = 130


@dataclass(frozen=True)
class Recovery:
    """What became of the killed worker's tasks."""

    killed_pid: int
    seconds: float  # from kill -9 to the first task that runs again


def main() -> int:
    """Run both parts; exit code 0 when all went as it should."""
    with tempfile.TemporaryDirectory(prefix="tidemill-demo-") as folder:
        store = str(Path(folder, "demo.db"))
        began = time.monotonic()
        with Shop() as shop:
            orders = _orders(shop, store)
            if orders == INTERRUPTED:
                return INTERRUPTED
        recovery, milling = _milling(Path(folder), store)
        if milling == INTERRUPTED:
            return INTERRUPTED
        took = time.monotonic() - began
        ends = list(_runs(store)) if (orders, milling) == (0, 0) else []
    if not ends or recovery is None or len(shop.payments) != 1:
        click.echo("\nThe demo did not go as it should; what is printed above says where.")
        return 1
    _summary(shop, recovery, ends, took)
    return 0


def _orders(shop: Shop, store: str) -> int:
    _title("1  An order: fetched, paid for, confirmed")
    _say(
        f"A small shop has opened at {shop.address}. Its payment service is busy the first "
        "time it is asked, so process-payment fails on its first attempt and is retried.",
    )
    wanted = json.dumps({"shop": shop.address})
    return _run(store, str(HERE / "orders" / "orders.yaml"), "--input", wanted)


def _milling(folder: Path, store: str) -> tuple[Recovery | None, int]:
    _title("2  Three branches, and a worker killed with -9")
    _say("In the middle of the grinding, the process that runs all three tasks is killed.")
    found: list[Recovery] = []
    killer = threading.Thread(target=_kill_and_time, args=(folder, found), daemon=True)
    killer.start()
    wanted = json.dumps({"mailbox": str(folder)})
    flow = str(HERE / "branching" / "milling.yaml")
    status = _run(store, flow, "--input", wanted)
    killer.join(1)
    return (found[0] if found else None), status


def _kill_and_time(folder: Path, found: list[Recovery]) -> None:
    """Kill the process that grinds, and wait for the note of the one that takes over."""
    first = _note(folder, "*.1")
    if first is None:
        return
    time.sleep(1.0)
    pid = int(first.read_text())
    os.kill(pid, signal.SIGKILL)
    killed_at = time.monotonic()
    if _note(folder, "*.2") is not None:
        found.append(Recovery(pid, time.monotonic() - killed_at))


def _note(folder: Path, pattern: str) -> Path | None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        for note in folder.glob(pattern):
            if note.read_text():
                return note
        time.sleep(0.02)
    return None


def _run(store: str, *arguments: str) -> int:
    shown = [os.path.relpath(a) if a.startswith(str(HERE)) else a for a in arguments]
    tidemill = os.path.relpath(Path(sys.executable).with_name("tidemill"))
    click.secho(f"\n$ {tidemill} run {shlex.join(shown)}\n", fg="cyan")
    command = subprocess.Popen(
        [*TIDEMILL, "run", *arguments], env={**os.environ, "TIDEMILL_STORE": store}
    )
    while True:
        try:
            return command.wait()
        except KeyboardInterrupt:
            """The command has heard it too: it ends by itself, in order."""


def _runs(store: str) -> Iterator[dict[str, Any]]:
    command = [*TIDEMILL, "runs", "--json", "--store", store]
    yield from json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def _summary(shop: Shop, recovery: Recovery, runs: list[dict[str, Any]], took: float) -> None:
    [payment] = shop.payments.values()
    [told] = shop.notifications
    succeeded = sum(run["state"] == "SUCCEEDED" for run in runs)
    _title("What happened")
    _say(
        f"✓ {succeeded} of {len(runs)} runs succeeded, every step committed to a SQLite file.",
        f"✓ {told['customer']}'s order was paid on the second attempt and charged once:"
        f" {payment['amount']:.2f}, receipt {payment['receipt']}.",
        f"✓ Process {recovery.killed_pid} was killed with -9;"
        f" {recovery.seconds:.1f} s later its tasks ran again in a new one.",
        "✓ Nothing was lost, nothing was counted twice.",
        f"  All of it took {took:.1f} s.",
    )
    _say(
        "Go on by yourself:",
        "  .venv/bin/tidemill run examples/branching/milling.yaml",
        "  .venv/bin/tidemill runs",
        "  .venv/bin/tidemill show latest",
    )


def _title(text: str) -> None:
    rule = click.style("─" * WIDTH, dim=True)
    click.echo(f"\n{rule}\n{click.style(text, bold=True)}\n{rule}")


def _say(*paragraphs: str) -> None:
    click.echo()
    for text in paragraphs:
        hanging = "  " if text.startswith("✓") else ""
        lines = textwrap.wrap(
            text, WIDTH, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
        )
        for line in lines if not text.startswith(" ") else [text]:
            done = line.startswith("✓")
            click.echo(click.style("✓", fg="green", bold=True) + line[1:] if done else line)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
