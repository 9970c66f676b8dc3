"""What people see: safe to print, and bounded however large the run."""

from __future__ import annotations

import io
import re

import msgspec
import pytest
from rich.console import Console

from tidemill.cli.views.lines import LineView
from tidemill.cli.views.model import RunModel
from tidemill.cli.views.text import duration, first_line, listing, printable, printable_block, table
from tidemill.cli.views.tree import TreeView
from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import SECOND, RunId, VersionId
from tidemill.domain.plan import Plan, compile_plan
from tidemill.domain.task_run import TaskState
from tidemill.domain.workflow import TaskSpec, Workflow

NOW = 1_000_000_000


def _fan(width: int, output: str | None = None) -> Plan:
    root = TaskSpec(id="root", executor="noop")
    tasks = [TaskSpec(id=f"t{n}", executor="noop", depends_on=("root",)) for n in range(width)]
    workflow = Workflow(name="fan[bold]", tasks=(root, *tasks), output=output)
    return compile_plan(VersionId("v"), workflow)


def _fact(kind: FactType, position: int, state: str, error: str | None = None) -> Fact:
    return Fact(
        type=kind,
        namespace="default",
        run_id=RunId("r"),
        workflow="fan",
        at=NOW,
        state=state,
        task=f"t{position - 1}",
        position=position,
        attempt=1,
        error=error,
    )


def _drawn(model: RunModel, height: int = 20, width: int = 100) -> str:
    screen = io.StringIO()
    console = Console(
        file=screen, force_terminal=True, width=width, height=height, color_system=None
    )
    with TreeView(model, console) as view:
        view.refresh(NOW)
    return screen.getvalue()


def _lines(model: RunModel, width: int) -> list[str]:
    """The heading and the tasks of the last frame, without what moves the cursor."""
    drawn = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "\n", _drawn(model, width=width))
    return [line for line in drawn.replace("\r", "\n").split("\n") if line][-2:]


def test_text_that_would_steer_a_terminal_is_spelled_out() -> None:
    assert printable("a\x1b[31mb\n\u202ec\x9b") == "a\\x1b[31mb\\x0a\\u202ec\\x9b"
    assert printable_block("one\r\ntwo\tthree\x07") == "one\ntwo\tthree\\x07"


def test_a_line_of_a_list_is_one_short_line() -> None:
    assert first_line("one\ntwo") == "one"
    assert len(first_line("x" * 1_000, 50)) == 50


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (-5, "0.00 s"),
        (1_234_000, "1.23 s"),
        (59_900_000, "59.9 s"),
        (61_000_000, "1 min 01 s"),
        (3_720_000_000, "1 h 02 min"),
    ],
)
def test_durations_have_as_many_digits_as_matter(micros: int, text: str) -> None:
    assert duration(micros) == text


