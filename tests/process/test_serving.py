"""`tidemill up`, `start`, `migrate` and `config` as people use them, on both stores."""

from __future__ import annotations

import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.process.cluster import fresh_database
from tests.process.commands import Shell, eventually, finish, is_ready
from tests.servers.process import free_port

FLOW = """
name: flow
tasks:
  - {id: first, executor: noop}
  - {id: next, executor: noop, depends_on: [first]}
"""
SLOW = """
name: slow
tasks:
  - id: nap
    executor: shell
    params: {argv: [sh, -c, "until test -e stopping; do sleep 0.05; done; sleep 1"]}
"""
GATED = "name: gated\ntasks: [{id: check, executor: shell, params: {argv: [test, -e, gate]}}]\n"
ENDLESS = "name: endless\ntasks: [{id: nap, executor: sleep, params: {seconds: 600}}]\n"
STEPS = "def step():\n    return 1\n"
IMPORTING = """
name: importing
imports: [steps.py]
tasks: [{id: step, executor: python, params: {function: "steps:step"}}]
output: step
"""


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of each kind, by its address."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return await fresh_database(request.getfixturevalue("postgres_dsn"))


@pytest.fixture
def folder(shell: Shell) -> Shell:
    shell.write("flow.yaml", FLOW)
    shell.write("slow.yaml", SLOW)
    shell.write("steps.py", STEPS)
    shell.write("importing.yaml", IMPORTING)
    return shell


def go_up(shell: Shell, *options: str) -> tuple[subprocess.Popen[str], str]:
    """Start `up` and wait until it is ready; the process, and where its health is."""
    endpoint = f"127.0.0.1:{free_port()}"
    process = shell.start("up", "--health", endpoint, *options)
    eventually(lambda: is_ready(endpoint))
    return process, endpoint


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """The worker processes of `up`."""
    return [child.pid for child in psutil.Process(process.pid).children()]


def test_up_runs_what_is_started_replaces_the_dead_and_ends_in_order(
    folder: Shell, store: str
) -> None:
    process, _ = go_up(folder, "--store", store, "--workers", "2")
    eventually(lambda: len(workers_of(process)) == 2)
    [killed, other] = workers_of(process)

    first = folder.run("start", "flow.yaml", "--store", store, "--wait")
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: len(set(workers_of(process)) - {killed, other}) == 1)
    left = folder.run("start", "slow.yaml", "--store", store)
    eventually(lambda: "RUNNING" in folder.run("show", left.out.strip(), "--store", store).out)
    process.terminate()
    folder.write("stopping", "")
    ended = finish(process)

    assert (first.code, left.code) == (0, 0)
    assert "flow SUCCEEDED" in first.out
    assert ended.code == 0, ended.err
    assert f"worker process {killed} was killed by SIGKILL; a new one takes its place" in ended.err
    assert "letting running tasks finish, 10 s at most" in ended.err
    assert "SUCCEEDED" in folder.run("show", left.out.strip(), "--store", store).out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_is_stopped_while_waiting_is_told_that_the_run_goes_on(
    folder: Shell, number: signal.Signals, code: int
) -> None:
    folder.write("endless.yaml", ENDLESS)
    go_up(folder)
    waiting = folder.start("start", "endless.yaml", "--wait")
    eventually(lambda: "RUNNING" in folder.run("show", "latest").out)

    waiting.send_signal(number)
    ended = finish(waiting)

    assert ended.code == code
    assert ended.err == f"the run goes on: tidemill watch {ended.out.strip()[-8:]}\n"


async def test_start_says_that_no_worker_is_connected(folder: Shell, postgres_dsn: str) -> None:
    store = await fresh_database(postgres_dsn)
    folder.run("migrate", "--store", store)

    alone = folder.run("start", "flow.yaml", "--store", store)
    go_up(folder, "--store", store)
    served = folder.run("start", "flow.yaml", "--store", store)

    assert "no worker is connected: tidemill up --store" in alone.err
    assert (alone.code, served.code, served.err) == (0, 0, "")


