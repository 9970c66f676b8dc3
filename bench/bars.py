"""The numbers to hold. They are shown beside what was measured; nothing fails by them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.results import Result


@dataclass(frozen=True)
class Bar:
    """Bounds that a metric must not pass."""

    most: float = math.inf
    least: float = -math.inf

    def holds(self, value: float) -> bool:
        """Whether a median is on the right side."""
        return self.least <= value <= self.most

    def __str__(self) -> str:
        return f"≤ {self.most:g}" if self.least == -math.inf else f"≥ {self.least:g}"


BARS: dict[tuple[str, str], Bar] = {
    ("chain", "growth"): Bar(2.0),
    ("fan", "growth"): Bar(2.0),
    ("recover", "seconds_to_running_again"): Bar(10.0),
    ("kills", "seconds_p99"): Bar(10.0),
    ("failover", "pause_p99"): Bar(8.0),
    ("scale", "ratio"): Bar(least=0.8),
    ("submit", "submits_per_second"): Bar(least=6_000.0),
    ("idle", "scheduler_queries_per_second"): Bar(5.0),
    ("footprint", "import_ms"): Bar(150.0),
    ("footprint", "help_ms"): Bar(400.0),
    ("footprint", "install_mb"): Bar(80.0),
    ("footprint", "install_with_api_mb"): Bar(80.0),
}


def bar_of(result: Result) -> Bar | None:
    """The bar of a row, where there is one."""
    return BARS.get((result.workload, result.metric))
