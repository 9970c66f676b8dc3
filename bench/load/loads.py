"""The three loads: what is submitted, and what must have become of it in the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

SIGMAS = 4.0
"""Chance alone goes further than that once in some 16,000 loads."""

FLAKY_EVERY = 5
FAILURE_RATE = 0.5
FLAKY_RETRIES = 2

Body: TypeAlias = Callable[[int], bytes]


@dataclass(frozen=True)
class DeadLetters:
    """How many there should be, and how far chance may lead away from that."""

    expected: float = 0.0
    tolerance: float = 0.0

    def fit(self, found: int) -> bool:
        """Whether that many can be chance."""
        return abs(found - self.expected) <= self.tolerance


@dataclass(frozen=True)
class Load:
    """Items of one kind: each is one request, or one line of a bulk request."""

    name: str  # of its make target
    noun: str
    count: int
    path: str
    body: Body
    bulk_path: str
    line: Body
    bulk: bool = False
    tasks_each: int = 1
    flaky_every: int = 0

    def dead_letters(self, submitted: int) -> DeadLetters:
        """The tasks that fail for good, of so many items."""
        if not self.flaky_every:
            return DeadLetters()
        flaky = submitted // self.flaky_every
        chance = FAILURE_RATE ** (FLAKY_RETRIES + 1)
        deviation = math.sqrt(flaky * chance * (1 - chance))
        return DeadLetters(expected=flaky * chance, tolerance=SIGMAS * deviation)


NOOP = b'{"type":"noop"}'
FLAKY = b'{"type":"flaky","payload":{"failure_rate":%g},"max_retries":%d}'
CHAIN = (
    b'{"name":"load","steps":[{"name":"first","type":"noop"},'
    b'{"name":"second","type":"noop"},{"name":"third","type":"noop"}]}'
)
CHAIN_LINE = (
    b'{"definition":{"name":"load","tasks":[{"id":"first","executor":"noop"},'
    b'{"id":"second","executor":"noop","depends_on":["first"]},'
    b'{"id":"third","executor":"noop","depends_on":["second"]}]}}'
)


def _noop(_: int) -> bytes:
    return NOOP


def _flaky(number: int) -> bytes:
    # The last of each five, so that any number of whole fives has its share.
    is_flaky = number % FLAKY_EVERY == FLAKY_EVERY - 1
    return FLAKY % (FAILURE_RATE, FLAKY_RETRIES) if is_flaky else NOOP


JOBS = Load(
    name="load-test",
    noun="jobs",
    count=50_000,
    path="/v1/jobs",
    body=_noop,
    bulk_path="/v1/jobs:bulk",
    line=_noop,
)
# Bulk: the question here is what a long queue and its retries do, and half a million single
# requests would ask for most of the cores that should answer it.
MIXED = Load(
    name="load-test-flaky",
    noun="jobs",
    count=500_000,
    path="/v1/jobs",
    body=_flaky,
    bulk_path="/v1/jobs:bulk",
    line=_flaky,
    bulk=True,
    flaky_every=FLAKY_EVERY,
)
CHAINS = Load(
    name="load-test-workflow",
    noun="workflows",
    count=50_000,
    path="/api/v1/workflows",
    body=lambda _: CHAIN,
    bulk_path="/v1/runs:bulk",
    line=lambda _: CHAIN_LINE,
    tasks_each=3,
)
LOADS = {"jobs": JOBS, "flaky": MIXED, "workflow": CHAINS}
