"""What a worker could import, and what it therefore offers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemill.domain.errors import InvalidInput
from tidemill.runtime.addresses import parse_store
from tidemill.runtime.settings import Settings
from tidemill.runtime.worker_parts import worker_config
from tidemill.worker.library import Library, UnknownFunction, load_library

CODE = """
import os
from json import dumps
from neighbour import helper
from tidemill.sdk.authored import AuthoredTask

class Task(AuthoredTask):
    def __init__(self, function):
        self.function = function
        self.name = f"{function.__module__}:{function.__name__}"

@Task
def decorated(): return 1

def plain(): return 2
async def later(): return 3
def _own(): return 4
quick = lambda: 5
NUMBER = 6

class Shop:
    @staticmethod
    def sell(): return 7
"""


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    before, path = set(sys.modules), list(sys.path)
    (tmp_path / "offering_code.py").write_text(CODE)
    (tmp_path / "neighbour.py").write_text("def helper(): return 0\n")
    yield load_library([str(tmp_path / "offering_code.py")])
    sys.path[:] = path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_worker_offers_what_its_modules_define_and_nothing_they_import(library: Library) -> None:
    names = [name.partition(":")[2] for name in library.names()]

    assert names == ["Shop.sell", "_own", "decorated", "later", "plain", "quick"]


def test_everything_that_is_offered_can_be_found(library: Library) -> None:
    found = {name: library.find(name) for name in library.names()}

    assert found["offering_code:decorated"]() == 1
    assert found["offering_code:Shop.sell"]() == 7
    with pytest.raises(UnknownFunction):
        library.find("offering_code:helper")


def a_worker(**fields: object) -> Settings:
    return Settings(store=parse_store("x.db"), connect=("127.0.0.1:1",), **fields)  # type: ignore[arg-type]


def test_of_python_a_worker_offers_its_functions_only(library: Library) -> None:
    config = worker_config(a_worker(), ["python", "shell"], library, {})

    assert config.functions == {"python": library.names()}


def test_a_worker_without_imports_offers_no_python() -> None:
    assert worker_config(a_worker(), ["python", "shell"], Library(), {}).functions == {"python": ()}


def test_a_worker_with_nothing_to_offer_is_refused() -> None:
    with pytest.raises(InvalidInput, match="--executors: offer nothing: python needs functions"):
        worker_config(a_worker(), ["python"], Library(), {})


@pytest.mark.parametrize(
    ("count", "fields", "message"),
    [
        (10_001, {}, "has 10001 functions, and a worker may offer 10000: import fewer"),
        (1_001, {"via": "redis://x"}, "and a worker may offer 1000 over a broker"),
    ],
)
def test_offers_are_bounded(
    count: int, fields: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tuple(f"flow:f{n}" for n in range(count))
    monkeypatch.setattr(Library, "names", lambda _: names)

    with pytest.raises(InvalidInput, match=message):
        worker_config(a_worker(**fields), ["python"], Library(), {})
