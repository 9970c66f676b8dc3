"""Words and numbers as people read them, with nothing in them that steers a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from tidemill.domain.identifiers import SECOND, Moment

# Control characters, and those that turn the direction of text: what a terminal or an eye would
# obey instead of showing. Line breaks and tabs are left for `printable_block`.
_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_STEERING_BUT_LAYOUT = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)

LAST_COLUMN_MIN = 21
NAME_COLUMN_MIN = 8


def printable(text: str) -> str:
    """One line of text from anywhere, safe to print: what would steer a terminal is spelled out."""
    return _STEERING.sub(_spell, text)


def printable_block(text: str) -> str:
    """Like `printable`, for text of several lines."""
    return _STEERING_BUT_LAYOUT.sub(_spell, text.replace("\r\n", "\n"))


def shortened(text: str, characters_max: int) -> str:
    """The text, or its beginning and how much is missing."""
    if len(text) <= characters_max:
        return text
    return f"{text[:characters_max]}… ({len(text) - characters_max:,} characters more)"


def first_line(text: str, characters_max: int = 120) -> str:
    """What fits into one line of a list."""
    line = printable(text.strip().partition("\n")[0])
    return cut(line, characters_max)


def json_text(data: bytes, characters_max: int) -> str:
    """Stored JSON, indented, for people."""
    pretty = msgspec.json.format(data, indent=2).decode("utf-8", "replace")
    return printable_block(shortened(pretty, characters_max))


def duration(micros: int) -> str:
    """A span of time with as many digits as matter."""
    seconds = max(0, micros) / SECOND
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"


def clock_time(moment: Moment) -> str:
    """A time of day, here, with milliseconds."""
    return _local(moment).strftime("%H:%M:%S.%f")[:-3]


def date_time(moment: Moment) -> str:
    """A day and a time, here."""
    return _local(moment).strftime("%Y-%m-%d %H:%M:%S")


def short_date_time(moment: Moment) -> str:
    """A day of this year or the last, and a time, here."""
    return _local(moment).strftime("%m-%d %H:%M")


def short_id(run_id: str) -> str:
    """The end of a run id, which differs between runs that began together."""
    return run_id[-8:]


def plural(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listing(names: Sequence[str], names_max: int = 3) -> str:
    """A few names, and how many more there are."""
    shown = ", ".join(printable(name) for name in names[:names_max])
    more = len(names) - names_max
    return f"{shown} and {more:,} more" if more > 0 else shown


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    *,
    names: int = 0,
) -> list[str]:
    """Columns aligned with blanks, cut to fit the width if there is one.

    The last column, which tells the most words, gives way first; then column number `names`.
    """
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    if width is not None:
        widths = _fitted(widths, width - 2 * (len(widths) - 1), names)
    lines = (
        "  ".join(
            cut(cell, wide).ljust(wide) for cell, wide in zip(row, widths, strict=True)
        ).rstrip()
        for row in (headings, *rows)
    )
    return [line if width is None else cut(line, width) for line in lines]


def _fitted(widths: list[int], room: int, names: int) -> list[int]:
    *columns, last = widths
    kept = min(last, LAST_COLUMN_MIN)
    too_much = sum(columns) + kept - room
    columns[names] -= max(0, min(columns[names] - NAME_COLUMN_MIN, too_much))
    return [*columns, max(1, min(last, room - sum(columns)))]


def cut(text: str, characters_max: int) -> str:
    """The text, or as much of it as fits with an ellipsis."""
    return text if len(text) <= characters_max else text[: max(0, characters_max - 1)] + "…"


def _local(moment: Moment) -> datetime:
    return datetime.fromtimestamp(moment / SECOND, tz=UTC).astimezone()


def _spell(found: re.Match[str]) -> str:
    character = found.group(0)
    return f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"
