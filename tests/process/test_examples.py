"""The examples that need nothing but Tidemill, run as their comments say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.commands import Shell

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("functions.yaml", '"greeting": "Good morning, the."'),
        ("heartbeat.yaml", '"5 parts, attempt 2"'),
        ("flow.py", "18"),
        ("hello.yaml", "succeeded"),
        ("retries.yaml", "(attempt 3)"),
        ("shell.yaml", "output"),
    ],
)
def test_an_example_runs_to_its_end(shell: Shell, name: str, words: str) -> None:
    ended = shell.run("run", str(EXAMPLES / name))

    assert ended.code == 0, ended.out + ended.err
    assert words in ended.out


def test_the_silent_attempt_of_the_heartbeat_example_is_explained(shell: Shell) -> None:
    shell.run("run", str(EXAMPLES / "heartbeat.yaml"))

    shown = shell.run("show", "latest", "copy").out

    assert "no heartbeat for 1 s" in shown
    assert "no sign of life from here on" in shown


def test_the_inputs_example_takes_its_input(shell: Shell) -> None:
    ended = shell.run("run", str(EXAMPLES / "inputs.yaml"), "--input", '{"customer": "Ada"}')

    assert ended.code == 0, ended.out + ended.err
    assert "Hello Ada 7" in ended.out
