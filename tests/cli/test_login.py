"""Logging in, and secrets that come from a pipe: without a question, and without a warning."""

from __future__ import annotations

from functools import partial

import httpx
import msgspec
import pytest

from tests.cli.conftest import Cli
from tests.client.scripted import SERVER, Script
from tidemill.client.client import Client
from tidemill.client.connection import Place

ME = {
    "id": "local",
    "kind": "user",
    "name": "local",
    "namespace": "default",
    "roles": {},
    "permissions": [],
}
USER = {"id": "u1", "email": "ada@example.com", "name": "Ada", "created_at": "2027-01-15T12:00:00Z"}
TOKENS = {"access_token": "a", "refresh_token": "r", "expires_in": 900, "user": USER}
REFUSED = httpx.Response(401, json={"detail": "who are you?", "code": "UNAUTHENTICATED"})


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Script:
    """A server that asks who comes, and lets in whoever says so."""
    script = Script(REFUSED, httpx.Response(200, json=TOKENS))
    _serve(monkeypatch, script)
    return script


def _serve(monkeypatch: pytest.MonkeyPatch, script: Script) -> None:
    scripted = partial(Client, transport=httpx.MockTransport(script))
    monkeypatch.setattr("tidemill.client.client.Client", scripted)


def test_a_pipe_answers_without_being_asked(cli: Cli, answers: Script) -> None:
    ended = cli("login", "--server", SERVER, typed="ada@example.com\nvery secret\n")

    assert (ended.code, ended.err) == (0, "")
    sent = msgspec.json.decode(answers.asked[-1].content)
    assert sent == {"email": "ada@example.com", "password": "very secret"}
    assert "very secret" not in ended.out
    assert cli.json("context", "show")["shows"] == "a login"


def test_the_first_administrator_comes_through_a_pipe(cli: Cli, answers: Script) -> None:
    typed = "tmb_1\nada@example.com\nvery secret\n"

    ended = cli("login", "--bootstrap", "--server", SERVER, "--json", typed=typed)

    assert (ended.code, ended.err) == (0, "")
    assert msgspec.json.decode(ended.out)["user"]["email"] == "ada@example.com"
    assert msgspec.json.decode(answers.asked[-1].content)["token"] == "tmb_1"


def test_a_pipe_that_says_too_little_is_told_what_is_missing(cli: Cli, answers: Script) -> None:
    ended = cli("login", "--server", SERVER, typed="ada@example.com\n")

    assert ended.code == 2
    assert "password: standard input" in ended.err
    assert len(answers.asked) == 1


def test_logins_to_two_servers_of_one_host_are_kept_apart(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = {"127.0.0.1": "http://127.0.0.1:8080", "127.0.0.1-8091": "http://127.0.0.1:8091"}
    for server in (*servers.values(), *servers.values()):  # the second time changes nothing
        _serve(monkeypatch, Script(REFUSED, httpx.Response(200, json=TOKENS)))
        assert cli("login", "--server", server, typed="ada@example.com\nsecret\n").code == 0

    assert {one["name"]: one["server"] for one in cli.json("context", "list")} == servers


def test_who_is_refused_at_the_login_is_not_told_to_log_in(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = httpx.Response(401, json={"detail": "the password is wrong", "code": "UNAUTHENTICATED"})
    _serve(monkeypatch, Script(REFUSED, wrong))

    ended = cli("login", "--server", SERVER, typed="ada@example.com\nsecret\n")

    assert (ended.code, ended.err) == (2, "error: the password is wrong\n")


def test_who_works_on_a_store_is_told_which(cli: Cli) -> None:
    assert cli("migrate").code == 0

    told = cli("whoami").out

    assert f"store      {cli.folder}/.tidemill/tidemill.db\n" in told
    assert "server" not in told


def test_a_server_for_a_single_user_wants_no_login(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    _serve(monkeypatch, Script(httpx.Response(200, json=ME)))

    ended = cli("login", "--server", SERVER)

    assert ended.code == 0
    assert "single user: no login is needed" in ended.out
    assert cli.json("context", "list") == []


def test_a_secret_from_a_pipe_is_all_that_comes(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(httpx.Response(200, json={"name": "TOKEN", "created": True}))
    scripted = partial(Place, transport=httpx.MockTransport(script))
    monkeypatch.setattr("tidemill.runtime.connecting.Place", scripted)
    put = ("secrets", "set", "TOKEN", "--server", SERVER)

    ended = cli(*put, typed="first\nsecond\n")

    assert (ended.code, ended.out, ended.err) == (0, "TOKEN is set\n", "")
    assert script.bodies() == [{"value": "first\nsecond"}]
    assert cli.json("secrets", "remove", "TOKEN", "--server", SERVER)["removed"]
    assert cli(*put, typed="").code == 2
