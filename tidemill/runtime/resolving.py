"""From flags, environment and file to settings in force, each with its origin.

A flag beats the environment, which beats the file, which beats the default. Everything that is
wrong is told at once, and where it was said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.problems import did_you_mean
from tidemill.runtime.setting_kinds import read_texts, read_toml
from tidemill.runtime.setting_rows import Setting
from tidemill.runtime.settings import SETTINGS, Settings, settings_of

CONFIG = "tidemill.toml"
CONFIG_VARIABLE = "TIDEMILL_CONFIG"
CONFIG_BYTES_MAX = 1_048_576
DEFAULT = "default"


class Given(NamedTuple):
    """A value and the place that says it."""

    value: Any
    place: str  # for messages: --slots, TIDEMILL_SLOTS, tidemill.toml: slots
    origin: str  # for listings


@dataclass(frozen=True, slots=True)
class Resolution:
    """Settings in force, and where each comes from."""

    role: str | None
    settings: Settings
    origins: Mapping[str, str]


def resolve(
    role: str | None,
    flags: Mapping[str, Sequence[str]],
    environ: Mapping[str, str],
    config: str | None = None,
) -> Resolution:
    """The settings of a role; InvalidInput with every problem found.

    `flags` has the texts given on the command line by name of setting, `config` the file of
    --config. The environment may name another file, or none by an empty name.
    """
    problems: list[Problem] = []
    given = {
        **_from_file(_config_path(config, environ), problems),
        **_from_environ(environ, problems),
        **_from_flags(role, flags, problems),
    }
    values = {one.name: one.default_for(role) for one in SETTINGS.values()}
    # What other roles use may be in the same file: it is checked, and not in force here.
    own = {one.name for one in settings_of(role)}
    problems += _alone(given, own)
    values |= {name: found.value for name, found in given.items() if name in own}
    try:
        settings = Settings(**values)
    except InvalidInput as error:
        problems += [_placed(problem, given) for problem in error.problems]
    if problems:
        raise InvalidInput(problems)
    origins = {name: given[name].origin if name in given else DEFAULT for name in own}
    return Resolution(role, settings, origins)


def _config_path(config: str | None, environ: Mapping[str, str]) -> Path | None:
    named = config if config is not None else environ.get(CONFIG_VARIABLE)
    if named is not None:
        return Path(named).expanduser() if named else None
    return Path(CONFIG) if Path(CONFIG).is_file() else None


def _from_flags(
    role: str | None, flags: Mapping[str, Sequence[str]], problems: list[Problem]
) -> dict[str, Given]:
    given: dict[str, Given] = {}
    for name, texts in flags.items():
        one, option = SETTINGS[name], SETTINGS[name].option_for(role)
        try:
            value = read_texts(one.kind, texts)
        except ValueError as error:
            problems.append(Problem(path=option, message=str(error), code="flag"))
        else:
            given[name] = Given(value, option, f"flag {option}")
    return given


def _from_environ(environ: Mapping[str, str], problems: list[Problem]) -> dict[str, Given]:
    given: dict[str, Given] = {}
    for one in SETTINGS.values():
        text = environ.get(one.variable)
        if not text:
            continue  # an empty variable says nothing, as shells go
        try:
            value = read_texts(one.kind, [text])
        except ValueError as error:
            message = "cannot be read" if one.secret else str(error)
            problems.append(Problem(path=one.variable, message=message, code="environment"))
        else:
            given[one.name] = Given(value, one.variable, f"env {one.variable}")
    return given


def _from_file(path: Path | None, problems: list[Problem]) -> dict[str, Given]:
    given: dict[str, Given] = {}
    for name, value in _read_file(path, problems).items():
        place = f"{path}: {name}"
        try:
            one = _known(name)
            given[name] = Given(read_toml(one.kind, value), place, f"file {path}:{name}")
        except ValueError as error:
            problems.append(Problem(path=place, message=str(error), code="file"))
    return given


def _known(name: str) -> Setting:
    if name not in SETTINGS:
        known = [one.name for one in SETTINGS.values() if one.option]
        hint = did_you_mean(name, known)
        raise ValueError(f"is no setting{hint or '; `tidemill config` lists them'}")
    if not SETTINGS[name].option:
        raise ValueError(f"does not belong in a file: use {SETTINGS[name].variable}")
    return SETTINGS[name]


def _read_file(path: Path | None, problems: list[Problem]) -> dict[str, Any]:
    if path is None:
        return {}
    import tomllib

    try:
        with path.open("rb") as file:
            data = file.read(CONFIG_BYTES_MAX + 1)
        if len(data) > CONFIG_BYTES_MAX:
            raise ValueError(f"is larger than {CONFIG_BYTES_MAX:,} bytes")
        return tomllib.loads(data.decode())
    except OSError as error:
        message = f"cannot be read: {error.strerror}; name another file with --config"
    except ValueError as error:  # also what TOML and UTF-8 do not allow
        message = f"is not TOML: {error}"
    problems.append(Problem(path=str(path), message=message, code="file"))
    return {}


def _alone(given: Mapping[str, Given], own: set[str]) -> list[Problem]:
    """What is wrong with values that are not in force here, each by itself."""
    return [
        Problem(path=found.place, message=complaint, code="range")
        for name, found in given.items()
        if name not in own and (complaint := SETTINGS[name].complaint(found.value)) is not None
    ]


def _placed(problem: Problem, given: Mapping[str, Given]) -> Problem:
    """Name the place that said it; a setting that nobody gave is named by its flag."""
    found = given.get(problem.path)
    place = found.place if found is not None else SETTINGS[problem.path].option
    return Problem(path=place, message=problem.message, code=problem.code)
