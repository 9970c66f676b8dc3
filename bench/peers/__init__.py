"""Every peer, in the order in which they run: what each is given, and what a crash costs it."""

from __future__ import annotations

from bench.peers.measuring import on_its_own, on_postgres, on_redis
from bench.stage import Peer

REDIS_LOSSES = (
    "Redis by default loses what came after its last snapshot, up to an hour (rows named "
    "everysec: up to a second)"
)

PEERS: tuple[Peer, ...] = (
    Peer(
        "dbos",
        "postgresql",
        on_postgres("dbos"),
        losses="Nothing is lost: a workflow goes on after its last recorded step when a process "
        "with the same executor id is started again.",
        settings={
            "processes": 1,
            "worker_concurrency": 100,
            "polling_interval_sec": 0.001,
            "submits": "enqueue_in_transaction, 100 each, on 2 connections",
            "hop": "child workflows through the queue; hop-steps: steps in the same process, "
            "without a queue",
        },
    ),
    Peer(
        "procrastinate",
        "postgresql",
        on_postgres("procrastinate"),
        losses="Nothing is lost, but what ran on a killed worker stays `doing` until a task of "
        "the user's own finds and retries it.",
        settings={
            "processes": 1,
            "concurrency": 30,
            "fetch_job_polling_interval": 0.02,
            "listen_notify": True,
            "submits": "batch_defer_async, 1,000 each",
            "hop": "each task defers the next, as there are no workflows",
        },
    ),
    Peer(
        "celery",
        "redis",
        on_redis("celery"),
        durable=False,
        losses="Tasks that run in a killed worker are gone, as messages are acknowledged before "
        "the work, and those that wait in it come back after an hour (jobs-late: both come back "
        f"after an hour); {REDIS_LOSSES}.",
        settings={
            "workers": 2,
            "pool": "threads",
            "concurrency": 10,
            "worker_prefetch_multiplier": 10,
            "task_ignore_result": "true but for jobs-results and hop",
            "flags": "without gossip, mingle and heartbeat",
            "submits": "one by one on one connection, as there is no call for many",
        },
    ),
    Peer(
        "dramatiq",
        "redis",
        on_redis("dramatiq"),
        durable=False,
        losses="Tasks of a killed worker run again a minute later, when others find that it is "
        f"silent; {REDIS_LOSSES}.",
        settings={
            "processes": 2,
            "threads": 8,
            "store_results": "hop only",
            "submits": "one by one on one connection, as there is no call for many",
        },
    ),
    Peer(
        "prefect",
        "sqlite",
        on_its_own("prefect"),
        durable=False,  # the next task begins before the end of the last one is written down
        losses="A flow whose process is killed does not go on: it must be started anew, and what "
        "its tasks gave is lost unless it was persisted; the server hears of tasks later than "
        "they end, and its SQLite may lose the last commits in a power cut.",
        settings={
            "processes": "server, and one that runs flows",
            "database": "SQLite, its default (journal_mode=wal, synchronous=normal): the "
            "packaged PostgreSQL lacks pg_trgm, which it needs",
            "jobs": "one flow, map on 10 threads",
            "chain3": "10 flows at once in one process",
            "hop": "tasks in the process of the flow, without a queue",
            "logs_to_server": False,
        },
    ),
    Peer(
        "airflow",
        "postgresql",
        on_postgres("airflow"),
        losses="Nothing recorded is lost, but what ran under a killed scheduler fails when its "
        "heartbeat has been missing for five minutes, and runs again only if it has retries.",
        settings={
            "processes": "scheduler with 8 local workers, DAG processor, API server",
            "executor": "LocalExecutor",
            "parallelism": 8,
            "max_active_tasks_per_dag": 1_000,
            "max_active_runs_per_dag": 100,
            "scheduler_idle_sleep_time": 0.05,
            "jobs": "one run of a DAG of so many tasks",
            "hop": "a chain of 10, as one of 50 takes too long",
        },
    ),
)
