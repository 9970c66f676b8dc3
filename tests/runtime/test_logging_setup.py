"""What roles log: a line each, and no line over and over."""

from __future__ import annotations

import logging

from tests.runtime.test_reaching import ImpatientClock
from tidemill.runtime.logging_setup import REPEAT_SECONDS, OneLine, SaidBefore


def a_record(text: str, error: Exception | None = None) -> logging.LogRecord:
    raised = None if error is None else (type(error), error, None)
    return logging.LogRecord("tidemill.x", logging.WARNING, "x.py", 1, text, (), raised)


def test_a_record_is_one_line_whatever_it_holds() -> None:
    record = a_record("it failed\n badly", ValueError("no\nluck"))

    line = OneLine(journal=False).format(record)

    assert line.endswith(r" warning it failed badly: ValueError('no\nluck')")
    assert OneLine(journal=True).format(a_record("away")) == "<4>away"


def test_the_same_line_is_no_news_for_a_while() -> None:
    clock = ImpatientClock()
    said = SaidBefore(clock)

    first = [said.filter(a_record("away")), said.filter(a_record("away"))]
    clock.seconds += REPEAT_SECONDS

    assert first == [True, False]
    assert said.filter(a_record("away"))
    assert said.filter(a_record("back"))
