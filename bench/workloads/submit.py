"""`submit`: single jobs over HTTP on 200 connections, each answered after its commit.

Nobody runs them. Client, `tidemill api` and PostgreSQL share the cores.
"""

from __future__ import annotations

from bench.results import Sample
from bench.stage import Stage
from bench.submitting import rates_of_posts

CONNECTIONS = 200
POSTS = 30_000
POSTS_QUICK = 6_000


async def measure_submit(stage: Stage) -> list[Sample]:
    """Submissions per second."""
    count = POSTS_QUICK if stage.quick else POSTS
    stage.settings |= {"connections": CONNECTIONS, "posts": count}
    rates = await rates_of_posts(stage, count, CONNECTIONS, 1)
    return [Sample("submits_per_second", "1/s", rates)]
