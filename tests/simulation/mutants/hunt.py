"""Hunts mutants: seed by seed, until a named invariant fails where the real code is clean."""

from __future__ import annotations

import time
from typing import NamedTuple

from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.mutants.surgery import Mutant, applied
from tests.simulation.violation import Violation
from tests.simulation.world import run_seed


class Catch(NamedTuple):
    """How a mutant was caught; without a violation it was not."""

    mutant: Mutant
    seeds: int
    violation: Violation | None
    seconds: float


def hunt(mutant: Mutant, *, start: int = 0) -> Catch:
    """Run seeds with the bug until one of its invariants fails."""
    began = time.monotonic()
    for count in range(1, mutant.seeds_max + 1):
        seed = start + count - 1
        with applied(mutant):
            found = run_seed(seed).violations
        named = [one for one in found if one.invariant in mutant.invariants]
        if named and not run_seed(seed).violations:
            return Catch(mutant, count, named[0], time.monotonic() - began)
    return Catch(mutant, mutant.seeds_max, None, time.monotonic() - began)


def hunt_all(name: str) -> int:
    """Hunt the mutants of this name (or `all`), print the table, and return the exit code."""
    print("| known bug | caught by | seeds needed | budget |")
    print("|---|---|---|---|")
    escaped = 0
    chosen = [mutant for mutant in MUTANTS if name in {"all", mutant.name}]
    assert chosen, f"no mutant is called {name!r}"
    for mutant in chosen:
        catch = hunt(mutant)
        caught_by = catch.violation.invariant if catch.violation else "ESCAPED"
        escaped += catch.violation is None
        print(f"| {mutant.name} | {caught_by} | {catch.seeds} | {mutant.seeds_max} |", flush=True)
    return 1 if escaped else 0
