"""Every workload, in the order in which they run."""

from __future__ import annotations

from bench.results import BusName
from bench.stage import Workload
from bench.workloads.backlog import measure_backlog
from bench.workloads.chain3 import measure_chain3
from bench.workloads.endurance import measure_endurance
from bench.workloads.failover import measure_failover
from bench.workloads.footprint import measure_footprint
from bench.workloads.growth import measure_chain, measure_fan
from bench.workloads.hop import measure_hop
from bench.workloads.idle import measure_idle
from bench.workloads.jobs import measure_jobs
from bench.workloads.killed_worker import measure_kills
from bench.workloads.limit import measure_limit, with_best
from bench.workloads.load import measure_load
from bench.workloads.recover import measure_recovery
from bench.workloads.scale import measure_scale
from bench.workloads.snapshot import measure_snapshot
from bench.workloads.submit import measure_submit

EVERY_BUS: tuple[BusName, ...] = ("none", "kafka", "redis")

WORKLOADS: tuple[Workload, ...] = (
    Workload("footprint", measure_footprint),
    Workload("limit", measure_limit, in_rounds=True, conclude=with_best),
    Workload("jobs", measure_jobs, buses=EVERY_BUS, in_rounds=True),
    Workload("chain3", measure_chain3, buses=EVERY_BUS, in_rounds=True),
    Workload("hop", measure_hop, buses=EVERY_BUS, in_rounds=True),
    Workload("submit", measure_submit, stores=("postgresql",)),
    Workload("fan", measure_fan),
    Workload("chain", measure_chain),
    Workload("backlog", measure_backlog),
    Workload("snapshot", measure_snapshot, stores=("postgresql",)),
    Workload("endurance", measure_endurance),
    Workload("recover", measure_recovery),
    Workload("idle", measure_idle, stores=("postgresql",)),
    Workload("kills", measure_kills, stores=("postgresql",)),
    Workload("failover", measure_failover, stores=("postgresql",)),
    Workload("scale", measure_scale, stores=("postgresql",)),
    Workload("load", measure_load),
)
