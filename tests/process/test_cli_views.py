"""What people see: safe to print, and bounded however large the run."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tidemill.cli.views.lines import LineView
from tidemill.cli.views.model import RunModel
from tidemill.cli.views.text import duration, first_line, listing, printable, printable_block, table
from tidemill.cli.views.tree import TreeView
from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import RunId, VersionId
from tidemill.domain.plan import Plan, compile_plan
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


def _drawn(model: RunModel, height: int = 20) -> str:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, height=height)
    with TreeView(model, console) as view:
        view.refresh(NOW)
    return screen.getvalue()


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


def test_the_output_is_shown_only_when_it_could_not_be_evaluated() -> None:
    model = RunModel.of(_fan(1, output="t0"))
    done = model.apply(_fact(FactType.TASK_COMPLETED, 2, "SUCCEEDED"))

    assert done is None
    assert len(model.order) == 2
    failed = model.apply(_fact(FactType.TASK_FAILED, 2, "FAILED", "no such field"))
    assert failed is not None
    assert len(model.order) == 3
