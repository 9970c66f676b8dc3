"""Runs many seeds, on several cores, and says what they have shown."""

from __future__ import annotations

import gc
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.simulation.chance import FAULTS
from tests.simulation.fold import legal_moves
from tests.simulation.sim_broker import BROKER_FAULTS
from tests.simulation.violation import Violation
from tests.simulation.world import Calm, Outcome, run_seed

COMPLETE_SEEDS_MIN = 1_000
"""From so many seeds on, every fault kind and every legal move must have been seen."""

TWICE_EVERY = 50
"""One seed in so many runs twice, and calmly with and without its bus."""

REGRESSIONS = Path(__file__).with_name("regressions.txt")


@dataclass
class Tally:
    """What all seeds together have shown."""

    seeds: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    moves: Counter[str] = field(default_factory=Counter)
    failures: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0
    steps: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count one seed in."""
        self.seeds += 1
        self.counts += outcome.counts
        self.moves += outcome.moves
        self.seconds += outcome.seconds
        self.steps += outcome.steps
        if outcome.violations:
            self.failures.append(outcome)

    def unseen(self) -> list[str]:
        """Fault kinds and legal moves that never happened."""
        faults = [name for name in (*FAULTS, *BROKER_FAULTS) if not self.counts[name]]
        return faults + [move for move in legal_moves() if not self.moves[move]]


def run_checked(seed: int) -> Outcome:
    """Run one seed; some run again, to show that the seed alone decides, and the bus nothing."""
    outcome = run_seed(seed)
    if seed % TWICE_EVERY == 0 and not outcome.violations:
        again = run_seed(seed)
        if again.digest != outcome.digest:
            text = f"two runs differ: {outcome.digest[:16]} and {again.digest[:16]}"
            outcome.violations.append(Violation("H1", text))
        outcome.violations.extend(compare_buses(seed))
    return outcome


def compare_buses(seed: int) -> list[Violation]:
    """I6: a world with a bad bus ends as a world without one."""
    worlds = [run_seed(seed, calm=calm) for calm in Calm]
    found = [violation for world in worlds for violation in world.violations]
    if not found and worlds[0].endings != worlds[1].endings:
        found.append(Violation("I6", "without its bus the world ends in other states"))
    return found


def run_seeds(seeds: Iterable[int], jobs: int) -> Iterator[Outcome]:
    """Outcomes of all seeds, in any order."""
    gc.collect()
    gc.freeze()
    if jobs == 1:
        yield from map(run_checked, seeds)
        return
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=500) as pool:
        yield from pool.imap_unordered(run_checked, seeds, chunksize=5)


def regressions() -> list[int]:
    """Seeds that once found a bug; they always run first."""
    lines = REGRESSIONS.read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


def run_all(start: int, seeds: int, jobs: int, *, failures_max: int) -> int:
    """Run seeds from `start` on, print what they have shown, and return the exit code."""
    tally = Tally()
    began = time.monotonic()
    chosen = [*regressions(), *range(start, start + seeds)]
    for outcome in run_seeds(chosen, jobs):
        tally.add(outcome)
        if outcome.violations:
            print_failure(outcome)
            if len(tally.failures) >= failures_max:
                break
        if tally.seeds % 20 == 0:
            _print_progress(tally, len(chosen), time.monotonic() - began)
    _print_summary(tally, time.monotonic() - began)
    complete = tally.seeds < COMPLETE_SEEDS_MIN or not tally.unseen()
    if not complete:
        print(f"FAILED: never happened in {tally.seeds} seeds: {', '.join(tally.unseen())}")
    return 0 if complete and not tally.failures else 1


def print_failure(outcome: Outcome) -> None:
    """Everything that is needed to look into a violation."""
    print(f"\nVIOLATION in seed {outcome.seed}")
    for line in outcome.lines:
        print("  ", line)
    for violation in outcome.violations[:10]:
        print(f"  {violation}")
    print(f"  faults of this seed: {outcome.swarm}")
    print(f"  replay with: .venv/bin/python -m tests.simulation --seed {outcome.seed}", flush=True)


def _print_progress(tally: Tally, seeds: int, elapsed: float) -> None:
    if sys.stderr.isatty() or tally.seeds % 500 == 0:
        pace = tally.seeds / elapsed * 60
        text = f"{tally.seeds}/{seeds} seeds, {pace:.0f} a minute, {len(tally.failures)} violations"
        print(text, end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)


def _print_summary(tally: Tally, elapsed: float) -> None:
    print(f"\n{'fault':<28}{'struck':>10}")
    for name in (*FAULTS, *BROKER_FAULTS):
        print(f"{name:<28}{tally.counts[name]:>10}")
    print(f"\n{'move':<40}{'seen':>10}")
    for move in legal_moves():
        print(f"{move:<40}{tally.moves[move]:>10}")
    pace = tally.seeds / elapsed * 60
    print(
        f"\n{tally.seeds} seeds in {elapsed:.1f} s ({pace:.0f} a minute), "
        f"{tally.seconds / 3600:.1f} simulated hours, {len(tally.failures)} violations"
    )
