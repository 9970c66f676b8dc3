"""One round of schemathesis against a server of our own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.fuzz.samples import make_samples
from tests.fuzz.server import TOKEN, a_server
from tidemill.runtime.system import SystemClock
from tidemill.stores.postgres.store import PostgresStore
from tidemill.stores.sqlite.store import SqliteStore

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SAMPLES = "TIDEMILL_FUZZ_SAMPLES"
"""The variable that tells the hooks, in another process, what there is."""

_GENERATED = re.compile(r"([\d,]+) generated")
_OPTIONS = (
    "--checks=all",
    "--mode=all",
    "--workers=1",
    "--request-timeout=20",
    "--suppress-health-check=all",
    "--generation-database=none",
    "--continue-on-failure",
    "--warnings=off",
    "--no-color",
    "--no-shrink",
    f"--header=Authorization: Bearer {TOKEN}",
)


class Fuzzed(NamedTuple):
    """How a round ended."""

    status: int
    cases: int
    text: str


async def fuzz(examples: int, seed: int, more: list[str], dsn: str | None = None) -> Fuzzed:
    """Run schemathesis over every operation, with so many examples for each.

    Over SQLite in memory, or over a PostgreSQL in which each seed has a schema of its own.
    """
    store: SqliteStore | PostgresStore
    if dsn is None:
        store = SqliteStore(":memory:", SystemClock(), threads=False)
    else:
        store = PostgresStore(dsn, schema=f"fuzz_{seed}")
    await store.migrate()
    try:
        async with a_server(store) as address:
            bearer = {"Authorization": f"Bearer {TOKEN}"}
            async with httpx.AsyncClient(base_url=address, headers=bearer, timeout=30) as client:
                samples = await make_samples(client)
            own = [f"--max-examples={examples}", f"--seed={seed}"]
            return await _run([f"{address}/v1/openapi.json", *own, *_OPTIONS, *more], samples)
    finally:
        await store.close()


async def _run(arguments: list[str], samples: dict[str, Any]) -> Fuzzed:
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("schemathesis"),
        f"--config-file={HERE / 'schemathesis.toml'}",
        "run",
        *arguments,
        cwd=ROOT,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "tests.fuzz.hooks",
            "PYTHONPATH": str(ROOT),
            SAMPLES: json.dumps(samples),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    text = output.decode(errors="replace")
    found = _GENERATED.search(text)
    cases = int(found[1].replace(",", "")) if found else 0
    assert process.returncode is not None
    return Fuzzed(process.returncode, cases, text)
