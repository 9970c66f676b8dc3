"""From the start of a process to the end of its first run."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.deployment import PROGRAM, ROOT, RoleProcess
from tests.servers.process import free_port
from tidemill.runtime.addresses import StoreAddress

HELLO = ROOT / "examples" / "hello.yaml"
LOOK_SECONDS = 0.01
START_SECONDS_MAX = 60.0
JOB = {"type": "noop", "payload": {}}


class Up(RoleProcess):
    """`tidemill up`, which serves HTTP on an address of its own."""

    def __init__(self, address: StoreAddress, folder: Path, options: Sequence[str] = ()) -> None:
        place = f"127.0.0.1:{free_port()}"
        self.url = f"http://{place}"
        store = str(address.path or address.dsn)
        command = [*PROGRAM, "up", "--store", store, "--listen", place, *options]
        super().__init__("up", command, folder)

    async def seconds_to_first_run(self) -> float:
        """Start it, submit a job as soon as somebody answers, and wait for its end."""
        # What the client needs to begin is not ours to count.
        async with httpx.AsyncClient(base_url=self.url, timeout=START_SECONDS_MAX) as client:
            begin = time.perf_counter()
            self.start()
            run_id = await self._submit(client)
            answer = await client.get(f"/v1/runs/{run_id}/wait", params={"timeout": 30})
            seconds = time.perf_counter() - begin
        if answer.status_code != httpx.codes.OK or answer.json()["state"] != "SUCCEEDED":
            raise RuntimeError(f"the first run is {answer.text}: {self.text()}")
        return seconds

    async def until_serving(self) -> None:
        """Start it, and wait until it answers."""
        self.start()
        async with httpx.AsyncClient(base_url=self.url, timeout=START_SECONDS_MAX) as client:
            await self._ask(client, "GET", "/v1/workers")

    async def _submit(self, client: httpx.AsyncClient) -> str:
        answer = await self._ask(client, "POST", "/v1/jobs", json=JOB)
        return str(answer.json()["id"])

    async def _ask(
        self, client: httpx.AsyncClient, method: str, path: str, json: object = None
    ) -> httpx.Response:
        """As soon as somebody listens."""
        async with asyncio.timeout(START_SECONDS_MAX):
            while True:
                with suppress(httpx.ConnectError):
                    answer = await client.request(method, path, json=json)
                    return answer.raise_for_status()
                if not self.running:
                    raise RuntimeError(f"it has ended: {self.text()}")
                await asyncio.sleep(LOOK_SECONDS)


@contextmanager
def tidemill_up(address: StoreAddress, options: Sequence[str] = ()) -> Iterator[Up]:
    """A process that is not started yet, and ends with the block."""
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name:
        process = Up(address, Path(name), options)
        try:
            yield process
        finally:
            process.kill()


def seconds_of_hello(address: StoreAddress) -> float:
    """`tidemill run` of the first workflow of the documentation, from start to end."""
    command = [*PROGRAM, "run", str(HELLO), "--store", str(address.path or address.dsn)]
    begin = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=START_SECONDS_MAX)
    return time.perf_counter() - begin
