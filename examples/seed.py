"""Twenty jobs and a data pipeline, submitted over HTTP: `make seed`, or seed.py URL."""

from __future__ import annotations

import sys

from tidemill import RetryPolicy, TaskSpec, Workflow
from tidemill.client import BlockingClient
from tidemill.protocol.resources import StartJob

TYPES = ("default", "compute", "notify", "transform", "flaky")


def jobs(count: int) -> list[StartJob]:
    """Jobs of every type in turn; the flaky ones fail now and then, and are tried again."""
    payloads = {"compute": {"iterations": 1_000}, "flaky": {"failure_rate": 0.3}}
    return [
        StartJob(type=name, payload={"n": number, **payloads.get(name, {})}, max_retries=5)
        for number in range(count)
        for name in [TYPES[number % len(TYPES)]]
    ]


def pipeline() -> Workflow:
    """Two sources are cleaned side by side, joined, checked and published."""
    patient = RetryPolicy(max_retries=5)
    return Workflow(
        name="data-pipeline",
        description="Fetches two sources, joins them and publishes the result.",
        labels={"team": "data"},
        tasks=(
            TaskSpec(id="fetch-orders", executor="sleep", params={"seconds": 0.3}),
            TaskSpec(id="fetch-prices", executor="sleep", params={"seconds": 0.5}),
            TaskSpec(id="clean-orders", executor="compute", depends_on=("fetch-orders",)),
            TaskSpec(id="clean-prices", executor="compute", depends_on=("fetch-prices",)),
            TaskSpec(
                id="join",
                executor="flaky",
                depends_on=("clean-orders", "clean-prices"),
                params={"failure_rate": 0.3},
                retry=patient,
            ),
            TaskSpec(id="check", executor="noop", depends_on=("join",)),
            TaskSpec(
                id="publish", executor="sleep", params={"seconds": 0.2}, depends_on=("check",)
            ),
        ),
    )


def main(server: str) -> None:
    """Submit everything, and wait for the pipeline."""
    with BlockingClient(server) as client:
        taken = [item for item in client.bulk(jobs(20)) if item.problem is None]
        print(f"{len(taken)} jobs")
        deployed = client.deploy(pipeline())
        print(f"workflow {deployed.name}, version {deployed.version}")
        run = client.submit(deployed.name)
        print(f"run {run.id} is {run.wait(timeout=60).state}")


if __name__ == "__main__":
    main(*sys.argv[1:] or ["http://127.0.0.1:8080"])
