"""How a mutant changes production code: text of a function or of a named query, put back after."""

from __future__ import annotations

import importlib
import inspect
import sqlite3
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import FunctionType, MappingProxyType
from typing import Any, NamedTuple

from tidemill.stores.sqlite import connection, store


class Cut(NamedTuple):
    """A text to replace in one function (`package.module:Class.method`), where it occurs once."""

    place: str
    old: str
    new: str


class QueryCut(NamedTuple):
    """A text to replace in one named query of the SQLite store, where it occurs once."""

    query: str
    old: str
    new: str


class SchemaCut(NamedTuple):
    """A statement that takes a guard out of the schema, run right after the migrations."""

    statement: str


class Mutant(NamedTuple):
    """A bug: what is changed, which invariants show it, and the seeds that must be enough."""

    name: str
    cuts: Sequence[Cut | QueryCut | SchemaCut]
    seeds_max: int
    invariants: Sequence[str]


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Production code with the bug in it."""
    with ExitStack() as stack:
        for cut in mutant.cuts:
            stack.enter_context(_changed(cut))
        yield


def _changed(cut: Cut | QueryCut | SchemaCut) -> AbstractContextManager[None]:
    match cut:
        case Cut():
            return function_changed(cut)
        case QueryCut():
            return _query_changed(cut)
        case SchemaCut():
            return _schema_changed(cut)


@contextmanager
def _schema_changed(cut: SchemaCut) -> Iterator[None]:
    before = vars(store)["migrate"]

    def migrate_and_cut(raw: sqlite3.Connection) -> list[str]:
        titles: list[str] = before(raw)
        raw.execute(cut.statement)
        return titles

    vars(store)["migrate"] = migrate_and_cut
    try:
        yield
    finally:
        vars(store)["migrate"] = before


@contextmanager
def _query_changed(cut: QueryCut) -> Iterator[None]:
    before = connection.QUERIES
    text = _replaced(before[cut.query], cut.old, cut.new, cut.query)
    connection.QUERIES = MappingProxyType({**before, cut.query: text})
    try:
        yield
    finally:
        connection.QUERIES = before


@contextmanager
def function_changed(cut: Cut) -> Iterator[None]:
    """One function with the bug in it."""
    function = _find(cut.place)
    text = textwrap.dedent(_replaced(inspect.getsource(function), cut.old, cut.new, cut.place))
    scope: dict[str, Any] = {}
    code = compile(
        "from __future__ import annotations\n" + text, f"<mutant of {cut.place}>", "exec"
    )
    exec(code, function.__globals__, scope)
    changed = inspect.unwrap(scope[function.__name__])
    # The code object is exchanged, so that every module that imported the function runs the bug.
    before, function.__code__ = function.__code__, changed.__code__
    try:
        yield
    finally:
        function.__code__ = before


def _find(place: str) -> FunctionType:
    module_name, _, path = place.partition(":")
    found: Any = importlib.import_module(module_name)
    for part in path.split("."):
        found = vars(found)[part]
    function = found.fget if isinstance(found, property) else inspect.unwrap(found)
    assert isinstance(function, FunctionType), f"{place} is not a function"
    return function


def _replaced(text: str, old: str, new: str, place: str) -> str:
    assert text.count(old) == 1, f"{place}: {old!r} occurs {text.count(old)} times, not once"
    return text.replace(old, new)
