"""Loads SQL from files in which each query stands under a `-- name:` line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

NAME_MARK = "-- name:"
TURNED_MARK = "-- turned:"
"""Under a name: a second name for the same query in the opposite order."""

_ANY_ROW = re.compile(r"\((?:\?, )*\?\)")
"""Parameters without numbers: a query that has such a row among its VALUES takes more of them."""


def load_queries(package: str) -> Mapping[str, str]:
    """All queries of the `queries` folder of a package, by name; a name stands only once."""
    queries: dict[str, str] = {}
    folder = files(package) / "queries"
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if not file.name.endswith(".sql"):
            continue
        for name, text in parse_queries(file.read_text(encoding="utf-8")).items():
            assert name not in queries, f"{file.name}: the query {name} is there twice"
            queries[name] = text
    return queries


def parse_queries(text: str) -> dict[str, str]:
    """The queries of one file, without their comments: databases need not parse them each time."""
    queries: dict[str, list[str]] = {}
    turned: dict[str, str] = {}
    lines: list[str] = []
    name = ""
    for line in text.splitlines():
        if line.startswith(NAME_MARK):
            name = line.removeprefix(NAME_MARK).strip()
            assert name not in queries, f"the query {name} is there twice"
            lines = queries[name] = []
        elif line.startswith(TURNED_MARK):
            turned[line.removeprefix(TURNED_MARK).strip()] = name
        elif line.strip() and not line.lstrip().startswith("--"):
            lines.append(line)
    texts = {name: "\n".join(lines).strip().rstrip(";") for name, lines in queries.items()}
    return texts | {name: texts[of].replace(" DESC", " ASC") for name, of in turned.items()}


@cache
def takes_many(query: str) -> bool:
    """Whether it can be run for many rows at once."""
    return _ANY_ROW.search(query) is not None


@cache
def with_rows(query: str, count: int) -> str:
    """The same query for so many rows."""
    return _ANY_ROW.sub(lambda row: ", ".join([row.group()] * count), query)
