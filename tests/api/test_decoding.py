"""What is wrong with a request is told all at once, by field, with the fix."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.endpoints import NewThing, ThingsQuery
from tidemill.api.decoding import decode_json, decode_query
from tidemill.domain.errors import InvalidInput
from tidemill.protocol.resources.identity import (
    Bootstrap,
    ChangePassword,
    ChangeUser,
    CreateUser,
    LogIn,
    Refresh,
    Register,
)
from tidemill.protocol.resources.secrets import PutSecret


def body_problems(data: bytes) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as caught:
        decode_json(data, NewThing)
    return [(problem.path, problem.code) for problem in caught.value.problems]


def test_every_problem_of_a_body_is_told_at_once() -> None:
    found = body_problems(
        b'{"name": "", "colour": "green", "parts": [{"size": 0}, {"size": "x"}, {}], "nme": 1}'
    )

    assert sorted(found) == [
        ("colour", "NOT_ALLOWED"),
        ("name", "TOO_SHORT"),
        ("nme", "UNKNOWN_FIELD"),
        ("parts[0].size", "OUT_OF_RANGE"),
        ("parts[1].size", "WRONG_TYPE"),
        ("parts[2].size", "REQUIRED"),
    ]


@pytest.mark.parametrize(
    ("data", "path", "code"),
    [
        (b"", "", "REQUIRED"),
        (b"  \n", "", "REQUIRED"),
        (b"{", "", "NOT_JSON"),
        (b"not json", "", "NOT_JSON"),
        (b'{"name": "a"} x', "", "NOT_JSON"),
        (b'{"name": "\xff"}', "", "NOT_JSON"),
        (b'{"name": "\\ud800"}', "", "NOT_JSON"),
        (b'{"name": NaN}', "", "NOT_JSON"),
        (b'{"name": "a", "payload": Infinity}', "", "NOT_JSON"),
        (b'{"name": "a", "payload": 1e999}', "", "NOT_JSON"),
        (b'{"name": "a", "payload": 123456789012345678901234567890}', "payload", "BAD_NUMBER"),
        (b'{"name": "a", "payload": ' + b"9" * 5_000 + b"}", "", "NOT_JSON"),
        (b'\xef\xbb\xbf{"name": "a"}', "", "NOT_JSON"),
        (b'{"name": "a", "name": "b"}', "name", "DUPLICATE"),
        (b'{"name": "a", "payload": {"x": 1, "x": 2}}', "x", "DUPLICATE"),
        (b"[]", "", "WRONG_TYPE"),
        (b"null", "", "WRONG_TYPE"),
        (b'{"name": "a", "parts": [{"size": 2.5}]}', "parts[0].size", "WRONG_TYPE"),
    ],
)
def test_a_malformed_body_has_one_problem(data: bytes, path: str, code: str) -> None:
    assert body_problems(data) == [(path, code)]


@pytest.mark.parametrize("depth", [65, 500, 100_000])
def test_a_body_that_is_nested_too_deeply_is_refused(depth: int) -> None:
    found = body_problems(b'{"name": "a", "payload": ' + b"[" * depth + b"]" * depth + b"}")

    assert [code for _, code in found] == ["TOO_DEEP"]


@pytest.mark.parametrize(
    "data",
    [
        b'{"name": "a", "payload": [' + b"[]," * 1_000_000 + b"1]}",
        b'{"name": "a", "payload": [1' + b",1" * 1_000_000 + b", 99999999999999999999]}",
    ],
)
def test_a_body_of_too_many_parts_is_refused_unread(data: bytes) -> None:
    assert body_problems(data) == [("", "TOO_LARGE")]


def test_a_name_twice_is_seen_however_it_is_written() -> None:
    escaped = body_problems(b'{"name": "a", "payload": {"x": 1, "\\u0078": 2}}')
    spaced = body_problems(b'{"name": "a", "payload": {"x" :1,"x" : "x"}}')
    large = body_problems(b'{"name": "a", "payload": {"x": 1, "x": "' + b"y" * 5_000 + b'"}}')

    assert escaped == spaced == large == [("x", "DUPLICATE")]


def test_a_name_may_stand_in_many_objects() -> None:
    value = decode_json(b'{"name": "name", "payload": [{"x": "x"}, {"x": "x"}]}', NewThing)

    assert value.payload == [{"x": "x"}, {"x": "x"}]


def test_a_body_that_is_wide_and_not_deep_is_taken() -> None:
    value = decode_json(b'{"name": "a", "payload": [' + b"{}," * 500 + b"{}]}", NewThing)

    assert len(value.payload) == 501


def test_whole_numbers_up_to_64_bits_are_kept_exactly() -> None:
    value = decode_json(b'{"name": "a", "payload": 18446744073709551615}', NewThing)

    assert value.payload == 18446744073709551615


def test_a_whole_number_may_be_written_with_a_point() -> None:
    value = decode_json(b'{"name": "a", "parts": [{"size": 2.0}]}', NewThing)

    assert value.parts[0].size == 2


@pytest.mark.parametrize(
    ("query", "value"),
    [
        (b"", (10, (), False, None)),
        (b"limit=7&fresh=true&after=x%20y", (7, (), True, "x y")),
        (b"colour=red&colour=blue", (10, ("red", "blue"), False, None)),
    ],
)
def test_query_parameters_are_typed(query: bytes, value: tuple[Any, ...]) -> None:
    found = decode_query(query, ThingsQuery)

    assert (found.limit, found.colour, found.fresh, found.after) == value


@pytest.mark.parametrize(
    ("query", "problems"),
    [
        (b"limit=x&colour=green&lmt=1", {"limit", "colour[0]", "lmt"}),
        (b"limit=0", {"limit"}),
        (b"limit=1&limit=2", {"limit"}),
        (b"limit=1.0", {"limit"}),
        (b"limit=99999999999999999999999", {"limit"}),
        (b"fresh=yes", {"fresh"}),
        (b"after=%ff", {""}),
        (b"after=a%00b", {"after"}),
        (b"&".join(b"a=1" for _ in range(300)), {""}),
        (b"after=" + b"x" * 20_000, {""}),
    ],
)
def test_every_problem_of_a_query_is_told_at_once(query: bytes, problems: set[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode_query(query, ThingsQuery)

    assert {problem.path for problem in caught.value.problems} == problems


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (Bootstrap, "token"),
        (Bootstrap, "password"),
        (Register, "invitation"),
        (LogIn, "password"),
        (Refresh, "refresh_token"),
        (ChangePassword, "current"),
        (ChangePassword, "new"),
        (CreateUser, "password"),
        (ChangeUser, "password"),
        (PutSecret, "value"),
    ],
)
@pytest.mark.parametrize("value", [b"98765432", b'["98765432"]', b'{"98765432": 1}'])
def test_a_secret_that_is_refused_is_not_shown(kind: type[Any], field: str, value: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        decode_json(b'{"%s": %s}' % (field.encode(), value), kind)

    assert f"{field}: must be a string" in str(refused.value)
    assert "98765432" not in str(refused.value)
