"""`jobs`: jobs that do nothing, with a small payload.

End to end: all are submitted in one call of the library to the system that runs them, and the time
goes from that call until a reader of the store finds no run open. `growth` compares the time per
job of five times as many with that of the first ones, on a system of their own in each repeat.

Submissions alone, each answered after its commit, nobody running the jobs meanwhile:
`jobs-single` over HTTP, one job in a request, on 100 connections; `jobs-bulk` over HTTP, 1,000 jobs
in a request, on 4 connections; `jobs-library` by a process that has the store open. Over HTTP the
API is a process of its own: `tidemill api` on PostgreSQL, `tidemill up` without workers on SQLite.
"""

from __future__ import annotations

from bench.results import Sample
from bench.stage import Stage
from bench.submitting import rates_of_library, rates_of_posts
from bench.throughput import Throughput, cpu_of, throughput_of_jobs

JOBS = 40_000
JOBS_QUICK = 2_000
WARM_UP = 2_000
TIMES = 5
POSTS = 20_000
POSTS_QUICK = 4_000
CONNECTIONS = 100
BULK_CONNECTIONS = 4
BULK_JOBS = 1_000
SUBMISSIONS = 40_000
SUBMISSIONS_QUICK = 8_000


async def measure_jobs(stage: Stage) -> list[Sample]:
    """Jobs per second from the wish to the end, and submissions per second."""
    samples = await _measure_to_the_end(stage)
    return samples if stage.bus != "none" else [*samples, *await _measure_submissions(stage)]


async def _measure_to_the_end(stage: Stage) -> list[Sample]:
    count = JOBS_QUICK if stage.quick else JOBS
    many = count * TIMES
    measured, growth = list[Throughput](), list[float]()
    for _ in range(stage.repeats):
        async with stage.mill() as mill:
            await throughput_of_jobs(mill, WARM_UP)
            measured.append(await throughput_of_jobs(mill, count))
            stage.say(f"{count:,}: {measured[-1]}")
            of_many = await throughput_of_jobs(mill, many)
            stage.say(f"{many:,}: {of_many}")
            growth.append(measured[-1].tasks_per_second / of_many.tasks_per_second)
    rates = [one.tasks_per_second for one in measured]
    settings = {"jobs": count, "cpu_micros_per_task": cpu_of(measured)}
    return [
        Sample("tasks_per_second", "1/s", rates, settings=settings),
        Sample("growth", "ratio", growth, settings={"small": count, "large": many}),
    ]


async def _measure_submissions(stage: Stage) -> list[Sample]:
    posts = POSTS_QUICK if stage.quick else POSTS
    many = SUBMISSIONS_QUICK if stage.quick else SUBMISSIONS
    single = await rates_of_posts(stage, posts, CONNECTIONS, 1)
    bulk = await rates_of_posts(stage, many, BULK_CONNECTIONS, BULK_JOBS)
    library = await rates_of_library(stage, many)
    return [
        _submits(single, "single", jobs=posts, connections=CONNECTIONS),
        _submits(bulk, "bulk", jobs=many, connections=BULK_CONNECTIONS, in_request=BULK_JOBS),
        _submits(library, "library", jobs=many),
    ]


def _submits(rates: list[float], variant: str, **settings: int) -> Sample:
    return Sample("submits_per_second", "1/s", rates, variant, settings=dict(settings))
