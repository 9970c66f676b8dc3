"""Rows for tests, with only what matters named."""

from __future__ import annotations

from bench.results import (
    BusName,
    PeerResult,
    Report,
    Result,
    Sample,
    StoreName,
    summarise,
    summarise_peer,
)

MACHINE = {
    "processor": "none",
    "cores": 2,
    "memory_gib": 4,
    "system": "Linux",
    "python": "3.11",
    "sqlite": "3.45",
}


def a_row(
    name: str,
    *repeats: float,
    store: StoreName = "sqlite",
    bus: BusName = "none",
    run: str = "today",
) -> Result:
    """One figure; the name is `workload metric`."""
    workload, _, metric = name.partition(" ")
    [row] = summarise(workload, store, [Sample(metric, "", repeats)], {"run": run}, bus)
    return row


def a_peer_row(peer: str, name: str, *repeats: float, run: str = "today") -> PeerResult:
    """One figure of a peer on PostgreSQL."""
    workload, _, metric = name.partition(" ")
    sample = Sample(metric, "", repeats, workload=workload)
    settings = {"run": run, "losses": "what it held", "durable": True}
    [row] = summarise_peer(peer, "postgresql", [sample], settings)
    return row


def a_report(*results: Result, peers: tuple[PeerResult, ...] = ()) -> Report:
    """All rows of the machine."""
    return Report(machine=MACHINE).merged(results, peers)
