"""What cannot run here is refused before anything starts, every problem with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.commands import Shell
from tidemill.runtime.rehearsal import rehearse

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted([*EXAMPLES.rglob("*.yaml"), EXAMPLES / "flow.py"])

FEAT = "def sync(order): return order\n"
BROKEN = """name: broken
imports: [feat.py, no_such_module]
tasks:
  - id: misspelt
    executor: shel
  - id: field
    executor: python
    params: {functoin: "feat:sync"}
  - id: function
    executor: python
    params:
      function: "feat:snyc"
  - id: colon
    executor: python
    params: {function: "feat.sync"}
  - id: arguments
    executor: python
    params: {function: "feat:sync"}
    inputs: {ordre: 1}
  - id: input
    executor: shell
    params:
      argv: [echo,
             {input: zz}]
  - id: parent
    executor: noop
    depends_on: [nobody]
"""

PROBLEMS = {
    2: "imports[1]: cannot be imported: ModuleNotFoundError: No module named 'no_such_module'",
    5: 'tasks[0].executor: unknown executor "shel", did you mean "shell"? known here: compute, ',
    8: 'tasks[1].params.functoin: there is no such field, did you mean "function"?',
    12: "tasks[2].params.function: 'feat:snyc': feat defines no function 'snyc', did you mean",
    15: "tasks[3].params.function: 'feat.sync' names no function: write feat:sync, with a colon",
    19: "tasks[4].inputs: feat:sync: missing a required argument: 'order'",
    24: "tasks[5].params.argv[1]: the task has no input 'zz'; it has: none",
    27: 'tasks[6].depends_on[0]: no task has the id "nobody"',
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_example_could_run_here(shell: Shell, path: Path) -> None:
    ended = shell.run("validate", str(path))

    assert ended.code == 0, ended.err


@pytest.mark.parametrize("command", ["validate", "run"])
def test_every_problem_is_told_at_once_with_its_line(shell: Shell, command: str) -> None:
    shell.write("feat.py", FEAT)
    shell.write("broken.yaml", BROKEN)

    ended = shell.run(command, "broken.yaml")

    assert ended.code == 2
    missing = {n: text for n, text in PROBLEMS.items() if not _tells(ended.err, n, text)}
    assert missing == {}, ended.err
    assert not (shell.folder / ".tidemill").exists()


def _tells(told: str, line: int, text: str) -> bool:
    return any(text in row and f"{line}:" in row.split(text)[0] for row in told.splitlines())


def test_functions_may_come_from_the_command_line(shell: Shell) -> None:
    shell.write("feat.py", FEAT)
    task = '{id: a, executor: python, params: {function: "feat:sync"}, inputs: {order: 1}}'
    shell.write("flow.yaml", f"name: flow\ntasks: [{task}]")

    without = shell.run("validate", "flow.yaml")
    with_it = shell.run("validate", "flow.yaml", "--import", "feat.py")

    assert (without.code, with_it.code) == (2, 0)
    assert "the module feat is not imported (imported: none)" in without.err


def test_a_workflow_in_python_is_rehearsed_as_well(shell: Shell) -> None:
    tasks = 'TaskSpec(id="a", executor="python", params={"function": "flow:nope"})'
    source = f"from tidemill import TaskSpec, Workflow\nw = Workflow(name='w', tasks=({tasks},))"
    shell.write("flow.py", source)

    ended = shell.run("validate", "flow.py")

    assert ended.code == 2
    assert "tasks[0].params.function: 'flow:nope': flow defines no function 'nope'" in ended.err


def test_all_workflows_of_a_python_file_are_validated(shell: Shell) -> None:
    noop = 'TaskSpec(id="a", executor="noop")'
    two = [f"{name} = Workflow(name='{name}', tasks=({noop},))\n" for name in "uv"]
    shell.write("flow.py", f"from tidemill import TaskSpec, Workflow\n{''.join(two)}")
    right, one = shell.run("validate", "flow.py"), shell.run("validate", "flow.py:v")
    wrong = noop.replace("noop", "nope")
    with (shell.folder / "flow.py").open("a") as file:
        file.write(f"w = Workflow(name='w', tasks=({wrong},))\n")

    refused = shell.run("validate", "flow.py")

    assert right.out == "u: 1 task, no problems\nv: 1 task, no problems\n"
    assert one.out == "v: 1 task, no problems\n"
    assert refused.code == 2
    assert "flow.py: w: tasks[0].executor: " in refused.err


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import os; print('bye', flush=True); os._exit(3)", "ended the process, exit code 3: bye"),
        ("import sys; sys.exit('no')", "cannot be imported: SystemExit: no"),
        ("print('{}'); 1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named(tmp_path: Path, source: str, words: str) -> None:
    (tmp_path / "bad_module.py").write_text(source)

    [problem] = rehearse({"tasks": []}, {"imports[0]": str(tmp_path / "bad_module.py")})

    assert problem.path == "imports[0]"
    assert words in problem.message


def test_what_a_module_leaves_running_holds_nobody_up(tmp_path: Path) -> None:
    source = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()"
    (tmp_path / "busy_module.py").write_text(source)

    assert rehearse({"tasks": []}, {"imports[0]": str(tmp_path / "busy_module.py")}) == ()


PLUG_IN = """
from tidemill.worker.executor import Executor

class Docker(Executor):
    def __init__(self, workshop): pass
    def check(self, params): return [] if "image" in params else ["params.image: is missing"]

class Odd(Executor):
    def __init__(self, workshop): pass
    def check(self, params): raise ValueError("odd")
"""
POINTS = "[tidemill.executors]\ndocker = plug_in:Docker\nodd = plug_in:Odd\nnone = plug_in:None_\n"


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with executors of its own, as pip would leave it."""
    (tmp_path / "plug_in.py").write_text(PLUG_IN)
    about = tmp_path / "plug_in-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.mark.usefixtures("plug_in")
def test_executors_of_plug_ins_are_known_and_asked() -> None:
    good = {"executor": "docker", "params": {"image": "x"}}
    tasks = [good, {"executor": "docker"}, {"executor": "odd"}, {"executor": "none"}]

    problems = rehearse({"tasks": tasks}, {})

    assert [(problem.path, problem.code) for problem in problems] == [
        ("tasks[1].params.image", "BAD_PARAMS"),
        ("tasks[2].params", "BROKEN_EXECUTOR"),
        ("tasks[3].executor", "BROKEN_EXECUTOR"),
    ]


@pytest.mark.parametrize("definition", [None, [], {"tasks": 3}, {"tasks": [3, {"executor": 1}]}])
def test_what_has_no_meaning_is_left_to_others(definition: object) -> None:
    assert rehearse(definition, {}) == ()
