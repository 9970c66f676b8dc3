"""`python -m tests.simulation`: many seeds, or one seed again with everything that happened."""

from __future__ import annotations

import argparse
import os
import sys

from tests.simulation.mutants.hunt import hunt_all
from tests.simulation.runner import print_failure, run_all
from tests.simulation.world import run_seed


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds to run")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many cores")
    parser.add_argument("--failures", type=int, default=5, help="stop after so many violations")
    parser.add_argument("--seed", type=int, help="run this one seed and print what happened")
    parser.add_argument("--lines", type=int, default=200, help="events to print with --seed")
    parser.add_argument("--mutants", metavar="NAME", help="hunt the known bugs named so, or all")
    chosen = parser.parse_args()
    if chosen.mutants is not None:
        return hunt_all(chosen.mutants)
    if chosen.seed is None:
        return run_all(chosen.start, chosen.seeds, chosen.jobs, failures_max=chosen.failures)
    outcome = run_seed(chosen.seed, lines_kept=chosen.lines)
    if outcome.violations:
        print_failure(outcome)
        return 1
    print(f"seed {chosen.seed} is clean: {outcome.endings}, history {outcome.digest[:16]}")
    return 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets must not differ between two runs of a seed.
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
