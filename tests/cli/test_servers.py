"""Which server a command speaks to, and what it says when there is none."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli

NOWHERE = "http://127.0.0.1:1"


def test_a_server_that_does_not_answer_is_one_line_with_the_fix(cli: Cli) -> None:
    for arguments in (["runs"], ["start", "orders"], ["top", "--once"], ["whoami"]):
        ended = cli(*arguments, "--server", NOWHERE)

        assert ended.code == 1
        assert ended.err.startswith(f"error: {NOWHERE} does not answer")
        assert "tidemill up" in ended.err
        assert "--store" not in ended.err
        assert ended.err.count("\n") == 1


def test_a_flag_beats_the_environment_which_beats_the_context(
    used: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    used("context", "add", "away", NOWHERE)
    by_context = used("runs")
    monkeypatch.setenv("TIDEMILL_STORE", ".tidemill/tidemill.db")
    by_environment = used("runs")
    monkeypatch.setenv("TIDEMILL_SERVER", "http://127.0.0.1:2")
    by_server = used("runs")
    by_flag = used("runs", "--store", ".tidemill/tidemill.db")
    used("context", "remove", "away")

    assert f"{NOWHERE} of context away does not answer" in by_context.err
    assert f"--store {used.folder}/.tidemill/tidemill.db" in by_context.err
    assert by_environment.code == 0
    assert "http://127.0.0.1:2 of TIDEMILL_SERVER does not answer" in by_server.err
    assert by_flag.code == 0


def test_a_store_and_a_server_at_once_are_refused(cli: Cli) -> None:
    ended = cli("runs", "--store", "x.db", "--server", NOWHERE)

    assert ended.code == 2
    assert "give one of them" in ended.err


def test_contexts_are_added_listed_used_and_removed(cli: Cli) -> None:
    cli("context", "add", "laptop", "http://127.0.0.1:8080/")
    cli("context", "add", "office", "https://mill.example", "--namespace", "shop", "--use")
    cli("context", "add", "robot", "https://mill.example", "--api-key-stdin", typed="tmk_1\n")

    listed = {one["name"]: one for one in cli.json("context", "list")}

    assert listed["laptop"]["server"] == "http://127.0.0.1:8080"
    assert listed["office"]["current"]
    assert listed["robot"]["shows"] == "an API key"
    assert "tmk_1" not in cli("context", "show", "robot").out
    cli("context", "use", "laptop")
    cli("context", "remove", "office")
    assert cli.json("context", "show")["name"] == "laptop"
    assert cli("context", "use", "office").code == 2


def test_an_address_that_is_none_is_refused(cli: Cli) -> None:
    for arguments in (["runs", "--server", "mill:80"], ["context", "add", "x", "mill:80"]):
        ended = cli(*arguments)

        assert ended.code == 2
        assert "write http://HOST:PORT" in ended.err


def test_a_login_to_a_server_that_is_away_asks_for_nothing(cli: Cli) -> None:
    ended = cli("login", "--server", NOWHERE, typed="ada@example.com\nvery secret\n")

    assert ended.code == 1
    assert ended.err.startswith(f"error: {NOWHERE} does not answer")
    assert cli.json("context", "list") == []
