"""Every workload, in the order in which they run."""

from __future__ import annotations

from bench.stage import Workload
from bench.workloads.failover import measure_failover
from bench.workloads.footprint import measure_footprint
from bench.workloads.growth import measure_chain, measure_fan
from bench.workloads.idle import measure_idle
from bench.workloads.jobs import measure_jobs
from bench.workloads.killed_worker import measure_kills
from bench.workloads.recover import measure_recovery
from bench.workloads.scale import measure_scale
from bench.workloads.submit import measure_submit

WORKLOADS = (
    Workload("footprint", measure_footprint, stores=("sqlite",)),
    Workload("jobs", measure_jobs),
    Workload("submit", measure_submit, stores=("postgresql",)),
    Workload("fan", measure_fan),
    Workload("chain", measure_chain),
    Workload("recover", measure_recovery),
    Workload("idle", measure_idle, stores=("postgresql",)),
    Workload("kills", measure_kills, stores=("postgresql",)),
    Workload("failover", measure_failover, stores=("postgresql",)),
    Workload("scale", measure_scale, stores=("postgresql",)),
)
