"""Draws charts as SVG: the same numbers give the same bytes, and nothing needs installing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TypeAlias

from bench.table import number

WIDTH = 760
COLOURS = ("#1f6feb", "#d9822b", "#2da44e", "#8250df", "#6e7781")
INK, FAINT = "#24292f", "#d0d7de"
TITLE_HEIGHT = 34
LEGEND_HEIGHT = 22
ROW_HEIGHT = 24
LABELS_WIDTH = 210
VALUES_WIDTH = 110
PLOT_HEIGHT = 260
MARGIN_LEFT, MARGIN_RIGHT = 70, 30

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class BarChart:
    """Lying bars, one under the other; bars of one series share a colour."""

    title: str
    bars: Sequence[tuple[str, str, float]]  # label, series, value
    unit: str
    logarithmic: bool = False  # where the longest would leave nothing of the others

    def svg(self) -> str:
        """The whole file."""
        series = list(dict.fromkeys(name for _, name, _ in self.bars))
        top = TITLE_HEIGHT + (LEGEND_HEIGHT if len(series) > 1 else 0)
        canvas = Canvas(self.title, top + ROW_HEIGHT * len(self.bars) + 14)
        if len(series) > 1:
            canvas.legend(series)
        for place, (label, name, value) in enumerate(self.bars):
            y, length = top + place * ROW_HEIGHT, self._length(value)
            canvas.text(LABELS_WIDTH - 8, y + 16, label, anchor="end")
            canvas.bar(LABELS_WIDTH, y + 4, length, series.index(name))
            canvas.text(LABELS_WIDTH + length + 6, y + 16, f"{number(value)} {self.unit}".rstrip())
        return canvas.svg()

    def _length(self, value: float) -> float:
        values = [one for _, _, one in self.bars]
        longest, room = max(values) or 1.0, WIDTH - LABELS_WIDTH - VALUES_WIDTH
        if not self.logarithmic or min(values) <= 0:
            return room * value / longest
        origin = min(values) / 2
        return room * math.log(value / origin) / math.log(longest / origin)


@dataclass(frozen=True)
class LineChart:
    """Lines over sizes; y begins at nought, so that growth looks as it is."""

    title: str
    lines: Mapping[str, Sequence[Point]]
    x_label: str
    y_label: str
    logarithmic: bool = True  # from left to right

    def svg(self) -> str:
        """The whole file."""
        points = [point for line in self.lines.values() for point in line]
        scale = Scale.over(points, logarithmic=self.logarithmic)
        canvas = Canvas(self.title, scale.bottom + 48)
        canvas.legend(list(self.lines))
        for y in (scale.y_max * part / 4 for part in range(5)):
            canvas.rule(MARGIN_LEFT, scale.y(y), WIDTH - MARGIN_RIGHT)
            canvas.text(MARGIN_LEFT - 8, scale.y(y) + 4, number(y), anchor="end")
        for x in sorted({x for x, _ in points}):
            canvas.text(scale.x(x), scale.bottom + 18, number(x), anchor="middle")
        canvas.text(WIDTH / 2, scale.bottom + 38, self.x_label, anchor="middle")
        canvas.text(WIDTH - MARGIN_RIGHT, TITLE_HEIGHT + 12, self.y_label, anchor="end")
        for place, line in enumerate(self.lines.values()):
            canvas.line([(scale.x(x), scale.y(y)) for x, y in sorted(line)], place)
        return canvas.svg()


@dataclass(frozen=True)
class Scale:
    """Where a point lies on the paper."""

    x_min: float
    x_max: float
    y_max: float
    logarithmic: bool
    top: float = TITLE_HEIGHT + LEGEND_HEIGHT + 10
    bottom: float = TITLE_HEIGHT + LEGEND_HEIGHT + 10 + PLOT_HEIGHT

    @classmethod
    def over(cls, points: Iterable[Point], *, logarithmic: bool) -> Scale:
        """Wide enough for all of them, with a round number on top."""
        xs, ys = zip(*points, strict=True)
        return cls(min(xs), max(xs), _round_up(max(ys)), logarithmic)

    def x(self, value: float) -> float:
        """From left to right."""
        return MARGIN_LEFT + 20 + self._share(value) * (WIDTH - MARGIN_LEFT - MARGIN_RIGHT - 40)

    def _share(self, value: float) -> float:
        if self.x_max == self.x_min:
            return 0.5
        if self.logarithmic:
            return math.log(value / self.x_min) / math.log(self.x_max / self.x_min)
        return (value - self.x_min) / (self.x_max - self.x_min)

    def y(self, value: float) -> float:
        """From the bottom up."""
        return self.bottom - (self.bottom - self.top) * value / self.y_max


@dataclass
class Canvas:
    """Shapes on white paper, which reads on dark pages too."""

    title: str
    height: float
    _shapes: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, *, anchor: str = "start") -> None:
        """Words."""
        place = f'x="{_short(x)}" y="{_short(y)}" text-anchor="{anchor}"'
        self._shapes.append(f"<text {place}>{escape(text)}</text>")

    def bar(self, x: float, y: float, length: float, colour: int) -> None:
        """A lying bar; what is too short to be seen still shows."""
        place = f'x="{_short(x)}" y="{_short(y)}" width="{_short(max(length, 1))}"'
        height = ROW_HEIGHT - 8
        self._shapes.append(f'<rect {place} height="{height}" fill="{_colour(colour)}"/>')

    def rule(self, x: float, y: float, x_end: float) -> None:
        """A faint line across."""
        place = f'x1="{_short(x)}" y1="{_short(y)}" x2="{_short(x_end)}" y2="{_short(y)}"'
        self._shapes.append(f'<line {place} stroke="{FAINT}"/>')

    def line(self, points: Sequence[Point], colour: int) -> None:
        """Points, joined."""
        path = " ".join(f"{_short(x)},{_short(y)}" for x, y in points)
        drawn = f'fill="none" stroke="{_colour(colour)}" stroke-width="2"'
        self._shapes.append(f'<polyline points="{path}" {drawn}/>')
        self._shapes += [
            f'<circle cx="{_short(x)}" cy="{_short(y)}" r="3.5" fill="{_colour(colour)}"/>'
            for x, y in points
        ]

    def legend(self, series: Sequence[str]) -> None:
        """Which colour is what."""
        x = 16.0
        for place, name in enumerate(series):
            square = f'x="{_short(x)}" y="{TITLE_HEIGHT}" width="11" height="11"'
            self._shapes.append(f'<rect {square} fill="{_colour(place)}"/>')
            self.text(x + 16, TITLE_HEIGHT + 10, name)
            x += 40 + 7 * len(name)

    def svg(self) -> str:
        """The whole file."""
        height = _short(self.height)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img" aria-label="{escape(self.title)}" '
            f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}">'
        )
        paper = f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#ffffff"/>'
        title = f'<text x="16" y="22" font-weight="600">{escape(self.title)}</text>'
        return "\n".join([head, paper, title, *self._shapes, "</svg>", ""])


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _round_up(value: float) -> float:
    """To the next of 1, 2, 4, 5, 8 and 10 of its magnitude."""
    if value <= 0:
        return 1.0
    magnitude = 10.0 ** math.floor(math.log10(value))
    return next(step * magnitude for step in (1, 2, 4, 5, 8, 10) if step * magnitude >= value)


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
