"""Commands that change something while nobody works on the store: this process does it."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import FLOW, Cli


@pytest.fixture
def waiting(cli: Cli) -> Cli:
    """A store with one run that nobody carries out."""
    started = cli("start", cli.write("orders.yaml", FLOW), "--key", "order-1")
    assert (started.code, "nobody works on the store" in started.err) == (0, True)
    return cli


def test_a_start_is_committed_once_by_its_key(waiting: Cli) -> None:
    again = waiting("start", "orders.yaml", "--key", "order-1")

    [run] = waiting.json("runs")
    assert again.out.strip() == run["id"]
    assert "has started it before" in again.err
    assert "key       order-1" in waiting("show", "latest").out
    assert waiting("show", "order-1").code == 0


def test_a_run_is_paused_continued_and_cancelled(waiting: Cli) -> None:
    paused = waiting("pause", "latest")
    going = waiting("continue", "latest")
    stopped = waiting("cancel", "latest")

    assert "is PAUSED: tidemill continue" in paused.out
    assert "is RUNNING" in going.out
    assert "is CANCELLED" in stopped.out
    assert "has ended already" in waiting("cancel", "latest").out


def test_nobody_waits_for_a_run_that_does_not_move(waiting: Cli) -> None:
    for arguments in (["wait", "latest"], ["watch", "latest"]):
        ended = waiting(*arguments)

        assert ended.code == 2
        assert "nobody works on the store" in ended.err


def test_a_pipe_that_cannot_be_asked_gives_leave_beforehand(cli: Cli) -> None:
    cli("deploy", cli.write("orders.yaml", FLOW))

    unasked = cli("workflows", "delete", "orders", typed="")
    agreed = cli("workflows", "delete", "orders", "--yes", typed="")

    assert (unasked.code, unasked.err.count("\n"), "give --yes" in unasked.err) == (2, 1, True)
    assert (agreed.code, agreed.err) == (0, "")


def test_jobs_come_one_by_one_and_in_bulk(cli: Cli) -> None:
    single = cli("job", "submit", "noop", "--payload", '{"n": 1}', "--key", "one")
    lines = [{"type": "noop"}, {"type": "nope"}, {"type": "noop"}]
    cli.write("jobs.ndjson", "\n".join(json.dumps(line) for line in lines))

    sent = cli("bulk", "jobs.ndjson")

    assert (sent.code, sent.out) == (1, "2 jobs taken, 1 refused\n")
    assert "item 2: type" in sent.err
    assert len(cli.json("job", "list")) == 3
    assert cli.json("job", "show", single.out.strip())["payload"] == {"n": 1}


def test_a_line_that_is_no_json_is_named(cli: Cli) -> None:
    cli.write("jobs.ndjson", '{"type": "noop"}\n\nnonsense\n')

    ended = cli("bulk", "jobs.ndjson")

    assert ended.code == 2
    assert "jobs.ndjson:3: is no JSON object" in ended.err


def test_what_is_wrong_is_refused_before_anything_is_stored(cli: Cli) -> None:
    no_json = cli("start", cli.write("orders.yaml", FLOW), "--input", "{")
    no_label = cli("start", "orders.yaml", "--label", "team")
    no_type = cli("job", "submit", "nope")
    no_name = cli("start", "nobody")

    assert [one.code for one in (no_json, no_label, no_type, no_name)] == [2] * 4
    assert "--input: is not JSON" in no_json.err
    assert "is not NAME=VALUE" in no_label.err
    assert "is no type of job" in no_type.err
    assert "nobody" in no_name.err


def test_what_cannot_be_read_is_told_by_the_name_of_its_option(cli: Cli) -> None:
    payload = cli("job", "submit", "noop", "--payload", "{")
    missing = cli("bulk", "missing.ndjson")

    assert (payload.code, missing.code) == (2, 2)
    assert "--payload: is not JSON" in payload.err
    assert "missing.ndjson cannot be read: No such file" in missing.err


def test_a_namespace_that_was_never_made_is_refused(cli: Cli) -> None:
    misspelt = cli("job", "submit", "noop", "--namespace", "shpo")
    cli("namespaces", "create", "shop")
    made = cli("job", "submit", "noop", "--namespace", "shop")

    assert (misspelt.code, made.code) == (2, 0)
    assert 'there is no namespace "shpo"' in misspelt.err


def test_a_name_that_is_not_there_is_told_with_the_fix(waiting: Cli) -> None:
    no_workflow = waiting("start", "missing").err
    no_namespace = waiting("start", "missing", "--namespace", "nope").err
    no_task = waiting("show", "latest", "nope").err

    assert "tidemill workflows list" in no_workflow
    assert "a file ends in .yaml, .json or .py" in no_workflow
    assert "there is no namespace" in no_namespace
    assert "workflows list" not in no_namespace
    assert "the run has pick, ship" in no_task
