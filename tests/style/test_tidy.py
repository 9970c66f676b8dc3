"""The house style as a test: shapes, banned calls, and a ratchet for what is not there yet."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.style.sources import Source, python_files

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 40
PARAMETERS_MAX = 6
NESTING_MAX = 3

# The ratchet: what is longer than the house style wants, and how long it may stay at most.
# An entry needs a reason; one that is no longer needed must go.
LONGER_FUNCTIONS: dict[str, int] = {}
DEEPER_FUNCTIONS: dict[str, int] = {}

BANNED_MODULE_NAMES = {"utils", "util", "common", "helpers", "base", "manager", "misc"}

# Where real time and real chance enter; every other file is handed a Clock and an Entropy.
ADAPTERS = {
    "tidemill/runtime/system.py",  # SystemClock and SystemEntropy themselves
    "tidemill/client/system.py",  # the same for clients, which live in programs of their own
    "tidemill/testing/clock.py",  # VirtualClock, which waits on a loop of its own
}
BANNED_IMPORTS = {"time", "random", "secrets"}
BANNED_CALLS = {
    "datetime.now": "take `now` from the Clock",
    "datetime.utcnow": "take `now` from the Clock",
    "date.today": "take `now` from the Clock",
    "asyncio.sleep": "use Clock.sleep",
    "os.urandom": "use Entropy",
    "uuid.uuid1": "use Entropy",
    "uuid.uuid4": "use Entropy",
}
DANGEROUS_IMPORTS = {"pickle", "cPickle", "marshal", "shelve", "dill"}
DANGEROUS_CALLS = {"eval", "exec", "os.system", "os.popen", "yaml.load", "yaml.unsafe_load"}
EXECUTING_METHODS = {"execute", "executemany", "executescript", "fetch", "fetchrow", "fetchval"}

# Importing late is for start-up time: of the program, and of `import tidemill`.
LATE_IMPORT_FOLDERS = (
    "tidemill/runtime/",
    "tidemill/cli/",
    "tidemill/authoring/",
    "tidemill/testing/",
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
PRODUCT = python_files("tidemill")
EVERYTHING = python_files("tidemill", "tests", "bench", "examples")


def test_files_are_short() -> None:
    long = {s.path: len(s.text.splitlines()) for s in EVERYTHING}

    assert {path: lines for path, lines in long.items() if lines >= FILE_LINES_MAX} == {}


def test_functions_are_short() -> None:
    lengths = {name: _length(function) for name, function in _functions(EVERYTHING)}

    long = {name: lines for name, lines in lengths.items() if lines >= FUNCTION_LINES_MAX}
    assert _beyond(long, LONGER_FUNCTIONS) == []


def test_functions_take_few_parameters() -> None:
    counts = {name: _parameters(function) for name, function in _functions(PRODUCT)}

    assert {name: count for name, count in counts.items() if count > PARAMETERS_MAX} == {}


def test_functions_are_flat() -> None:
    depths = {name: _depth(function.body) for name, function in _functions(EVERYTHING)}

    deep = {name: depth for name, depth in depths.items() if depth > NESTING_MAX}
    assert _beyond(deep, DEEPER_FUNCTIONS) == []


def test_every_module_says_what_lives_there() -> None:
    silent = [s.path for s in EVERYTHING if s.text.strip() and not ast.get_docstring(s.tree)]

    assert silent == []


def test_every_public_name_says_what_its_types_do_not() -> None:
    silent = [
        f"{source.path}: {node.name}"
        for source in PRODUCT
        for node in source.tree.body
        if isinstance(node, Function | ast.ClassDef)
        and not node.name.startswith("_")
        and not _is_overload(node)
        and not ast.get_docstring(node)
    ]

    assert silent == []


def test_modules_are_named_after_what_they_do() -> None:
    parts = {s.path: set(s.path.removesuffix(".py").split("/")) for s in EVERYTHING}

    assert [path for path, names in parts.items() if names & BANNED_MODULE_NAMES] == []


def test_imports_stand_at_the_top() -> None:
    late = [
        f"{source.path}:{node.lineno}"
        for source in PRODUCT
        if not source.path.startswith(LATE_IMPORT_FOLDERS)
        for _, function in _functions([source])
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]

    assert late == []


def test_no_import_hides_behind_type_checking() -> None:
    assert [s.path for s in PRODUCT if "TYPE_CHECKING" in s.text] == []


def test_time_and_chance_are_handed_in() -> None:
    found = [
        place
        for source in PRODUCT
        if source.path not in ADAPTERS
        for place in (*_imports(source, BANNED_IMPORTS), *_calls(source, set(BANNED_CALLS)))
    ]

    assert found == []


def test_every_adapter_of_the_list_exists() -> None:
    assert {s.path for s in PRODUCT} >= ADAPTERS


def test_nothing_turns_data_into_code() -> None:
    found = [
        place
        for source in PRODUCT
        for place in (*_imports(source, DANGEROUS_IMPORTS), *_calls(source, DANGEROUS_CALLS))
    ]

    assert found == []


def test_no_command_goes_through_a_shell() -> None:
    found = [
        f"{source.path}:{node.lineno}"
        for source in EVERYTHING
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and (
            _dotted(node.func) == "asyncio.create_subprocess_shell"
            or any(k.arg == "shell" and _is_true(k.value) for k in node.keywords)
        )
    ]

    assert found == []


def test_no_statement_is_put_together_from_text() -> None:
    found = [
        f"{source.path}:{node.lineno}"
        for source in PRODUCT
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in EXECUTING_METHODS
        and node.args
        and isinstance(node.args[0], ast.JoinedStr | ast.BinOp)
    ]

    assert found == []


@pytest.mark.parametrize(
    ("body", "depth"),
    [
        ("pass", 0),
        ("if a:\n  pass\nelif b:\n  pass\nelif c:\n  pass", 1),
        ("for a in b:\n  with c:\n    if d:\n      pass", 3),
        ("def inner():\n  if a:\n    pass", 0),
    ],
)
def test_nesting_is_counted_as_people_read_it(body: str, depth: int) -> None:
    assert _depth(ast.parse(body).body) == depth


def _functions(sources: list[Source]) -> Iterator[tuple[str, Function]]:
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, Function):
                yield f"{source.path}: {node.name} (line {node.lineno})", node


def _is_overload(node: Function | ast.ClassDef) -> bool:
    return any(_dotted(decorator) == "overload" for decorator in node.decorator_list)


def _length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _parameters(function: Function) -> int:
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in {"self", "cls"}])


def _depth(body: list[ast.stmt]) -> int:
    return max((_depth_of(statement) for statement in body), default=0)


def _depth_of(statement: ast.stmt) -> int:
    match statement:
        case ast.If(orelse=[ast.If() as otherwise]):
            return max(1 + _depth(statement.body), _depth_of(otherwise))
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            return 1 + max(_depth(statement.body), _depth(statement.orelse))
        case ast.With() | ast.AsyncWith():
            return 1 + _depth(statement.body)
        case ast.Match():
            return 1 + max(_depth(case.body) for case in statement.cases)
        case ast.Try() | ast.TryStar():
            handled = [inner for handler in statement.handlers for inner in handler.body]
            parts = (statement.body, handled, statement.orelse, statement.finalbody)
            return 1 + max(_depth(part) for part in parts)
        case _:
            return 0


def _beyond(found: dict[str, int], allowed: dict[str, int]) -> list[str]:
    """What is beyond the ratchet, and what the ratchet holds without need."""
    by_name = {name.rpartition(" (")[0]: size for name, size in found.items()}
    grown = [f"{name}: {size}" for name, size in by_name.items() if size > allowed.get(name, 0)]
    return grown + [f"{name}: not needed any more" for name in allowed if name not in by_name]


def _imports(source: Source, modules: set[str]) -> Iterator[str]:
    for node in ast.walk(source.tree):
        match node:
            case ast.Import(names=names):
                imported = {name.name.partition(".")[0] for name in names}
            case ast.ImportFrom(module=str(module), level=0):
                imported = {module.partition(".")[0]}
            case _:
                continue
        if imported & modules:
            yield f"{source.path}:{node.lineno}: import of {', '.join(imported & modules)}"


def _calls(source: Source, names: set[str]) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            dotted = _dotted(node.func)
            if dotted in names or any(dotted.endswith(f".{n}") for n in names if "." in n):
                hint = BANNED_CALLS.get(dotted, "not here")
                yield f"{source.path}:{node.lineno}: {dotted}: {hint}"


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{_dotted(value)}.{attr}"
        case _:
            return ""


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