def test_cancel_and_replay_are_left_to_who_serves_the_store(folder: Shell, store: str) -> None:
    folder.write("gated.yaml", GATED)
    folder.write("endless.yaml", ENDLESS)
    process, _ = go_up(folder, "--store", store)
    failed = folder.run("start", "gated.yaml", "--store", store, "--wait")
    endless = folder.run("start", "endless.yaml", "--store", store).out.strip()

    folder.write("gate", "")
    replayed = folder.run("dead", "replay", failed.out.split()[0], "check", "--store", store)
    cancelled = folder.run("cancel", endless, "--store", store)

    assert (failed.code, replayed.code, cancelled.code) == (1, 0, 0), replayed.err
    assert "check runs again" in replayed.out
    for run_id, state in ((failed.out.split()[0], "SUCCEEDED"), (endless, "CANCELLED")):
        see = partial(folder.run, "show", run_id, "--store", store)
        eventually(lambda see=see, state=state: state in see().out)  # type: ignore[misc]
    process.terminate()
    assert finish(process).code == 0


def test_up_goes_on_with_what_was_left(folder: Shell) -> None:
    started = folder.run("start", "importing.yaml", "--key", "one")
    again = folder.run("start", "importing.yaml", "--key", "one")
    run_id = started.out.strip()

    process, _ = go_up(folder)
    eventually(lambda: "SUCCEEDED" in folder.run("show", run_id).out)
    process.terminate()

    assert started.code == 0
    assert "nobody works on the store" in started.err
    assert again.out == started.out
    assert "this key has started it before" in again.err
    assert finish(process).code == 0


def test_a_run_waits_for_a_worker_that_offers_it_and_show_says_so(folder: Shell) -> None:
    process, _ = go_up(folder)
    started = folder.run("start", "importing.yaml")
    run_id = started.out.strip()

    waiting = folder.run("show", run_id).out
    process.terminate()
    ended = finish(process)
    helper, _ = go_up(folder, "--import", "steps.py")
    eventually(lambda: "SUCCEEDED" in folder.run("show", run_id).out)
    helper.terminate()

    assert (started.code, ended.code) == (0, 0)
    assert "python steps:step on queue default: start one with --import of module steps" in waiting
    assert finish(helper).code == 0


def test_up_refuses_a_module_that_cannot_be_imported(folder: Shell) -> None:
    ended = folder.run("up", "--import", "no_such_module")

    assert ended.code == 2
    assert "the worker cannot start: no_such_module: ModuleNotFoundError" in ended.err


def test_up_refuses_a_file_that_is_not_there_on_a_store_that_is(folder: Shell) -> None:
    folder.run("start", "importing.yaml")
    (folder.folder / "steps.py").unlink()

    ended = folder.run("up", "--import", "nothere.py")

    assert ended.code == 2
    assert "steps.py is gone: runs that need it cannot go on" in ended.err
    assert "nothere.py: there is no such file" in ended.err


def test_a_worker_of_another_machine_may_join(folder: Shell) -> None:
    address = f"127.0.0.1:{free_port()}"
    process, _ = go_up(folder, "--workers", "0", "--listen-workers", address)
    worker = folder.start("worker", "--connect", address, "--import", "steps.py")

    ended = folder.run("start", "importing.yaml", "--wait")

    assert ended.code == 0, ended.err
    assert "importing SUCCEEDED" in ended.out
    worker.terminate()
    left = finish(worker)
    assert left.code == 0
    assert left.err.index(f" connects to {address}\n") < left.err.index(" serves\n")
    process.terminate()
    ended = finish(process)
    assert (ended.code, "workers  none\n" in ended.err) == (0, True)


@pytest.mark.parametrize("role", ["scheduler", "notifier", "up", "migrate", "start", "runs"])
def test_a_store_that_is_away_is_one_line_without_its_password(folder: Shell, role: str) -> None:
    away = f"postgresql://me:secret@127.0.0.1:{free_port()}/db"
    file = ["flow.yaml"] if role == "start" else []

    ended = folder.run(role, *file, "--store", away)

    assert ended.code == 2
    assert ended.err.startswith(f"error: store {away.replace('secret', '***')} cannot be reached: ")
    assert ended.err.count("\n") == 1
    assert "secret" not in ended.err + ended.out


def test_a_worker_whose_broker_is_away_says_so_without_its_password(folder: Shell) -> None:
    away = f"redis://me:secret@127.0.0.1:{free_port()}/0"

    ended = folder.run("worker", "--via", away)

    assert ended.code == 2
    assert ended.err.startswith("error: broker redis://me:***@127.0.0.1:")
    assert ended.err.count("\n") == 1


