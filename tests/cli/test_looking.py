"""Commands that look: over a store that nobody works on, through the API in this process."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli


def test_runs_are_listed_newest_first_and_by_filter(used: Cli) -> None:
    [broken, orders] = used.json("runs")

    assert (broken["workflow"], broken["state"]) == ("broken", "FAILED")
    assert orders["progress"] == {"total": 2, "ended": 2, "failed": 0}
    assert [run["id"] for run in used.json("runs", "--state", "failed")] == [broken["id"]]
    assert [run["id"] for run in used.json("runs", "--label", "team=mill")] == [orders["id"]]
    assert used.json("runs", "--label", "team=mill", "--label", "size=big") == []
    assert [run["id"] for run in used.json("runs", "--text", "brok")] == [broken["id"]]


def test_a_run_is_found_by_either_end_of_its_id(used: Cli) -> None:
    [_, orders] = used.json("runs")
    whole = orders["id"]

    for text in (whole, whole[:16], whole[-8:], whole.upper()):
        assert used.json("show", text)["run"]["id"] == whole
    assert "begins or ends with 'zzz'" in used("show", "zzz").err
    assert "fits more than one run" in used("show", whole[:6]).err


def test_show_tells_a_run_with_its_tasks(used: Cli) -> None:
    shown = used("show", "latest").out
    told = used.json("show", "latest")

    assert "state     FAILED: a task failed" in shown
    assert "thank  UPSTREAM_FAILED" in shown
    assert [task["id"] for task in told["tasks"]] == ["pay", "thank"]


def test_show_tells_a_task_with_params_error_and_attempts(used: Cli) -> None:
    shown = used("show", "latest", "pay").out
    told = used.json("show", "latest", "pay")

    assert "state     FAILED: retries exhausted" in shown
    assert '"failure_rate": 1.0' in shown
    assert told["task"]["error"]["type"] == "Flaky"
    assert len(told["attempts"]) == 1


def test_dead_letters_are_listed_shown_and_counted(used: Cli) -> None:
    [letter] = used.json("dead")
    [group] = used.json("dead", "groups")

    assert (letter["task"], group["count"]) == ("pay", 1)
    assert used.json("dead", "list", "--group", group["group"]) == [letter]
    assert used.json("dead", "--workflow", "orders") == []
    assert "Flaky" in used("dead", "show", "latest", "pay").out
    assert "no dead letter" in used("dead", "show", "latest", "thank").err


def test_wait_and_watch_tell_how_a_run_ended(used: Cli) -> None:
    [broken, orders] = used.json("runs")

    waited = used("wait", orders["id"])
    watched = used("watch", broken["id"])

    assert (waited.code, watched.code) == (0, 1)
    assert "orders SUCCEEDED after" in waited.out
    assert "task pay failed after 1 attempt" in watched.out


def test_top_is_printed_once_where_nobody_watches(used: Cli) -> None:
    printed = used("top", "--once").out
    told = used.json("top")

    assert "no worker is connected" in printed
    assert "broken" in printed
    assert (told["dead_letters"], told["open_runs"]) == (1, 0)


def test_top_in_a_pipe_is_as_wide_as_columns_says(
    used: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    lines = used("top", "--once").out.splitlines()

    assert max(map(len, lines)) <= 60


def test_lists_that_are_empty_say_so(used: Cli) -> None:
    assert used("workers").out == "no workers are connected\n"
    assert used("workflows", "list").out == "no workflows are deployed\n"
    assert used("job", "list").out == "no jobs\n"
    assert used("secrets", "list").out == "no secrets\n"


def test_logs_print_what_a_task_printed(used: Cli) -> None:
    assert used("logs", "latest", "pay").code == 0
    assert used.json("logs", "latest", "pay", "--all")[0]["attempt"] == 1


def test_events_are_followed_from_the_oldest(used: Cli) -> None:
    [_, orders] = used.json("runs")

    printed = used("events", orders["id"], "--after", "0", "--limit", "2").out

    assert printed.count("\n") == 2
    assert "tidemill.workflow.started.v1" in printed


def test_a_store_that_is_not_there_is_told_with_the_fix(cli: Cli) -> None:
    for arguments in (["runs"], ["cancel", "latest"], ["top", "--once"]):
        ended = cli(*arguments)

        assert ended.code == 2
        assert "`tidemill run` creates it" in ended.err
    assert not (cli.folder / ".tidemill").exists()
