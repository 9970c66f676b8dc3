"""SQL lives in files, under the same names in both dialects, and is not made in Python."""

from __future__ import annotations

import ast

from tests.style.sources import python_files
from tidemill.stores.named_queries import load_queries, parse_queries

STORES = [source for source in python_files("tidemill") if "/stores/" in source.path]
RUNS_SQL = {"execute", "executemany", "executescript", "fetch", "fetchrow", "fetchval", "prepare"}
SQLITE = load_queries("tidemill.stores.sqlite")
POSTGRES = load_queries("tidemill.stores.postgres")

# How a batch travels, and in how many trips, is the business of each database.
ONLY_POSTGRES = {"open_turn", "write_turn"}
ONLY_SQLITE = {"take_places"}


def test_both_dialects_have_the_same_queries() -> None:
    assert set(POSTGRES) - set(SQLITE) == ONLY_POSTGRES
    assert set(SQLITE) - set(POSTGRES) == ONLY_SQLITE


def test_every_query_is_used() -> None:
    literals = {
        node.value
        for source in STORES
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }

    assert set(SQLITE) - literals == set()


def test_no_statement_is_put_together_in_python() -> None:
    made = [
        f"{source.path}:{call.lineno}"
        for source in STORES
        for call in ast.walk(source.tree)
        if isinstance(call, ast.Call) and _runs_sql(call) and not _is_plain(call.args[0])
    ]

    assert made == []


def _runs_sql(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in RUNS_SQL and bool(call.args)


def _is_plain(text: ast.expr) -> bool:
    return isinstance(text, ast.Constant | ast.Name | ast.Attribute | ast.Subscript | ast.Starred)


def test_no_query_is_empty_or_holds_two_statements() -> None:
    for queries in (SQLITE, POSTGRES):
        assert [name for name, text in queries.items() if not text or ";" in text] == []


def test_queries_are_read_without_their_comments() -> None:
    text = "-- name: one\n-- Index: primary key.\nSELECT 1;\n\n-- name: two\nSELECT\n    2;\n"

    assert parse_queries(text) == {"one": "SELECT 1", "two": "SELECT\n    2"}
