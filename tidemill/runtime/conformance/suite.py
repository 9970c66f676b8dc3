"""Runs the cases against a command, several at a time, each on a stage of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidemill.runtime.conformance.cases import CASES, Case
from tidemill.runtime.conformance.stage import CaseFailed, Stage
from tidemill.runtime.system import SystemClock

START_SECONDS = 10.0
"""What a stage may take besides its case."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a case went."""

    name: str
    passed: bool
    reason: str
    seconds: float


async def run_suite(
    command: Sequence[str],
    *,
    cases: Sequence[Case] = CASES,
    jobs: int = 4,
    tell: Callable[[Verdict], None] = lambda _: None,
) -> list[Verdict]:
    """Try every case; `tell` hears of each as soon as it is over."""
    room = asyncio.Semaphore(jobs)

    async def judge(case: Case) -> Verdict:
        async with room:
            verdict = await _judge(command, case)
        tell(verdict)
        return verdict

    return list(await asyncio.gather(*map(judge, cases)))


async def _judge(command: Sequence[str], case: Case) -> Verdict:
    clock = SystemClock()
    begun = clock.monotonic()
    reason = ""
    try:
        async with asyncio.timeout(case.seconds + START_SECONDS):
            stage = Stage(command, unknown_fields=case.unknown_fields, token_works=case.token_works)
            async with stage:
                await case.run(stage)
    except CaseFailed as failed:
        reason = str(failed)
    except TimeoutError:
        reason = f"not over within {case.seconds:g} s"
    except Exception as error:  # noqa: BLE001 - the other cases shall still be tried
        reason = f"the case itself broke: {type(error).__name__}: {error}"
    return Verdict(case.name, not reason, reason, clock.monotonic() - begun)
