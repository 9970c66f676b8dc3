"""Which types fit which: sure, or silent."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

from tidemill.authoring.fitting import fits


class Colour(enum.Enum):
    """An enum."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A dataclass."""

    x: int
    y: int = 0


class Spot(msgspec.Struct):
    """A Struct that fits it."""

    x: float


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    """A Struct that wants nothing else."""

    x: int


class Model(pydantic.BaseModel):
    """A model of pydantic."""

    x: int


class Keys(TypedDict):
    """A dict with known keys."""

    x: int
    z: NotRequired[str]


class Pair(NamedTuple):
    """A list in JSON."""

    a: int
    b: str


class Tree(msgspec.Struct):
    """Holds itself."""

    children: list[Tree]


POSITIVE = Annotated[int, msgspec.Meta(gt=0)]

FIT: list[tuple[Any, Any]] = [
    (int, float),
    (int, Any),
    (Any, int),
    (int, POSITIVE),
    (POSITIVE, int),
    (int, int | None),
    (None, int | None),
    (str, datetime.datetime),
    (datetime.date, str),
    (uuid.UUID, str),
    (float, decimal.Decimal),
    (Colour, str),
    (str, Colour),
    (Literal["red"], Colour),
    (list[int], tuple[int, ...]),
    (set[int], list[float]),
    (list, list[int]),
    (tuple[int, str], Pair),
    (dict[str, int], Point),
    (Point, dict[str, int]),
    (Point, Spot),
    (Point, Model),
    (Model, Point),
    (Model, Keys),
    (Keys, Spot),
    (Closed, Point),
    (Tree, Tree),
    (list[Tree], list[dict[str, Any]]),
    (Path, int),
    (int, Path),
    (Sequence[int], list[int]),
    (Mapping[str, int], Point),
    (dict[str, Any], dict[str, int]),
]
MISFIT: list[tuple[Any, Any]] = [
    (int, str),
    (str, int),
    (float, int),
    (bool, int),
    (int | None, int),
    (int | str, int),
    (None, int),
    (Literal["a"], Literal["b"]),
    (Literal[1], str),
    (Colour, int),
    (list[int], list[str]),
    (list[int], dict[str, int]),
    (list[int], int),
    (tuple[int, str], tuple[str, int]),
    (tuple[int, str], tuple[int]),
    (dict[str, int], list[int]),
    (Point, int),
    (Spot, Point),
    (Point, dict[str, str]),
    (Point, Closed),
    (Model, Colour),
    (list[Point], list[Colour]),
    (Keys, Tree),
]


@pytest.mark.parametrize(("given", "wanted"), FIT, ids=str)
def test_what_may_fit_fits(given: Any, wanted: Any) -> None:
    assert fits(given, wanted)


@pytest.mark.parametrize(("given", "wanted"), MISFIT, ids=str)
def test_what_certainly_does_not_fit_is_found(given: Any, wanted: Any) -> None:
    assert not fits(given, wanted)
