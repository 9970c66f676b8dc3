"""Who may write to a store, and how others find it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from tidemill.domain.errors import InvalidInput, StoreOwned
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.runtime.addresses import StoreAddress, parse_store
from tidemill.runtime.offering import serving, worker_command
from tidemill.runtime.owner import OwnerCard, find_owner, lock_path, private_folder, take_ownership
from tidemill.runtime.settings import Settings
from tidemill.runtime.supervisor import Supervisor, WorkerDied
from tidemill.runtime.system import SystemClock
from tidemill.runtime.wiring import check_place, open_store

ME = OwnerCard(pid=os.getpid(), started_at=1, http_socket="somewhere")


def test_an_owner_is_known_by_its_pid_until_it_lets_go(tmp_path: Path) -> None:
    ownership = take_ownership(tmp_path / "a.db")
    ownership.introduce(ME)

    assert find_owner(tmp_path / "a.db") == ME
    with pytest.raises(StoreOwned, match=f"process {os.getpid()}") as refused:
        take_ownership(tmp_path / "a.db")
    assert refused.value.pid == os.getpid()
    ownership.release()
    assert find_owner(tmp_path / "a.db") is None
    take_ownership(tmp_path / "a.db").release()


async def test_a_store_is_nobody_else_s_to_read(tmp_path: Path) -> None:
    path = tmp_path / ".tidemill" / "mine.db"
    check_place(path, make=True)

    store = await open_store(StoreAddress(path=path), SystemClock())
    await store.migrate()

    modes = {found.stat().st_mode & 0o777 for found in path.parent.iterdir()}
    await store.close()
    assert modes == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_what_a_crashed_owner_wrote_counts_for_nothing(tmp_path: Path) -> None:
    lock_path(tmp_path / "a.db").write_text('{"pid": 1, "http_socket": "x", "started_at": 1}')

    assert find_owner(tmp_path / "a.db") is None
    take_ownership(tmp_path / "a.db").release()


def test_the_private_folder_of_a_killed_owner_is_removed_and_no_other(tmp_path: Path) -> None:
    left, foreign = private_folder(), tmp_path / "tidemill-precious"
    foreign.mkdir()

    for folder in (left, foreign):
        card = {"pid": 1, "http_socket": str(folder / "http.sock"), "started_at": 1}
        lock_path(tmp_path / "a.db").write_text(json.dumps(card))
        take_ownership(tmp_path / "a.db").release()

    assert not left.exists()
    assert foreign.exists()


async def test_a_worker_that_dies_is_replaced_and_its_last_words_are_kept() -> None:
    deaths: asyncio.Queue[WorkerDied] = asyncio.Queue()
    supervisor = Supervisor(
        command=lambda name: ["sh", "-c", f"echo {name}; exit 7"],
        name="w",
        count=1,
        clock=SystemClock(),
        on_death=deaths.put_nowait,
    )

    await supervisor.start()
    first, second = await deaths.get(), await deaths.get()
    await supervisor.stop(1)

    assert (first.name, first.status, first.tail) == ("w-1", 7, "w-1")
    assert second.name == "w-2"
    assert supervisor.pids == []


async def test_a_successor_that_dies_on_its_way_is_followed_by_another() -> None:
    def command(name: str) -> list[str]:
        return ["false"] if name == "w-2" else ["sleep", "60"]

    supervisor = Supervisor(
        command=command, name="w", count=1, clock=SystemClock(), on_death=lambda _: None
    )

    async def ready() -> None:
        while supervisor.names != ["w-3"]:
            await SystemClock().sleep(0.01)

    await supervisor.start()
    [old] = supervisor.pids
    async with asyncio.timeout(20):
        await supervisor.replace_all(ready)
    left = supervisor.pids
    await supervisor.stop(5)

    assert old not in left


def test_a_store_is_a_path_or_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert parse_store("a/b.db").path == tmp_path / "a" / "b.db"
    assert parse_store("sqlite:///b.db").path == tmp_path / "b.db"
    assert parse_store("sqlite:////b.db").path == Path("/b.db")
    assert parse_store("postgresql://host/name").dsn == "postgresql://host/name"
    for wrong in ("redis://x", "sqlite:///", ""):
        with pytest.raises(ValueError, match="use a path"):
            parse_store(wrong)


def test_workers_serve_every_queue_and_label_of_the_workflow() -> None:
    settings = Settings(store=parse_store("x.db"))
    plain = TaskSpec(id="plain", executor="noop")
    heavy = TaskSpec(id="heavy", executor="noop", queue="heavy", labels={"gpu": "a100"})
    other = TaskSpec(id="other", executor="noop", labels={"gpu": "h100"})

    served = serving(settings, [Workflow(name="w", tasks=(plain, heavy))])

    assert served.queues == ("default", "heavy")
    assert "gpu=a100" in worker_command(served, "unix:x", "me")
    with pytest.raises(InvalidInput, match=r"tasks\.other\.labels\.gpu"):
        serving(settings, [Workflow(name="w", tasks=(heavy, other))])
