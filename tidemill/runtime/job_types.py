"""Which types of jobs may be asked for: names only, nothing that would run them is imported."""

from __future__ import annotations

from importlib.metadata import entry_points

GROUP = "tidemill.job_types"


def job_types() -> tuple[str, ...]:
    """The types that are installed; the executor of the same name does the work."""
    return tuple(sorted(one.name for one in entry_points(group=GROUP)))
