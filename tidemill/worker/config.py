"""How a worker behaves: its offer to the scheduler, and its bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.routes import OFFERS_MAX
from tidemill.sdk.secrets import SecretSources

SLOTS_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """Settings of one worker process; the defaults of its times are those of the protocol."""

    name: str
    namespace: str = "default"
    slots: int = 64
    queues: tuple[str, ...] = ("default",)
    labels: dict[str, str] = field(default_factory=dict)
    functions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Executors that run these functions only; one that is not named here runs anything."""
    secrets: SecretSources = field(default_factory=SecretSources)

    result_bytes_max: int = 256 * 1024
    outcomes_bytes_max: int = 4 * 1024 * 1024  # of one message, well below the wire's 8 MiB
    outcomes_max: int = 1_000  # of one message
    log_characters_max: int = 64 * 1024  # of one attempt, waiting to be sent

    ping_seconds: float = 1.0
    silence_seconds: float = 3.0
    holdings_seconds: float = 2.0
    ahead_seconds: float = 0.25  # from taking a task ahead of its slot to handing it back
    started_seconds: float = 2.0  # over a broker: until `started` is said again
    repeat_seconds: float = 3.0  # the same for outcomes that were not acknowledged
    flush_seconds: float = 0.2  # how long progress and output gather
    connect_seconds: float = 5.0  # from opening a stream to Welcome
    backoff_seconds: float = 0.1
    backoff_seconds_max: float = 2.0
    healthy_seconds: float = 2.0  # after a stream that lived this long the backoff begins anew
    cancel_seconds: float = 3.0  # from asking an attempt to stop to calling it stuck
    timeout_seconds: float = 0.9  # the same after a timeout, which the scheduler waits for briefly
    worn_grace_seconds: float = 30.0  # what tasks get to finish when stuck threads end the worker
    goodbye_seconds: float = 5.0  # from saying goodbye to leaving without an answer

    def __post_init__(self) -> None:
        problems = []
        if not 1 <= self.slots <= SLOTS_MAX:
            problems.append(_problem("slots", f"must be between 1 and {SLOTS_MAX}"))
        if not 1 <= self.result_bytes_max <= self.outcomes_bytes_max:
            text = f"must be between 1 and {self.outcomes_bytes_max}, what one message may hold"
            problems.append(_problem("result_bytes_max", text))
        if not self.queues:
            problems.append(_problem("queues", "must name at least one queue"))
        offers = sum(map(len, self.functions.values()))
        if offers > OFFERS_MAX:
            text = f"are {offers}, and a worker may offer {OFFERS_MAX}: import fewer modules"
            problems.append(_problem("functions", text))
        if problems:
            raise InvalidInput(problems)


def offers_of(functions: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The single functions as they are offered, `python:flow:extract`."""
    return tuple(f"{executor}:{one}" for executor, names in functions.items() for one in names)


def _problem(path: str, message: str) -> Problem:
    return Problem(path=path, message=message, code="out_of_range")
