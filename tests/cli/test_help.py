"""What the first page says, and that every command can be asked for help."""

from __future__ import annotations

import importlib
import re

import click
import pytest

from tests.cli.conftest import Cli
from tidemill.cli.main import COMMANDS, SECTIONS, commands


def test_commands_stand_under_headings(cli: Cli) -> None:
    page = cli("--help").out

    headings = re.findall(r"^(\w[\w ]+):$", page, re.MULTILINE)
    assert headings == ["Options", *SECTIONS]
    assert headings[1:] == [
        "Run on this machine",
        "Start and steer",
        "Look",
        "Servers and identity",
        "Serve",
    ]
    assert all(re.search(rf"^  {name} ", page, re.MULTILINE) for name in COMMANDS)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_and_its_parts_have_help(cli: Cli, name: str) -> None:
    for path in _paths(name):
        ended = cli(*path, "--help")

        assert ended.code == 0
        assert re.search(r"\n\n  \w", ended.out), f"{path} says nothing about itself"
        assert max(map(len, ended.out.splitlines())) <= 80


WITHOUT_JSON = {"up", "api", "scheduler", "worker", "notifier", "completion"}
"""Those that serve until they are stopped, and what a shell reads."""

EXAMPLES = (
    "run start resume cancel pause continue retry workers queues api scheduler worker notifier init"
    " migrate,users create,keys create,keys revoke,secrets set,context add,service-accounts create"
)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITHOUT_JSON])
def test_every_command_prints_json_too(name: str) -> None:
    for path in _paths(name):
        command = _find(path)
        if not isinstance(command, click.Group):
            assert "--json" in {option for one in command.params for option in one.opts}, path


def test_help_has_examples(cli: Cli) -> None:
    single, *parts = EXAMPLES.split(",")

    for path in (*map(str.split, single.split()), *map(str.split, parts)):
        assert f"  tidemill {' '.join(path)}" in cli(*path, "--help").out.partition("\n\n")[2]


def test_only_who_has_a_mode_of_authentication_explains_it(cli: Cli) -> None:
    up, scheduler = cli("up", "--help").out, cli("scheduler", "--help").out

    assert ("single-user" in up, "shared-token" in up) == (True, False)
    assert ("single-user" in scheduler, "shared-token" in scheduler) == (False, True)


def test_completion_is_there_for_three_shells(cli: Cli) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_TIDEMILL_COMPLETE" in cli("completion", shell).out


def test_an_unknown_command_is_refused(cli: Cli) -> None:
    ended = cli("rnus")

    assert ended.code == 2
    assert "No such command 'rnus', did you mean 'runs'" in ended.err


def test_an_unknown_option_is_refused_with_close_names_alone(cli: Cli) -> None:
    near, far = cli("runs", "--stroe", "x"), cli("runs", "--wrong")

    assert (near.code, far.code) == (2, 2)
    assert "No such option '--stroe'. Did you mean '--store'?" in near.err
    assert "No such option '--wrong'." in far.err
    assert "mean" not in far.err


def _find(path: list[str]) -> click.Command:
    found: click.Command = commands
    for name in path:
        assert isinstance(found, click.Group)
        next_one = found.get_command(click.Context(found), name)
        assert next_one is not None
        found = next_one
    return found


def _paths(name: str) -> list[list[str]]:
    module, _, attribute = COMMANDS[name].target.partition(":")
    command = getattr(importlib.import_module(f"tidemill.cli.{module}"), attribute)
    below = list(command.commands) if isinstance(command, click.Group) else []
    return [[name], *([name, part] for part in below)]