def test_a_store_that_is_away_is_tried_for_as_long_as_asked(folder: Shell) -> None:
    away = f"postgresql://me:secret@127.0.0.1:{free_port()}/db"

    ended = folder.run("scheduler", "--store", away, "--start-retry", "1")

    assert ended.code == 2
    assert "cannot be reached" in ended.err
    assert "trying for 1 s more" in ended.err


def test_sigterm_ends_a_role_that_still_waits_for_its_store(folder: Shell) -> None:
    away, endpoint = f"postgresql://me@127.0.0.1:{free_port()}/db", f"127.0.0.1:{free_port()}"
    process = folder.start(
        "scheduler", "--store", away, "--start-retry", "600", "--health", endpoint
    )
    eventually(lambda: "store: not reached yet" in folder.run("health", endpoint).out)

    process.terminate()

    assert finish(process).code == 0


async def test_roles_refuse_a_schema_that_is_behind(folder: Shell, postgres_dsn: str) -> None:
    store = await fresh_database(postgres_dsn)

    refused = folder.run("scheduler", "--store", store)
    migrators = [folder.start("migrate", "--store", store) for _ in range(3)]
    ended = [finish(one) for one in migrators]
    again = folder.run("migrate", "--store", store)

    assert refused.code == 2
    assert "lacks 0001_engine" in refused.err
    assert "`tidemill migrate`" in refused.err
    assert [one.code for one in ended] == [0, 0, 0]
    assert sum("applied 0001_engine" in one.err for one in ended) == 1
    assert again.out == f"{store}: up to date\n"


async def test_a_role_migrates_at_start_if_asked(folder: Shell, postgres_dsn: str) -> None:
    store, endpoint = await fresh_database(postgres_dsn), f"127.0.0.1:{free_port()}"

    process = folder.start("notifier", "--store", store, "--migrate", "--health", endpoint)
    eventually(lambda: is_ready(endpoint))
    process.terminate()

    ended = finish(process)
    assert ended.code == 0
    assert "applied 0001_engine" in ended.err


async def test_run_tells_every_step_where_another_process_publishes_them(
    folder: Shell, postgres_dsn: str
) -> None:
    store, endpoint = await fresh_database(postgres_dsn), f"127.0.0.1:{free_port()}"
    folder.start("notifier", "--store", store, "--migrate", "--health", endpoint)
    eventually(lambda: is_ready(endpoint))

    ended = folder.run("run", "flow.yaml", "--store", store)

    assert ended.code == 0, ended.err
    assert "first  succeeded" in ended.out
    assert "next   succeeded" in ended.out


def test_config_shows_what_is_in_force_and_from_where(folder: Shell) -> None:
    folder.write("tidemill.toml", 'slots = 5\nstore = "postgresql://me:hunter2@host/db"\n')

    ended = folder.run("config", "up", "--workers", "3")
    listed = folder.read_json("config", "up", "--workers", "3")

    rows = {row["setting"]: (row["value"], row["from"]) for row in listed}
    assert rows["workers"] == (3, "flag --workers")
    assert rows["slots"] == (5, "file tidemill.toml:slots")
    assert rows["queues"] == (["default"], "default")
    assert rows["bus"] == (rows["store"][0], "default")
    assert rows["health"] == (None, "default")
    assert rows["store"] == ("postgresql://me:***@host/db", "file tidemill.toml:store")
    assert rows["grace"] == (10, "default")
    assert "hunter2" not in ended.out


def test_user_code_sees_no_setting_of_its_worker(folder: Shell) -> None:
    tasks = "tasks: [{id: look, executor: shell, params: {argv: [env]}}]"
    folder.write("env.yaml", f"name: env\n{tasks}\n")
    environ = {"TIDEMILL_STORE": "other.db", "TIDEMILL_TOKEN": "hidden"}

    ended = finish(folder.start("run", "env.yaml", **environ))
    output = folder.run("show", "latest", "look", "--store", "other.db").out

    assert ended.code == 0, ended.err
    assert "TIDEMILL_RUN_ID" in output
    assert "TIDEMILL_STORE" not in output
    assert "hidden" not in output
