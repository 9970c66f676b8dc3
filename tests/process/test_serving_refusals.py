"""What roles refuse before they serve: each in a line that names the option and the fix."""

from __future__ import annotations

import socket

import pytest

from tests.process.cluster import fresh_database
from tests.process.commands import Shell


@pytest.mark.parametrize("role", ["migrate", "up"])
def test_a_folder_that_is_not_there_is_not_made(shell: Shell, role: str) -> None:
    missing = shell.folder / "nope"

    ended = shell.run(role, "--store", str(missing / "a.db"))

    assert ended.code == 2
    assert ended.err.startswith("error: --store: ")
    assert f"there is no folder {missing}; make it first" in ended.err
    assert not missing.exists()


def test_a_sqlite_file_is_not_for_roles_apart(shell: Shell) -> None:
    ended = shell.run("scheduler", "--store", "a.db")

    assert ended.code == 2
    assert "--store" in ended.err
    assert "`tidemill up`" in ended.err


def test_a_notifier_that_nobody_could_hear_is_refused(shell: Shell) -> None:
    ended = shell.run("notifier", "--store", "postgresql://host/db", "--bus", "memory:")

    assert ended.code == 2
    assert ended.err.startswith("error: --bus: memory: ends with this process")


def test_an_address_in_use_is_one_line_without_words_of_grpc(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        ended = shell.run("up", "--listen-workers", address)

    assert ended.code == 2
    assert ended.err.startswith(
        f"error: --listen-workers: cannot listen on {address}: it is in use"
    )
    assert "give another, such as --listen-workers 127.0.0.1:0 for a free port" in ended.err
    assert ended.err.count("\n") == 1


async def test_a_scheduler_calls_the_address_it_cannot_have_as_its_help_does(
    shell: Shell, postgres_dsn: str
) -> None:
    store = await fresh_database(postgres_dsn)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        used = shell.run("scheduler", "--store", store, "--migrate", "--listen", address)
    wrong = shell.run("scheduler", "--store", store, "--listen", "nowhere")

    assert (used.code, wrong.code) == (2, 2)
    assert f"error: --listen: cannot listen on {address}: it is in use" in used.err
    assert wrong.err.startswith("error: --listen: 'nowhere' is not HOST:PORT")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["up", "--listen-workers", "0.0.0.0:7300"], "--tls-cert"),
        (["up", "--listen-workers", "0.0.0.0:7300"], "--token-file"),
        (["scheduler", "--store", "postgresql://x/y", "--listen", "[::]:7300"], "--insecure"),
        (["worker", "--connect", "far.example:7300"], "--token-file or TIDEMILL_TOKEN"),
        (["worker"], "--connect: is missing"),
    ],
)
def test_what_others_could_reach_needs_a_lock(shell: Shell, command: list[str], words: str) -> None:
    ended = shell.run(*command)

    assert ended.code == 2
    assert words in ended.err
    assert "Traceback" not in ended.err
