"""JSON as events, so that its problems have lines like those of YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tidemill.sdk.documents import Closing, Event, Opening, Scalar, refuse

_TOKEN = re.compile(r'(\n)|([{\[])|([}\]])|("(?:[^"\\]|\\.)*")|([^\s:,{}\[\]"]+)')
_INTEGER_CHARACTERS_MAX = 300


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _INTEGER_CHARACTERS_MAX else float(digits)


_DECODER = json.JSONDecoder(parse_int=_integer)


def json_events(text: str) -> Iterator[Event]:
    """The events of a JSON text; a syntax error names line and column."""
    _check_syntax(text)
    line = 1
    for newline, opening, closing, string, scalar in _TOKEN.findall(text):
        if newline:
            line += 1
        elif opening:
            yield Opening(line, opening == "{")
        elif closing:
            yield Closing(line)
        else:
            yield Scalar(line, _DECODER.decode(string or scalar))


def _check_syntax(text: str) -> None:
    try:
        _DECODER.decode(text)
    except json.JSONDecodeError as error:
        reason = f"column {error.colno}: is not JSON: {error.msg}"
        raise refuse(reason, "SYNTAX", error.lineno) from error
    except RecursionError as error:
        raise refuse("is nested too deeply", "TOO_DEEP") from error


__all__ = ["json_events"]
