"""What people see of what the API tells: at any width, and nothing that steers a terminal."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from tidemill.cli.views.dashboard import Dashboard
from tidemill.cli.views.lines import LineView
from tidemill.cli.views.listing import run_rows
from tidemill.cli.views.model import RunModel
from tidemill.cli.views.report import run_heading, run_output, task_table
from tidemill.cli.views.tree import TreeView
from tidemill.domain.run import RunState
from tidemill.domain.task_run import TaskState
from tidemill.protocol.cloud_events import moment_of
from tidemill.protocol.resources import (
    OverviewView,
    ProgressView,
    QueueView,
    RateView,
    RunKind,
    RunView,
    TaskView,
    WaitReason,
    WorkerView,
)
from tidemill.protocol.resources.tasks import TaskProgress

NOON = datetime(2027, 1, 15, 12, tzinfo=UTC)
NOW = moment_of(NOON)


def a_run(**fields: Any) -> RunView:
    plain = {
        "id": "01980000-0000-7000-8000-00000000abcd",
        "workflow": "orders",
        "version_id": "v",
        "kind": RunKind.RUN,
        "state": RunState.RUNNING,
        "ended": False,
        "progress": ProgressView(total=3, ended=1, failed=0),
        "created_at": NOON - timedelta(minutes=2),
        "started_at": NOON - timedelta(minutes=1),
    }
    return RunView(**{**plain, **fields})


def a_task(name: str, position: int, state: TaskState, **fields: Any) -> TaskView:
    plain = {"run_id": "r", "executor": "noop", "queue": "default", "attempt": 1}
    counts = {"failures": 0, "losses": 0, "epoch": 1}
    return TaskView(id=name, position=position, state=state, **{**plain, **counts, **fields})


TASKS = [
    a_task("pick", 0, TaskState.SUCCEEDED),
    a_task("pack", 1, TaskState.RUNNING, progress=TaskProgress(fraction=0.25, message="boxes")),
    a_task("ship", 2, TaskState.PENDING, depends_on=("pick", "pack")),
]


def test_a_table_of_tasks_says_what_each_waits_for_and_how_far_it_is() -> None:
    [_, pick, pack, ship] = task_table(TASKS, 100, NOW)

    assert pick.split() == ["pick", "SUCCEEDED", "1"]
    assert pack.endswith("25% boxes")
    assert ship.endswith("waits for pack")


def test_a_run_that_nobody_carries_out_says_so() -> None:
    lines = list(run_heading(a_run(title="Orders\x1b[31m", key="k1"), NOW, served=False))

    assert "state     RUNNING (left unfinished; `tidemill resume` continues it)" in lines
    assert "workflow  Orders\\x1b[31m" in lines
    assert "took      1 min 00 s" in lines


@pytest.mark.parametrize(
    ("result", "said"), [(None, False), ({"a": None}, False), ({"a": 1}, True), (0, True)]
)
def test_a_result_is_printed_when_it_says_anything(result: Any, said: bool) -> None:
    run = a_run(state=RunState.SUCCEEDED, ended=True, result=result)

    assert bool(list(run_output(run))) == said


def test_a_list_fits_eighty_columns() -> None:
    runs = [a_run(workflow="a-workflow-with-quite-a-long-name-in-it", quarantine="x" * 200)]

    lines = list(run_rows(runs, NOW, served=True, width=80))

    assert max(map(len, lines)) <= 80
    assert "0000abcd" in lines[1]


def test_a_model_is_built_from_what_a_server_tells() -> None:
    model = RunModel.of_views(a_run(progress=ProgressView(total=3, ended=1, failed=0)), TASKS)

    assert [model.lines[place].name for place in model.order] == ["pick", "ship", "pack"]
    assert (model.lines[1].progress, model.lines[1].note) == (0.25, "boxes")
    assert model.lines[3].name == "output"
    assert model.ended == 1


LACK = WaitReason(task="sell", code="WORKERS", message="no worker offers shop:sell")


def test_who_watches_is_told_once_that_no_worker_offers_a_task() -> None:
    told: list[str] = []
    model = RunModel.of_views(a_run(), [a_task("sell", 0, TaskState.READY, waiting_for=(LACK,))])

    with LineView(model, told.append) as lines:
        lines.refresh(NOW)
        lines.refresh(NOW)

    assert [line.split("  ", 1)[1] for line in told] == ["sell  waits: no worker offers shop:sell"]


def test_the_tree_says_that_no_worker_offers_a_task() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    model = RunModel.of_views(a_run(), [a_task("sell", 0, TaskState.READY, waiting_for=(LACK,))])

    with TreeView(model, console) as tree:
        tree.refresh(NOW)

    assert "no worker offers shop:sell" in console.file.getvalue()  # type: ignore[attr-defined]


def an_overview(queues: int, workers: int) -> OverviewView:
    return OverviewView(
        namespace="default",
        at=NOON,
        open_runs=3,
        ready=10,
        held=1,
        running=7,
        backoff=2,
        dead_letters=4,
        slots=640,
        queues=tuple(
            QueueView(name=f"q{n}", ready=n, held=0, running=1, workers=1, slots=64)
            for n in range(queues)
        ),
        workers=tuple(
            WorkerView(
                id=f"s{n}", worker=f"host-{n}", scheduler="s", slots=64, queues=("default",),
                labels={}, opened_at=NOON - timedelta(hours=1), running=n,
            )
            for n in range(workers)
        ),
        rates=RateView(started=12.0, completed=1_234.0, failed=0.5),
    )  # fmt: skip


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (80, 12)])
def test_the_dashboard_fits_the_screen(width: int, height: int) -> None:
    board, screen = Dashboard("http://127.0.0.1:8080"), io.StringIO()
    for _ in range(3):
        board.take(an_overview(30, 30), [a_run()] * 50)

    Console(file=screen, width=width, height=height).print(board.draw(width, height))

    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= max(height, 20)
    assert "1,234/s" in lines[2]


def test_the_dashboard_says_when_nobody_answers() -> None:
    board, screen = Dashboard("http://nowhere"), io.StringIO()
    board.trouble = "http://nowhere does not answer"

    Console(file=screen, width=80).print(board.draw(80, 24))

    assert screen.getvalue() == "http://nowhere does not answer\n"
