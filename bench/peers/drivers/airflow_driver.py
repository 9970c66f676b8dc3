"""Airflow: scheduler, DAG processor and API server on PostgreSQL, with the local executor."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg2
import psycopg2.extensions
from gauge import HERE, Figures, Order, read_order, running, wait_until

COMPONENTS = ("scheduler", "dag-processor", "api-server")
DAGS = ("jobs", "chain3", "hop")
HOPS = 10  # a chain of 50 would take minutes
PARALLELISM = 8
LOOK_SECONDS = 0.05


def settings_for(order: Order, port: int, jobs: int) -> dict[str, str]:
    """Documented switches: no examples, short sleeps, limits that do not hold anything up."""
    address = f"http://127.0.0.1:{port}"
    return {
        "AIRFLOW_HOME": str(order.folder),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": order.url.replace("://", "+psycopg2://"),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__DAGS_FOLDER": str(HERE / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__CORE__PARALLELISM": str(PARALLELISM),
        "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG": "1000",
        "AIRFLOW__CORE__MAX_ACTIVE_RUNS_PER_DAG": "100",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__BASE_URL": address,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.05",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "BENCH_PEER_JOBS": str(jobs),
        "BENCH_PEER_HOPS": str(HOPS),
    }


class Bench:
    """The client's side: runs are wished for over HTTP, and seen to end in the database."""

    def __init__(self, order: Order, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"
        self._database = psycopg2.connect(order.url)
        self._database.autocommit = True
        self._token = ""

    def is_ready(self) -> bool:
        """Whether the API answers and all DAGs are known."""
        try:
            self._token = self._call("/auth/token", None)["access_token"]
        except (urllib.error.URLError, OSError):
            return False
        known = self._rows("SELECT dag_id FROM serialized_dag")
        return {name for (name,) in known} >= set(DAGS)

    def seconds_of(self, dag: str, count: int) -> float:
        """Wish for many runs of a DAG and see them end."""
        begin = time.perf_counter()
        for _ in range(count):
            moment = {"logical_date": datetime.now(UTC).isoformat()}
            self._call(f"/api/v2/dags/{dag}/dagRuns", moment)
        wait_until(lambda: not self._rows(_OPEN), LOOK_SECONDS)
        if self._rows(_FAILED):
            raise RuntimeError(f"a run of {dag} has failed")
        return time.perf_counter() - begin

    def moments(self) -> list[float]:
        """When the tasks of the latest chain began."""
        return [moment.timestamp() for (moment,) in self._rows(_MOMENTS)][:HOPS][::-1]

    def _rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        with self._database.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def _call(self, path: str, body: dict[str, str] | None) -> dict[str, Any]:
        request = urllib.request.Request(
            self._address + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return dict(json.load(answer))


_OPEN = "SELECT 1 FROM dag_run WHERE state IN ('queued', 'running') LIMIT 1"
_FAILED = "SELECT 1 FROM dag_run WHERE state = 'failed' LIMIT 1"
_MOMENTS = "SELECT start_date FROM task_instance WHERE dag_id = 'hop' ORDER BY start_date DESC"


def drive(order: Order) -> None:
    """Measure."""
    figures = Figures(order)
    jobs, chains, port = order.size(100, 20), order.size(10, 3), _free_port()
    settings = settings_for(order, port, jobs)
    program = ["-m", "airflow"]
    with (order.folder / "log").open("ab") as log:
        migrate = [sys.executable, *program, "db", "migrate"]
        subprocess.run(migrate, env=os.environ | settings, stdout=log, stderr=log, check=True)
    commands = [[*program, component] for component in COMPONENTS]
    with running(commands, order.folder, settings) as processes:
        bench = Bench(order, port)
        wait_until(bench.is_ready, 0.5, processes)
        bench.seconds_of("chain3", 1)
        figures.add_weight(process.pid for process in processes)
        for _ in range(order.repeats):
            figures.add_rate("jobs", jobs, bench.seconds_of("jobs", 1))
            figures.add_rate("chain3", 3 * chains, bench.seconds_of("chain3", chains))
            bench.seconds_of("hop", 1)
            figures.add_hops("hop", [bench.moments()])
    figures.answer()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    drive(read_order())