def test_names_are_listed_up_to_a_few() -> None:
    assert listing(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_columns_are_aligned() -> None:
    assert table(("A", "B"), [("long", "x")]) == ["A     B", "long  x"]


def test_a_tree_of_ten_thousand_tasks_fits_the_screen_and_shows_what_fails() -> None:
    model = RunModel.of(_fan(10_000))
    model.apply(_fact(FactType.TASK_FAILED, 9_000, "FAILED", "boom"))

    drawn = _drawn(model)

    assert drawn.count("\n") < 60  # a few frames of at most 20 lines
    assert "t8999" in drawn
    assert "boom" in drawn
    assert "tasks more" in drawn


def test_a_chain_of_ten_thousand_tasks_does_not_leave_the_screen() -> None:
    tasks = [
        TaskSpec(id=f"t{n}", executor="noop", depends_on=(f"t{n - 1}",) if n else ())
        for n in range(10_000)
    ]
    plan = compile_plan(VersionId("v"), Workflow(name="chain", tasks=tuple(tasks)))

    assert "t12" in _drawn(RunModel.of(plan))


@pytest.mark.parametrize("width", [50, 60, 80, 120])
def test_columns_of_the_tree_stay_where_they_are_at_any_width(width: int) -> None:
    name = "a-task-with-an-id-of-some-forty-letters-x"
    plan = compile_plan(
        VersionId("v"), Workflow(name="w" * 90, tasks=(TaskSpec(id=name, executor="noop"),))
    )
    model = RunModel.of(plan)
    model.apply(_fact(FactType.TASK_STARTED, 0, "RUNNING"))
    before = _lines(model, width)
    retried = msgspec.structs.replace(
        _fact(FactType.TASK_FAILED, 0, "FAILED", "x" * 200), epoch=12, at=NOW + 61 * SECOND
    )
    model.apply(retried)
    after = _lines(model, width)

    assert all(len(line) <= width for line in (*before, *after))
    place = after[1].index("1 min 01 s attempt 12") + len("1 min 01 s")
    assert before[1].index("0.00 s") + len("0.00 s") == place


def test_many_failures_leave_half_of_the_lines_to_what_still_runs() -> None:
    model = RunModel.of(_fan(1_000))
    for position in range(1, 500):
        model.apply(_fact(FactType.TASK_FAILED, position, "FAILED", "boom"))
    for position in range(500, 520):
        model.apply(_fact(FactType.TASK_STARTED, position, "RUNNING"))

    shown = [model.lines[position].state for position in model.visible(16)]

    assert (shown.count(TaskState.FAILED), shown.count(TaskState.RUNNING)) == (8, 8)


def test_the_tree_takes_no_markup_from_users() -> None:
    model = RunModel.of(_fan(2))
    model.apply(_fact(FactType.TASK_FAILED, 1, "FAILED", "[red]not red[/red] \x1b[2J"))

    drawn = _drawn(model)

    assert "[red]not red[/red] \\x1b[2J" in drawn
    assert "fan[bold]" in drawn


def test_plain_lines_of_a_large_run_tell_only_trouble_and_how_far_it_is() -> None:
    model, lines = RunModel.of(_fan(1_000)), list[str]()
    view = LineView(model, lines.append)

    for position in range(1, 500):
        fact = _fact(FactType.TASK_COMPLETED, position, "SUCCEEDED")
        view.show(fact, model.apply(fact))
    failed = _fact(FactType.TASK_FAILED, 500, "FAILED", "boom")
    view.show(failed, model.apply(failed))

    assert len(lines) == 2
    assert "1 of 1,001 tasks ended" in lines[0]
    assert "FAILED" in lines[1]


def test_a_notice_waits_for_the_facts_that_came_before_it() -> None:
    model, lines = RunModel.of(_fan(2)), list[str]()

    with LineView(model, lines.append) as view:
        view.notice("a worker died", NOW + 1)
        early, late = (
            msgspec.structs.replace(_fact(FactType.TASK_STARTED, 1, "RUNNING"), at=NOW + at)
            for at in (0, 2)
        )
        view.show(early, model.apply(early))
        view.show(late, model.apply(late))
        view.notice("the end", NOW + 3)

    assert ["worker died" in line for line in lines] == [False, True, False, False]
    assert lines[-1].endswith("the end")


def test_the_last_column_of_a_list_ends_where_the_terminal_does() -> None:
    rows = table(("A", "B"), [("long", "x" * 100)], 20)

    assert rows == ["A     B", "long  " + "x" * 13 + "…"]


def test_the_output_is_shown_only_when_it_could_not_be_evaluated() -> None:
    model = RunModel.of(_fan(1, output="t0"))
    done = model.apply(_fact(FactType.TASK_COMPLETED, 2, "SUCCEEDED"))

    assert done is None
    assert len(model.order) == 2
    failed = model.apply(_fact(FactType.TASK_FAILED, 2, "FAILED", "no such field"))
    assert failed is not None
    assert len(model.order) == 3
