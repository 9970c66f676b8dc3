"""Fuzz the whole OpenAPI document on a running server: python -m tests.fuzz --cases 10000."""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.fuzz.fuzzing import fuzz
from tests.servers import PostgresServer

ROUNDS_MAX = 20


async def fuzz_all(known: argparse.Namespace, more: list[str], dsns: list[str | None]) -> int:
    """Rounds with one seed after another until so many cases have passed; the exit status.

    The stores take turns.
    """
    passed = 0
    for number in range(known.seed, known.seed + ROUNDS_MAX):
        found = await fuzz(known.examples, number, more, dsns[number % len(dsns)])
        print(found.text, flush=True)
        passed += found.cases
        if found.status:
            print(f"failures with --seed {number}: python -m tests.fuzz --seed {number} repeats it")
            return found.status
        if passed >= known.cases:
            break
    print(f"{passed:,} cases, 0 failures")
    return 0 if passed >= known.cases else 1


def main() -> None:
    """Read the command line; what is not known goes to schemathesis."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="so many at least")
    parser.add_argument("--examples", type=int, default=50, help="for each operation in a round")
    parser.add_argument("--seed", type=int, default=1)
    known, more = parser.parse_known_args()
    with PostgresServer() as server:
        sys.exit(asyncio.run(fuzz_all(known, more, [None, server.url])))


if __name__ == "__main__":
    main()
