"""Secrets by name: where they are found, and that they are seen nowhere else."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tests.roles.broker_mill import BrokerMill, on_a_broker_mill
from tests.roles.mill import Mill, SeededEntropy, on_a_mill
from tests.roles.worker_stage import Doing, Stage, a_workshop, an_assignment, on_stage
from tidemill.credentials.sealing import AesSealing, read_sealing_key
from tidemill.domain.audit import Deed
from tidemill.domain.errors import Conflict, InvalidInput, NotFound
from tidemill.domain.events import Failed, Succeeded
from tidemill.domain.workflow import InputSource, Source, TaskSpec
from tidemill.engine.secrets import list_secrets, put_secret, remove_secret
from tidemill.ports.secrets import CannotUnseal, SecretKey
from tidemill.protocol.messages import Logs
from tidemill.runtime.system import SystemEntropy
from tidemill.sdk.context import context, fake_context
from tidemill.sdk.secrets import NOT_OVER_BROKER, SecretMissing, SecretSources
from tidemill.worker.executor import Call
from tidemill.worker.executors.python import PythonExecutor
from tidemill.worker.executors.shell import ShellExecutor
from tidemill.worker.library import load_library
from tidemill.worker.link import DoorLink
from tidemill.worker.processes import Commands
from tidemill.worker.worker import Worker

CANARY = "c4n4ry-9f/8e 7d"
FORMS = (
    CANARY,
    base64.b64encode(CANARY.encode()).decode(),
    quote(CANARY, safe=""),
    msgspec.json.encode(CANARY).decode()[1:-1],
)
NAME = SecretKey("default", "db-password")
DEED = Deed(at=0, actor="a", actor_name="ada", action="secret.set", namespace="default")
PASSWORD = msgspec.json.encode({"password": {"secret": "db-password"}})


def sealing(fill: int = 1) -> AesSealing:
    """A way to seal; another number, another key."""
    return AesSealing(bytes((fill * 7 + n) % 256 for n in range(32)), SystemEntropy())


@pytest.fixture
def commands() -> Iterator[Commands]:
    """What runs processes."""
    made = Commands()
    yield made
    made.close()


# Where a secret is looked for.


def test_the_environment_comes_before_files_and_files_before_the_store(tmp_path: Path) -> None:
    handed = {"a": "store", "b": "store", "c": "store"}
    (tmp_path / "a").write_text("file\n")
    (tmp_path / "b").write_text("file\n")
    sources = SecretSources(
        environment={"TIDEMILL_SECRET_A": "variable"}, directory=str(tmp_path), handed=handed
    )

    assert [sources.find(name) for name in "abc"] == ["variable", "file", "store"]


def test_a_name_with_hyphens_and_dots_is_a_variable_with_underscores() -> None:
    sources = SecretSources(environment={"TIDEMILL_SECRET_DB_PASS_WORD": "x"})

    assert sources.find("db-pass.word") == "x"


def test_a_missing_secret_names_every_place_where_it_is_not(tmp_path: Path) -> None:
    with pytest.raises(SecretMissing) as missing:
        SecretSources(directory=str(tmp_path)).find("db-password")

    assert str(missing.value) == (
        "secret 'db-password' is missing; looked for in the variable TIDEMILL_SECRET_DB_PASSWORD, "
        f"the file {tmp_path}/db-password, the store (it has none of this name)"
    )


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".x", 3, "x" * 129])
def test_a_name_leads_nowhere_else(name: Any) -> None:
    with pytest.raises(SecretMissing, match="is no name of a secret"):
        SecretSources(directory="/").find(name)


def test_a_unit_test_brings_its_own_secrets() -> None:
    with fake_context(secrets={"key": "value"}):
        assert context().secret("key") == "value"


# Sealing.


def test_what_was_sealed_opens_for_its_own_name_alone() -> None:
    sealed = sealing().seal(NAME, CANARY)

    assert sealing().unseal(NAME, sealed) == CANARY
    assert CANARY.encode() not in sealed
    for key in (SecretKey("other", "db-password"), SecretKey("default", "other")):
        with pytest.raises(CannotUnseal):
            sealing().unseal(key, sealed)


@pytest.mark.parametrize("sealed", [b"", b"\x01short", b"\x02" + bytes(60)])
def test_what_is_not_sealed_does_not_open(sealed: bytes) -> None:
    with pytest.raises(CannotUnseal):
        sealing().unseal(NAME, sealed)


def test_another_key_does_not_open_it() -> None:
    with pytest.raises(CannotUnseal, match="db-password was sealed with another key"):
        sealing(2).unseal(NAME, sealing(1).seal(NAME, CANARY))


def test_a_key_is_256_random_bits_in_a_file(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(bytes(range(32)).hex() + "\n")
    bad.write_text("00" * 32)

    assert read_sealing_key(good) == bytes(range(32))
    with pytest.raises(InvalidInput, match="openssl rand -hex 32"):
        read_sealing_key(bad)


# In the store.


@on_a_mill
async def test_secrets_are_listed_by_name_and_can_be_replaced_and_removed(mill: Mill) -> None:
    first = await put_secret(mill.store, sealing(), NAME, CANARY, DEED)
    again = await put_secret(mill.store, sealing(), NAME, "other", DEED)

    assert (first, again) == (True, False)
    assert [row.name for row in await list_secrets(mill.store, "default")] == ["db-password"]
    assert await list_secrets(mill.store, "other") == []
    await remove_secret(mill.store, NAME, DEED)
    with pytest.raises(NotFound):
        await remove_secret(mill.store, NAME, DEED)


@on_a_mill
async def test_without_a_key_no_secret_can_be_kept(mill: Mill) -> None:
    with pytest.raises(Conflict, match="--secrets-key-file") as refused:
        await put_secret(mill.store, None, NAME, CANARY, DEED)

    assert refused.value.code == "NO_SECRETS_KEY"


@on_a_mill
async def test_the_store_hands_a_secret_to_the_task_that_names_it(mill: Mill) -> None:
    mill.scheduler.open_secrets(sealing())
    await put_secret(mill.store, sealing(), NAME, CANARY, DEED)
    worker = mill.worker()
    await worker.open()

    named = {"object": {"password": Source(secret="db-password")}}
    await mill.start(
        TaskSpec(id="a", executor="noop", inputs={"login": msgspec.convert(named, Source)})
    )
    await mill.start(TaskSpec(id="b", executor="noop"))
    found = {one.task: one.secrets for one in await worker.assignments(2)}

    assert found == {"a": {"db-password": CANARY}, "b": {}}


@on_a_mill
async def test_a_scheduler_without_the_key_says_so(mill: Mill) -> None:
    await put_secret(mill.store, sealing(), NAME, CANARY, DEED)
    worker = mill.worker()
    await worker.open()
    spec = TaskSpec(id="a", executor="noop", inputs={"password": Source(secret="db-password")})
    await mill.start(spec)
    without = await worker.assignment()
    mill.scheduler.open_secrets(sealing(2))
    await mill.start(spec)
    other = await worker.assignment()

    assert "give it --secrets-key-file" in without.secrets_trouble
    assert other.secrets_trouble == "db-password was sealed with another key"


@on_a_broker_mill
async def test_over_a_broker_no_secret_travels(stage: BrokerMill) -> None:
    mill = stage.mill
    mill.scheduler.open_secrets(sealing())
    await put_secret(mill.store, sealing(), NAME, CANARY, DEED)
    stage.hire("far", secrets=SecretSources(trouble=NOT_OVER_BROKER))
    inputs: dict[str, InputSource] = {"password": Source(secret="db-password")}
    run_id = await mill.start(TaskSpec(id="a", executor="noop", inputs=inputs))

    await mill.ended(run_id)
    error = (await mill.task(run_id)).error

    assert error is not None
    assert "the store (its secrets do not travel over a broker)" in error.message
    assert not shows(*(message.value for _, message in stage.broker.sent))


# On a worker.


async def told(stage: Stage, **fields: Any) -> tuple[Succeeded | Failed, str]:
    """How an attempt ended, and what it wrote."""
    stream = await stage.welcome()
    stream.assign(an_assignment(inputs=PASSWORD, **fields))
    report = (await stream.outcome()).report
    logs = [message for message in stream.heard if isinstance(message, Logs)]
    assert isinstance(report, Succeeded | Failed)
    return report, "".join(chunk.text for message in logs for chunk in message.chunks)


def shows(*things: object) -> bool:
    """Whether the canary can be seen in any of these."""
    texts = [thing.decode() if isinstance(thing, bytes) else str(thing) for thing in things]
    return any(form in text for form in FORMS for text in texts)


async def test_a_task_gets_the_value_and_nobody_reads_it_in_its_output() -> None:
    got: list[str] = []

    async def leak(call: Call) -> Any:
        got.append(call.inputs["password"])
        for form in FORMS:
            call.context.voice.write(form[:5])
            call.context.voice.write(f"{form[5:]}\n")
        call.context.voice.write(CANARY[:3])
        call.context.progress(0.5, CANARY)
        return {"again": [CANARY], CANARY: 1}

    async with on_stage(leak) as (stage, _):
        report, output = await told(stage, secrets={"db-password": CANARY})

    assert got == [CANARY]
    assert isinstance(report, Succeeded)
    assert not shows(report.result, output)
    assert output.count("***") >= len(FORMS)
    assert output.endswith(CANARY[:3])


async def test_errors_and_tracebacks_do_not_show_it() -> None:
    async def fail(call: Call) -> Any:
        try:
            raise ValueError(f"no {CANARY}")
        except ValueError as error:
            raise RuntimeError(f"{'x' * 8_185}{CANARY}") from error

    async with on_stage(fail) as (stage, _):
        report, _ = await told(stage, secrets={"db-password": CANARY})

    assert isinstance(report, Failed)
    assert not shows(report.error.message, report.error.traceback)
    assert "no ***" in report.error.traceback
    assert CANARY[:4] not in report.error.message


async def test_a_missing_secret_fails_the_task_for_good() -> None:
    async with on_stage(lambda call: asyncio.sleep(0)) as (stage, _):
        report, _ = await told(stage, secrets_trouble="the scheduler cannot open it")

    assert isinstance(report, Failed)
    assert (report.error.type, report.final) == ("SecretMissing", True)
    assert "TIDEMILL_SECRET_DB_PASSWORD" in report.error.message
    assert "the store (the scheduler cannot open it)" in report.error.message


async def test_code_asks_for_a_secret_by_its_name() -> None:
    async def ask(call: Call) -> Any:
        value = context().secret("token")
        print(value)
        call.context.voice.write(value)
        return len(value)

    sources = SecretSources(environment={"TIDEMILL_SECRET_TOKEN": CANARY})
    async with on_stage(ask, secrets=sources) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment())
        report = (await stream.outcome()).report

    assert report == Succeeded(1, str(len(CANARY)).encode())
    assert not shows(*stream.heard)


async def test_a_command_that_fails_with_the_secret_in_its_words_does_not_show_it(
    commands: Commands,
) -> None:
    argv = ["sh", "-c", 'echo "$1"; echo "no $1" >&2; exit 3', "sh", {"input": "password"}]
    params = msgspec.json.encode({"argv": argv})

    async with on_stage({"do": ShellExecutor(a_workshop(commands=commands))}) as (stage, _):
        report, output = await told(stage, params=params, secrets={"db-password": CANARY})

    assert isinstance(report, Failed)
    assert not shows(report.error.message, report.error.traceback, output)
    assert "no ***" in report.error.message


CHILD = """
from tidemill.sdk.context import context

