"""The DAGs that Airflow is measured with; sizes come with the environment."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from airflow.sdk import chain, dag, task

JOBS = int(os.environ["BENCH_PEER_JOBS"])
HOPS = int(os.environ["BENCH_PEER_HOPS"])
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)


@task
def nothing() -> None:
    """A task that does nothing."""


@task
def pass_on(value: int) -> int:
    """A task with a small result."""
    return value + 1


@dag(schedule=None, start_date=BEGIN, catchup=False)
def jobs() -> None:
    """Many tasks at once."""
    for number in range(JOBS):
        nothing.override(task_id=f"job{number}")()


@dag(schedule=None, start_date=BEGIN, catchup=False)
def chain3() -> None:
    """Three tasks in a row, with small results."""
    pass_on.override(task_id="third")(
        pass_on.override(task_id="second")(pass_on.override(task_id="first")(0))
    )


@dag(schedule=None, start_date=BEGIN, catchup=False)
def hop() -> None:
    """Many tasks in a row."""
    chain(*(nothing.override(task_id=f"hop{number}")() for number in range(HOPS)))


jobs()
chain3()
hop()
