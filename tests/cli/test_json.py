"""Every command tells programs what it has done: one document on standard output."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import BROKEN, FLOW, Cli


def test_a_run_is_told_once_at_its_end_with_its_result(cli: Cli) -> None:
    told = cli.json("run", cli.write("orders.yaml", FLOW))

    assert (told["state"], told["result"]) == ("SUCCEEDED", {"ship": None})
    assert cli.json("resume") == []


def test_a_replay_that_nobody_else_carries_out_tells_the_run(cli: Cli) -> None:
    failed = cli("run", cli.write("broken.yaml", BROKEN), "--json")
    again = cli("dead", "replay", "latest", "pay", "--json")

    assert (failed.code, again.code) == (1, 1)
    assert json.loads(failed.out)["id"] == json.loads(again.out)["id"]
    assert json.loads(again.out)["generation"] == 2
    assert cli.json("dead", "discard", "latest", "pay")["discarded"]


def test_what_was_left_is_told_as_a_list_or_as_the_run_that_was_named(cli: Cli) -> None:
    started = cli.json("start", cli.write("orders.yaml", FLOW))
    [resumed] = cli.json("resume")
    other = cli.json("start", "orders.yaml")
    named = cli.json("resume", other["id"])

    assert (resumed["id"], resumed["state"]) == (started["id"], "SUCCEEDED")
    assert (named["id"], named["ended"]) == (other["id"], True)


def test_a_watch_ends_with_the_run_on_one_line(used: Cli) -> None:
    ended = used("watch", "latest", "--json")

    [last] = map(json.loads, ended.out.splitlines())
    assert (ended.code, last["state"]) == (1, "FAILED")


def test_problems_of_a_definition_have_path_code_and_line(cli: Cli) -> None:
    cli.write("wrong.yaml", "name: wrong\ntasks:\n  - {id: a, executor: noop, depends_on: [b]}\n")

    ended = cli("validate", "wrong.yaml", "--json")

    [problem] = json.loads(ended.out)["problems"]
    assert (ended.code, ended.err) == (2, "")
    assert problem["path"] == "tasks[0].depends_on[0]"
    assert (problem["line"], bool(problem["code"])) == (3, True)
    assert cli.json("validate", cli.write("orders.yaml", FLOW))["valid"]


def test_errors_go_to_standard_error(cli: Cli) -> None:
    ended = cli("run", "missing.yaml", "--json")

    assert (ended.code, ended.out) == (2, "")
    assert "missing.yaml" in ended.err


def test_a_project_and_a_schema_are_told(cli: Cli) -> None:
    assert "flow.py" in cli.json("init", "first")["files"]
    assert cli.json("migrate")["applied"] > 0
    assert cli.json("migrate")["applied"] == 0


def test_contexts_are_told(cli: Cli) -> None:
    added = cli.json("context", "add", "laptop", "http://127.0.0.1:8080")

    assert (added["server"], added["current"]) == ("http://127.0.0.1:8080", True)
    assert cli.json("context", "use", "laptop") == added
    assert cli.json("context", "remove", "laptop") == {"name": "laptop", "removed": True}


@pytest.fixture
def mill(cli: Cli) -> Cli:
    """A store with its schema."""
    assert cli("migrate").code == 0
    return cli


def test_accounts_and_namespaces_are_told(mill: Cli) -> None:
    user = json.loads(
        mill("users", "create", "a@b.example", "--json", typed="quite long enough\n").out
    )
    member = mill.json("members", "add", "a@b.example", "viewer")

    assert member["role"] == "viewer"
    assert "viewer" in mill("users", "list").out
    assert mill.json("members", "set", user["id"], "editor")["role"] == "editor"
    assert mill.json("members", "remove", user["id"])["removed"]
    assert mill.json("users", "change", user["id"], "--disable")["disabled"]
    assert mill.json("namespaces", "create", "shop")["name"] == "shop"
    changed = mill.json("namespaces", "change", "shop", "--default-executor", "noop")
    assert changed["default_executor"] == "noop"


def test_a_key_is_revoked_by_a_name_that_only_one_live_key_has(mill: Cli) -> None:
    account = mill("service-accounts", "create", "robot", "--role", "operator").out.strip()
    create = ("keys", "create", "ci", "--service-account", account)
    first, second = mill.json(*create)["key"], mill.json(*create)["key"]

    ambiguous = mill("keys", "revoke", "ci")
    by_id = mill.json("keys", "revoke", first["id"])
    by_name = mill.json("keys", "revoke", "ci")

    assert (ambiguous.code, "give the id" in ambiguous.err) == (2, True)
    assert (by_id["id"], by_name["id"]) == (first["id"], second["id"])
    assert mill("keys", "revoke", "ci").code == 2
    assert mill.json("service-accounts", "disable", account)["disabled"]


def test_a_service_account_is_meant_by_a_name_that_only_one_live_account_has(mill: Cli) -> None:
    create = ("service-accounts", "create", "robot", "--role", "operator")
    first, second = mill.json(*create)["id"], mill.json(*create)["id"]

    ambiguous = mill("keys", "create", "ci", "--service-account", "robot")
    disabled = mill.json("service-accounts", "disable", first)
    by_name = mill.json("keys", "create", "ci", "--service-account", "robot")

    assert (ambiguous.code, "give the id" in ambiguous.err) == (2, True)
    assert (disabled["id"], by_name["key"]["account_id"]) == (first, second)
    assert mill.json("service-accounts", "disable", "robot")["id"] == second
    assert mill("keys", "create", "ci", "--service-account", "robot").code == 2


def test_the_list_of_users_tells_the_role_that_is_held_everywhere(mill: Cli) -> None:
    for role in ("admin", "viewer"):
        create = ("users", "create", f"{role}@b.example", "--role", role)
        assert mill(*create, typed="quite long enough\n").code == 0

    heading, *rows = mill("users", "list").out.splitlines()

    assert heading.split()[3:5] == ["EVERYWHERE", "MEMBER"]
    assert [row.split()[3:5] for row in rows] == [["admin", "-"], ["viewer", "-"]]
    assert [one["roles"] for one in mill.json("users", "list")] == [{"*": "admin"}, {"*": "viewer"}]


def test_an_invitation_into_a_store_says_where_it_is_good(mill: Cli) -> None:
    made = mill("users", "invite", "operator")

    assert made.code == 0
    assert "at servers with `--registration invitation`" in made.err


def test_a_workflow_that_is_taken_away_is_told(cli: Cli) -> None:
    cli("deploy", cli.write("orders.yaml", FLOW))

    assert cli.json("workflows", "delete", "orders", "--yes")["deleted"]
