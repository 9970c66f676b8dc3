"""A workflow written in Python: one task per region, and one that sums up.

tidemill run examples/flow.py
"""

from __future__ import annotations

from tidemill import RetryPolicy, Source, TaskSpec, Timeouts, Workflow

REGIONS = ("north", "east", "south", "west")


def measure(region: str) -> int:
    """Stand in for something that takes long."""
    return len(region)


def add_up(**levels: int) -> int:
    """Take one argument per region."""
    return sum(levels.values())


workflow = Workflow(
    name="flow",
    tasks=(
        *(
            TaskSpec(
                id=region,
                executor="python",
                params={"function": "flow:measure"},
                inputs={"region": region},
                retry=RetryPolicy(max_retries=5),
                timeouts=Timeouts(attempt_seconds=60),
            )
            for region in REGIONS
        ),
        TaskSpec(
            id="total",
            executor="python",
            params={"function": "flow:add_up"},
            inputs={region: Source(result=region) for region in REGIONS},
        ),
    ),
    output="total",
)
