"""Workflow files: every problem with its line, and nothing dangerous read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidemill.domain.errors import InvalidWorkflow
from tidemill.sdk.files import load_file

GOOD = """\
name: hello
tasks:
  - id: a
    executor: noop
"""


def written(folder: Path, text: str, name: str = "flow.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def complaint(path: str | Path) -> str:
    with pytest.raises(InvalidWorkflow) as refused:
        load_file(path)
    return str(refused.value)


def params_of(folder: Path, text: str) -> Any:
    return load_file(written(folder, f"{GOOD}    params: {text}\n")).workflow.tasks[0].params


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    text = json.dumps({"name": "hello", "tasks": [{"id": "a", "executor": "noop"}]}, indent="\t")

    from_json = load_file(written(tmp_path, text, "flow.json"))
    from_yaml = load_file(written(tmp_path, GOOD))

    assert from_json.workflow == from_yaml.workflow
    assert from_yaml.imports == ()


def test_every_problem_has_its_line_in_yaml(tmp_path: Path) -> None:
    text = """\
name: 5
tasks:
  - id: a
    executor: noop
    depends_on:
      - b
      - c
  - id: b
    retry:
      max_retrys: 3
    inputs:
      order: {result: a}
"""

    assert complaint(written(tmp_path, text)).splitlines() == [
        'line 1: name: must be a string, not 5: put it in quotes, like "5"',
        'line 7: tasks[0].depends_on[1]: no task has the id "c"',
        "line 8: tasks[1].executor: is required",
        'line 10: tasks[1].retry.max_retrys: is not a known field, did you mean "max_retries"?',
        (
            "line 12: tasks[1].inputs.order.result: "
            "tasks wait in a circle, each for the next one: a → b → a"
        ),
    ]


def test_every_problem_has_its_line_in_json(tmp_path: Path) -> None:
    text = """\
{
  "name": "hello \\"{[,",
  "tasks": [
    {"id": "a", "executor": "noop",
     "priority": 1.5},
    {"id": "a",
     "executor": "noop"}
  ]
}
"""

    lines = complaint(written(tmp_path, text, "flow.json")).splitlines()

    assert [line.split(":")[0] for line in lines] == ["line 2", "line 5", "line 6"]


def test_the_count_of_further_problems_comes_last(tmp_path: Path) -> None:
    text = "name: x\ntasks:\n" + "  - {id: a, executor: noop}\n" * 200

    lines = complaint(written(tmp_path, text)).splitlines()

    assert lines[0] == 'line 4: tasks[1].id: "a" is already the id of tasks[0], choose another'
    assert lines[-1] == "and 99 more problems"


REFUSED = {
    "": 'line 1: is empty: a workflow has at least "name" and "tasks"',
    "# nothing\n": 'line 1: is empty: a workflow has at least "name" and "tasks"',
    "- a\n": "line 1: must be an object, not a list",
    "name: a\n\tb: 1\n": "line 2: column 1: is not YAML: a tab: indent with spaces",
    "name: [a\nb: 1\n": (
        "line 2: column 2: is not YAML: while parsing a flow sequence, "
        "did not find expected ',' or ']'"
    ),
    'name: "a\n': (
        "line 2: column 1: is not YAML: while scanning a quoted scalar, found unexpected end of "
        "stream"
    ),
    "name: a\nname: b\n": 'line 2: the key "name" is given twice, first in line 1',
    "name: a\n---\nname: b\n": (
        "line 2: a second document begins here, keep one workflow per file"
    ),
    "name: !!python/object/apply:os.system [ls]\n": (
        "line 1: the tag !!python/object/apply:os.system is not allowed, write plain values"
    ),
    "name: !secret x\n": "line 1: the tag !secret is not allowed, write plain values",
    "name: !!binary aGVsbG8=\n": "line 1: the tag !!binary is not allowed, write plain values",
    "1: a\n": "line 1: the key 1 is not text, put it in quotes",
    "null: a\n": "line 1: the key null is not text, put it in quotes",
    "[a]: b\n": "line 1: a key must be text, not a list or a mapping",
    "a: &x b\n*x : c\n": "line 2: an alias cannot be a key, write the key out",
    "a: *x\n": "line 1: *x has no anchor &x before it that is complete",
    "a: &x [*x]\n": "line 1: *x has no anchor &x before it that is complete",
    "a: {<<: 5}\n": "line 1: << takes a mapping or a list of mappings",
    "[" * 100: "line 1: is nested too deeply, at most 64 levels are allowed",
    "name: \x01\n": (
        "is not YAML: unacceptable character #x0001: control characters are not allowed in "
        '"<unicode string>", position 6'
    ),
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text)[:30])
def test_a_malformed_file_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    assert complaint(written(tmp_path, text)) == REFUSED[text]


REFUSED_JSON = {
    "{": "line 1: column 2: is not JSON: Expecting property name enclosed in double quotes",
    '{"a": 1,\n "b": }': "line 2: column 7: is not JSON: Expecting value",
    '{"a": 1,\n "a": 2}': 'line 2: the key "a" is given twice, first in line 1',
    "[" * 70 + "]" * 70: "line 1: is nested too deeply, at most 64 levels are allowed",
    "[" * 100_000: "is nested too deeply",
}


@pytest.mark.parametrize("text", REFUSED_JSON, ids=lambda text: repr(text)[:30])
def test_malformed_json_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    assert complaint(written(tmp_path, text, "flow.json")) == REFUSED_JSON[text]


def test_numbers_that_json_cannot_hold_are_refused(tmp_path: Path) -> None:
    text = f"{GOOD}    params: {{x: .inf, y: -.inf, z: .nan, big: {'9' * 400}}}\n"

    lines = complaint(written(tmp_path, text)).splitlines()

    assert lines[0] == "line 5: tasks[0].params.x: is inf, which JSON cannot hold"
    assert len(lines) == 4


def test_an_alias_bomb_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)]

    message = complaint(written(tmp_path, "\n".join(lines)))

    assert message == "line 20: has more than 3,000,000 parts with its aliases written out"


def test_surprises_of_yaml_stay_text(tmp_path: Path) -> None:
    params = params_of(
        tmp_path, "{on: yes, no: off, day: 2024-01-31, time: 12:30, zip: 01234, n: 1_000, v: 1.2.3}"
    )

    assert params == {
        "on": "yes",
        "no": "off",
        "day": "2024-01-31",
        "time": "12:30",
        "zip": "01234",
        "n": "1_000",
        "v": "1.2.3",
    }


def test_plain_values_have_the_types_of_json(tmp_path: Path) -> None:
    params = params_of(
        tmp_path,
        '{a: true, b: False, c: null, d: ~, e: , f: -7, g: 1e3, h: .5, i: "5", j: !!str 5}',
    )

    assert list(params.values()) == [True, False, None, None, None, -7, 1000.0, 0.5, "5", "5"]


def test_plain_tags_are_allowed(tmp_path: Path) -> None:
    params = params_of(tmp_path, '{a: !!int "5", b: !!map {c: !!seq [!!bool "true"]}, d: ! x}')

    assert params == {"a": 5, "b": {"c": [True]}, "d": "x"}


def test_anchors_and_merges_work(tmp_path: Path) -> None:
    text = """\
name: hello
tasks:
  - &base {id: a, executor: noop, queue: slow, priority: 5}
  - <<: *base
    id: b
    priority: 7
  - {<<: [{queue: fast}, *base], id: c, "<<": 1}
"""

    lines = complaint(written(tmp_path, text)).splitlines()
    workflow = load_file(written(tmp_path, text.replace(', "<<": 1', ""))).workflow

    assert lines[0].startswith('line 7: tasks[2]["<<"]: is not a known field')
    assert [task.priority for task in workflow.tasks] == [5, 7, 5]
    assert [task.queue for task in workflow.tasks] == ["slow", "slow", "fast"]


def test_imports_are_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "orders.py").touch()
    text = f"imports: [orders.py, shop.orders]\n$schema: x\n{GOOD}"

    loaded = load_file(written(tmp_path, text))

    assert loaded.imports == (str((tmp_path / "orders.py").resolve()), "shop.orders")
    assert loaded.path == str(tmp_path / "flow.yaml")


def test_wrong_imports_are_told_with_all_other_problems(tmp_path: Path) -> None:
    text = "imports:\n  - nope.py\n  - shop\n  - 5\nname: a\n"

    assert complaint(written(tmp_path, text)).splitlines() == [
        "line 1: tasks: is required",
        'line 2: imports[0]: there is no file "nope.py" beside this one',
        "line 4: imports[2]: 5 is neither a module, like shop.orders, nor a file, like orders.py",
    ]


def test_imports_must_be_a_list(tmp_path: Path) -> None:
    assert complaint(written(tmp_path, f"imports: orders.py\n{GOOD}")) == (
        "line 1: imports: must be a list of at most 100 modules or files, like [orders.py]"
    )


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nope.yaml"

    assert complaint(path) == f"{path}: there is no such file, look at the spelling and the folder"


def test_a_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    path.mkdir()

    assert complaint(path) == f"{path}: is a folder, name the file in it"


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 300 + ".yaml")

    assert complaint(path) == f"{path}: cannot be read: File name too long"


@pytest.mark.parametrize("name", ["flow.txt", "flow", "flow.yaml.bak"])
def test_another_suffix_is_refused(name: str) -> None:
    assert complaint(name) == (
        f"{name}: is no workflow file: give a .yaml, .yml or .json file, flow.py or module:name"
    )


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "#" * 10_000_001)

    assert complaint(path) == f"{path}: is larger than 10,000,000 bytes, split the workflow"


def test_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    path.write_bytes("name: a\n# Tschüss\n".encode("latin-1"))

    assert complaint(path) == "line 2: is not UTF-8 text, save the file as UTF-8"


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff" + GOOD)

    assert load_file(path).workflow.name == "hello"
