"""`tidemill api` and the HTTP side of `tidemill up`, as real processes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from tests.process.cluster import fresh_database
from tests.process.commands import Shell, eventually, finish
from tests.servers.process import free_port
from tidemill.runtime.owner import OwnerCard, find_owner

STOP_SECONDS = 8.0


def serve(shell: Shell, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Start a role that serves HTTP and wait until it answers; the process and its URL."""
    url = f"http://127.0.0.1:{free_port()}"
    process = shell.start(*arguments, "--listen", url.removeprefix("http://"))

    def answers() -> bool:
        assert process.poll() is None, finish(process).err
        try:
            return httpx.get(f"{url}/health").status_code == 200
        except httpx.HTTPError:
            return False

    eventually(answers)
    return process, url


def owner_of(shell: Shell) -> OwnerCard:
    """Who owns the store of the folder, as soon as it has introduced itself."""

    def look() -> OwnerCard | None:
        card = find_owner(Path(shell.folder) / ".tidemill" / "tidemill.db")
        return card if card is not None and card.pid else None

    return eventually(look)


def test_up_serves_one_user_and_ends_while_others_follow_and_wait(shell: Shell) -> None:
    process, url = serve(shell, "up", "--workers", "0")
    card = owner_of(shell)

    foreign = httpx.get(f"{url}/health", headers={"host": "evil.example"})
    with httpx.Client(transport=httpx.HTTPTransport(uds=card.http_socket)) as local:
        inside = local.get("http://anything/health")
    made = httpx.post(f"{url}/v1/jobs", json={"type": "default"})
    waiting = HTTPConnection(url.removeprefix("http://"), timeout=STOP_SECONDS)
    waiting.request("GET", f"/v1/runs/{made.json()['id']}/wait?timeout=60")
    with httpx.stream("GET", f"{url}/v1/events", timeout=STOP_SECONDS) as events:
        pieces = events.iter_raw()
        next(pieces)  # so the server has heard of those who came before, too
        process.send_signal(signal.SIGTERM)
        list(pieces)
    answer = waiting.getresponse()
    waited = json.loads(answer.read())
    waiting.close()
    ended = finish(process)

    assert (card.http, foreign.status_code, inside.status_code) == (url, 403, 200)
    assert (answer.status, waited["ended"]) == (200, False)
    assert ended.code == 0
    assert f"{url} (no login is needed: only this machine can reach it)" in ended.err


def test_a_port_that_is_taken_is_told_with_the_fix(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = shell.run("up", "--listen", f"127.0.0.1:{port}")

    assert ended.code == 2
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in ended.err
    assert "--listen 127.0.0.1:0 for a free port" in ended.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["api"], "SQLite file, which belongs to one process"),
        (["up", "--listen", "0.0.0.0:8080"], "single-user mode has no login"),
        (["up", "--listen", "0.0.0.0:8080", "--insecure"], "give --auth identity"),
        (["up", "--listen", "0.0.0.0:8080", "--auth", "identity"], "--tls-cert"),
        (["api", "--listen", "[::]:8080", "--auth", "single-user"], "single-user mode"),
        (["up", "--auth", "nobody"], "must be one of single-user, identity"),
        (["up", "--cors-origins", "*"], "is not an origin"),
    ],
)
def test_what_would_be_open_to_others_is_refused(
    shell: Shell, arguments: list[str], told: str
) -> None:
    ended = shell.run(*arguments)

    assert (ended.code, told in ended.err) == (2, True), ended.err


@pytest.fixture
async def database(postgres_dsn: str) -> str:
    """A fresh PostgreSQL database, by its address."""
    return await fresh_database(postgres_dsn)


def test_two_api_processes_share_one_database(shell: Shell, database: str) -> None:
    assert shell.run("migrate", "--store", database).code == 0

    first, one = serve(shell, "api", "--store", database, "--auth", "single-user")
    second, other = serve(shell, "api", "--store", database)
    made = httpx.post(f"{one}/v1/jobs", json={"type": "default"})
    seen = httpx.get(f"{one}/v1/jobs/{made.json()['id']}")
    refused = httpx.get(f"{other}/v1/runs")
    for process in (first, second):
        process.send_signal(signal.SIGTERM)

    assert (made.status_code, seen.status_code, refused.status_code) == (201, 200, 401)
    assert [finish(process).code for process in (first, second)] == [0, 0]
