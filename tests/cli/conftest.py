"""Commands in this process, each test with a folder and contexts of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from tidemill.cli.main import exit_code

VARIABLES = ("SERVER", "CONTEXT", "NAMESPACE", "API_KEY", "STORE", "CONFIG")

FLOW = """
name: orders
labels: {team: mill}
tasks:
  - {id: pick, executor: noop}
  - {id: ship, executor: noop, depends_on: [pick]}
"""
BROKEN = """
name: broken
tasks:
  - {id: pay, executor: flaky, params: {failure_rate: 1.0}, retry: {max_retries: 0}}
  - {id: thank, executor: noop, depends_on: [pay]}
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


class Cli:
    """`cli("runs", "--json")`, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, typed: str | None = None) -> Ended:
        with CliRunner().isolation(typed) as (out, err, _):
            code = exit_code(arguments)
            return Ended(code, out.getvalue().decode(), err.getvalue().decode())

    def json(self, *arguments: str) -> Any:
        """What a command says with --json."""
        ended = self(*arguments, "--json")
        assert ended.code == 0, ended.err
        return msgspec.json.decode(ended.out)

    def write(self, name: str, text: str) -> str:
        """Put a file into the folder."""
        (self.folder / name).write_text(text)
        return name


@pytest.fixture(scope="session")
def in_folder() -> Iterator[Callable[[Path], Cli]]:
    """Makes a folder the working one, without contexts or variables of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:

        def enter(folder: Path) -> Cli:
            patch.chdir(folder)
            patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
            for name in VARIABLES:
                patch.delenv(f"TIDEMILL_{name}", raising=False)
            return Cli(folder)

        yield enter


@pytest.fixture
def cli(in_folder: Callable[[Path], Cli], tmp_path: Path) -> Cli:
    """Commands in an empty folder."""
    return in_folder(tmp_path)


@pytest.fixture(scope="session")
def used_folder(in_folder: Callable[[Path], Cli], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run that succeeded and one that failed; tests leave it as it is."""
    cli = in_folder(tmp_path_factory.mktemp("used"))
    assert cli("run", cli.write("orders.yaml", FLOW)).code == 0
    assert cli("run", cli.write("broken.yaml", BROKEN)).code == 1
    return cli.folder


@pytest.fixture
def used(in_folder: Callable[[Path], Cli], used_folder: Path) -> Cli:
    """Commands in the folder with two runs."""
    return in_folder(used_folder)
