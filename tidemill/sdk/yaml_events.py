"""YAML as events, with the few plain types of JSON.

Only `true`, `false`, `null`, `~` and JSON's numbers are more than text: `yes`, `on`, dates, times
and numbers with a leading zero stay the text they look like. Tags that would make objects are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from tidemill.sdk.documents import Alias, Closing, Event, Opening, Scalar, refuse

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None} | {
    word: value
    for value, words in ((True, ("true", "True", "TRUE")), (False, ("false", "False", "FALSE")))
    for word in words
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"([-+]?)\.(inf|Inf|INF)|()\.(nan|NaN|NAN)")
_INTEGER_CHARACTERS_MAX = 300
_PREFIX = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(_PREFIX + name for name in ("null", "bool", "int", "float", "map", "seq"))


def yaml_events(text: str) -> Iterator[Event]:
    """The events of the single document in the text; a syntax error names line and column."""
    documents = 0
    try:
        for event in yaml.parse(text, Loader=_Loader):
            documents += isinstance(event, yaml.DocumentStartEvent)
            if documents > 1:
                reason = "a second document begins here, keep one workflow per file"
                raise refuse(reason, "SYNTAX", _line(event))
            if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                yield _event(event)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text) from error
    except yaml.YAMLError as error:  # a character that YAML does not allow
        reason = " ".join(str(error).split())
        raise refuse(f"is not YAML: {reason}", "SYNTAX") from error


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _event(event: Any) -> Event:
    line = _line(event)
    if isinstance(event, yaml.AliasEvent):
        return Alias(line, str(event.anchor))
    if isinstance(event, yaml.ScalarEvent):
        value, is_plain = _value(event, line)
        return Scalar(line, value, event.anchor, is_plain and value == "<<")
    if isinstance(event, yaml.CollectionStartEvent):
        _check_tag(event.tag, line)
        return Opening(line, isinstance(event, yaml.MappingStartEvent), event.anchor)
    return Closing(line)


def _value(event: Any, line: int) -> tuple[Any, bool]:
    if event.tag == _PREFIX + "str":
        return event.value, False
    _check_tag(event.tag, line)
    is_plain = event.implicit[0] or event.tag in _PLAIN_TAGS
    return (resolve(event.value) if is_plain else event.value), is_plain


def _check_tag(tag: str | None, line: int) -> None:
    if tag is not None and tag != "!" and tag not in _PLAIN_TAGS:
        name = tag.replace(_PREFIX, "!!")
        raise refuse(f"the tag {name} is not allowed, write plain values", "BAD_TAG", line)


def resolve(text: str) -> Any:
    """What an unquoted word of YAML stands for."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= _INTEGER_CHARACTERS_MAX else float(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", ""))
    return text


def _syntax_error(error: yaml.MarkedYAMLError, text: str) -> Exception:
    mark = error.problem_mark
    assert mark is not None, "a syntax error has a place"
    reason = ", ".join(part for part in (error.context, error.problem) if part)
    if text.split("\n")[mark.line][mark.column :].startswith("\t"):
        reason = "a tab: indent with spaces"
    return refuse(f"column {mark.column + 1}: is not YAML: {reason}", "SYNTAX", mark.line + 1)


__all__ = ["resolve", "yaml_events"]
