"""The numbers to hold. They are shown beside what was measured; nothing fails by them."""

from __future__ import annotations

from dataclasses import dataclass

from bench.results import Result


@dataclass(frozen=True)
class Bar:
    """A bound that a metric must not pass."""

    most: float

    def holds(self, value: float) -> bool:
        """Whether a median is on the right side."""
        return value <= self.most

    def __str__(self) -> str:
        return f"≤ {self.most:g}"


BARS: dict[tuple[str, str], Bar] = {
    ("chain", "growth"): Bar(2.0),
    ("fan", "growth"): Bar(2.0),
    ("recover", "seconds_to_running_again"): Bar(10.0),
    ("footprint", "import_ms"): Bar(150.0),
    ("footprint", "help_ms"): Bar(400.0),
    ("footprint", "install_mb"): Bar(80.0),
    ("footprint", "install_with_api_mb"): Bar(80.0),
}


def bar_of(result: Result) -> Bar | None:
    """The bar of a row, where there is one."""
    return BARS.get((result.workload, result.metric))
