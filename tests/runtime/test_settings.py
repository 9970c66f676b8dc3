"""The table of settings: bounds, contradictions, and what becomes of them in the roles."""

from __future__ import annotations

import pytest

from tidemill.domain.errors import InvalidInput
from tidemill.runtime.addresses import (
    Endpoint,
    StoreAddress,
    is_private,
    parse_endpoint,
    parse_store,
)
from tidemill.runtime.role_configs import scheduler_config
from tidemill.runtime.setting_kinds import read_texts, spelled
from tidemill.runtime.settings import ROLES, SETTINGS, Settings, settings_of
from tidemill.runtime.system import SystemClock
from tidemill.runtime.wiring import open_store
from tidemill.runtime.worker_parts import worker_config
from tidemill.scheduler.config import SchedulerConfig
from tidemill.worker.config import WorkerConfig
from tidemill.worker.library import Library


def test_every_setting_belongs_to_a_role_and_says_what_it_means() -> None:
    for one in SETTINGS.values():
        assert one.roles
        assert set(one.roles) <= set(ROLES)
        assert one.help
        assert not one.help.endswith(".")


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        Settings(slots=0, workers=99, listen="nowhere", log_level="loud", bus="ftp://x")

    named = [problem.path for problem in refused.value.problems]
    assert named == ["bus", "listen", "workers", "slots", "log_level"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"ping_seconds": 3.0}, "ping_seconds: must be at most a quarter of session_ttl_seconds"),
        ({"scan_seconds": 30.0}, "scan_seconds: must be at most a third of session_ttl_seconds"),
        ({"tls_cert": "cert.pem"}, "tls_key: is missing"),
        ({"tls_client_ca": "ca.pem"}, "tls_cert: is missing: without it"),
        ({"token": "a", "token_file": "b"}, "token_file: is given, and so is TIDEMILL_TOKEN"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    values: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        Settings(**values)  # type: ignore[arg-type]


def test_what_looks_at_settings_in_passing_sees_no_secret() -> None:
    store = parse_store("postgresql://me:hidden@db/mill")
    settings = Settings(store=store, bus="redis://:hidden@bus", token="hidden")

    assert "hidden" not in f"{settings!r} {settings.store!r} {settings.store}"


@pytest.mark.parametrize(
    "text", ["postgresql:/me:hidden@db/mill", "host=db password=hidden", "sqlite:hidden.db"]
)
def test_what_is_almost_an_address_is_no_file_and_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="neither a path nor a URL") as refused:
        parse_store(text)

    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("password", ["hid/den", "hid#den", "hid?den"])
async def test_an_address_that_cannot_be_read_gives_no_piece_of_its_password_away(
    password: str,
) -> None:
    address = parse_store(f"postgresql://me:{password}@127.0.0.1:1/mill")

    with pytest.raises(InvalidInput, match="cannot be read") as refused:
        await open_store(address, SystemClock())

    assert "hid" not in str(refused.value)


def test_defaults_of_the_table_are_those_of_the_roles() -> None:
    scheduler, worker = SchedulerConfig(turns_at_once=1), WorkerConfig(name="w")

    assert scheduler_config(Settings()) == scheduler
    assert worker_config(Settings(name="w"), ["shell"], Library(), {}) == worker


def test_only_a_store_with_many_writers_is_given_several_turns_at_once() -> None:
    shared = Settings(store=StoreAddress(dsn="postgresql://localhost/tidemill"))

    assert scheduler_config(shared).turns_at_once == 2
    assert scheduler_config(Settings()).turns_at_once == 1


def test_the_times_of_a_session_keep_their_proportions() -> None:
    config = scheduler_config(Settings(session_ttl_seconds=30, ping_seconds=5))

    assert config.renew_seconds == 10
    assert config.lost_stream_seconds == 15
    assert config.silence_seconds == 15


def test_a_value_spelled_as_a_flag_reads_back() -> None:
    settings = Settings(queues=("a", "b"), labels={"gpu": "a100"}, grace=2.5)

    for name in ("queues", "labels", "grace", "slots", "imports"):
        value, kind = getattr(settings, name), SETTINGS[name].kind
        assert read_texts(kind, spelled(value) or [""]) == value


def test_an_endpoint_is_a_host_and_a_port() -> None:
    assert parse_endpoint("[::1]:7300") == Endpoint("::1", 7300)
    assert str(parse_endpoint("[::1]:7300")) == "[::1]:7300"
    for wrong in ("7300", "host:", "host:port", "::1:7300", "host:70000"):
        with pytest.raises(ValueError, match="is not HOST:PORT"):
            parse_endpoint(wrong)


def test_only_this_machine_reaches_a_loopback_address() -> None:
    assert all(map(is_private, ["unix:/x", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"]))
    assert not any(map(is_private, ["0.0.0.0:1", "10.0.0.1:1", "host:1", "[::]:1"]))


def test_a_role_knows_its_own_settings_only() -> None:
    assert "store" not in {one.name for one in settings_of("worker")}
    assert "slots" not in {one.name for one in settings_of("scheduler")}
    assert len(settings_of(None)) == len(SETTINGS)