def leak(password):
    other = context().secret("token")
    print(password, other, flush=True)
    raise ValueError(password + other)
"""


async def test_a_child_process_gets_its_secrets_and_does_not_show_them(
    tmp_path: Path, commands: Commands
) -> None:
    (tmp_path / "leaking_code.py").write_text(CHILD)
    (tmp_path / "token").write_text("t0k3n-in-a-file")
    library = load_library([str(tmp_path / "leaking_code.py")])
    params = {"function": "leaking_code:leak", "isolation": "process"}

    async with on_stage(
        {"do": PythonExecutor(a_workshop(library, commands=commands))},
        secrets=SecretSources(directory=str(tmp_path)),
    ) as (stage, _):
        report, output = await told(
            stage, params=msgspec.json.encode(params), secrets={"db-password": CANARY}
        )

    assert isinstance(report, Failed)
    assert report.error.type == "ValueError"
    assert not shows(report.error.message, report.error.traceback, output)
    assert "t0k3n" not in output + report.error.message + report.error.traceback


# Everywhere.


def everything_stored(mill: Mill) -> str:
    """Every value of every row, as text."""
    raw = mill.store._writer.raw
    names = [row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = [row for name in names for row in raw.execute(f'SELECT * FROM "{name}"')]
    return "\n".join(
        value.decode("latin-1") if isinstance(value, bytes) else str(value)
        for row in rows
        for value in row
    )


def test_a_canary_is_in_no_row_no_event_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def leak(call: Call) -> Any:
        for form in FORMS:
            call.context.voice.write(form)
        if call.context.task == "fail":
            raise ValueError(f"{call.inputs['password']} {FORMS[1]}")
        return call.inputs

    async def live(mill: Mill) -> None:
        mill.scheduler.open_secrets(sealing())
        await put_secret(mill.store, sealing(), NAME, CANARY, DEED)
        executors = {"do": Doing(leak)}
        config = Stage(executors).worker._config
        worker = Worker(config, [DoorLink(mill.scheduler)], executors, mill.clock, SeededEntropy())
        working = asyncio.create_task(worker.run())
        tasks = [
            TaskSpec(id=name, executor="do", inputs={"password": Source(secret="db-password")})
            for name in ("return", "fail")
        ]
        run_id = await mill.start(*tasks, output="@")
        await mill.ended(run_id)
        await mill.clock.sleep(2)
        working.cancel()
        stored = everything_stored(mill)

        assert "***" in stored
        assert not shows(stored)

    on_a_mill(live)()

    assert not shows(caplog.text)
