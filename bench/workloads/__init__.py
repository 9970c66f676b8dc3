"""Every workload, in the order in which they run."""

from __future__ import annotations

from bench.stage import Workload
from bench.workloads.footprint import measure_footprint
from bench.workloads.growth import measure_chain, measure_fan
from bench.workloads.jobs import measure_jobs
from bench.workloads.recover import measure_recovery

WORKLOADS = (
    Workload("footprint", measure_footprint, stores=("sqlite",)),
    Workload("jobs", measure_jobs),
    Workload("fan", measure_fan),
    Workload("chain", measure_chain),
    Workload("recover", measure_recovery),
)
