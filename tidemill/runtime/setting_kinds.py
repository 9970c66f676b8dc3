"""The kinds of values that settings have: read from text, from TOML, and shown to people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tidemill.domain.urls import mask_url
from tidemill.runtime.addresses import StoreAddress, parse_store

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class Kind(NamedTuple):
    """How values of one kind are read; ValueError says what is wrong with one."""

    word: str  # what a person calls it
    from_text: Callable[[str], Any]
    toml: tuple[type, ...]  # the natural types in a file
    from_toml: Callable[[Any], Any]
    many: bool = False  # a flag may be repeated


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text.strip()


def _path(text: str) -> Path:
    return Path(_text(text)).expanduser()


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"must be a whole number, not {text!r}") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"must be a number, not {text!r}") from None


def _truth(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError(f"must be true or false, not {text!r}")
    return word in _TRUE


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _texts(values: list[Any]) -> tuple[str, ...]:
    wrong = [value for value in values if not isinstance(value, str) or not value]
    if wrong:
        raise ValueError(f"must hold texts only, not {wrong[0]!r}")
    return tuple(values)


def _pairs(text: str) -> dict[str, str]:
    return dict(_pair(part) for part in _list(text))


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise ValueError(f"{text!r} is not NAME=VALUE")
    return name, value


def _map(values: Mapping[str, Any]) -> dict[str, str]:
    wrong = [name for name, value in values.items() if not isinstance(value, str)]
    if wrong:
        raise ValueError(f'{wrong[0]} must be a text: write {wrong[0]} = "{values[wrong[0]]}"')
    return dict(values)


TEXT = Kind("a text", _text, (str,), _text)
STORE = Kind("a text", lambda text: parse_store(text.strip()), (str,), parse_store)
WHOLE = Kind("a whole number", _whole, (int,), int)
NUMBER = Kind("a number", _number, (int, float), float)
TRUTH = Kind("true or false", _truth, (bool,), bool)
PATH = Kind("a path", _path, (str,), _path)
LIST = Kind("a list", _list, (list,), _texts, many=True)
MAP = Kind("a table", _pairs, (dict,), _map, many=True)

KINDS: Mapping[str, Kind] = {
    "str": TEXT,
    "str | None": TEXT,
    "StoreAddress": STORE,
    "int": WHOLE,
    "float": NUMBER,
    "bool": TRUTH,
    "Path | None": PATH,
    "tuple[str, ...]": LIST,
    "Mapping[str, str]": MAP,
}
"""By the annotation of a field of Settings."""


def read_toml(kind: Kind, value: Any) -> Any:
    """A value of a TOML file; ValueError says which type it should have."""
    if not isinstance(value, kind.toml) or (isinstance(value, bool) and kind is not TRUTH):
        raise ValueError(f"must be {kind.word}, not {mask_url(repr(value))}")
    return kind.from_toml(value)


def read_texts(kind: Kind, texts: Iterable[str]) -> Any:
    """A value given as one or more texts, on the command line or in the environment."""
    return kind.from_text(",".join(texts) if kind.many else next(iter(texts)))


def spelled(value: Any) -> list[str]:
    """A value as the texts of a flag, which `read_texts` reads back."""
    match value:
        case None:
            return []
        case tuple():
            return list(value)
        case dict():
            return ["=".join(pair) for pair in value.items()]
        case _:
            return [str(value)]


def shown(value: Any) -> str:
    """A value as people may see it: as they would type it, without passwords."""
    match value:
        case None | () | "":
            return "-"
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}"
        case tuple():
            return ",".join(mask_url(one) for one in value)
        case dict():
            return ",".join("=".join(pair) for pair in value.items()) or "-"
        case StoreAddress():
            return str(value)
        case _:
            return mask_url(str(value))


def plain(value: Any) -> Any:
    """A value as programs may see it: what JSON has, without passwords."""
    match value:
        case None | bool() | int() | float():
            return value
        case tuple():
            return [mask_url(one) for one in value]
        case dict():
            return dict(value)
        case _:
            return shown(value)
