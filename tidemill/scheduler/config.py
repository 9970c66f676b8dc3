"""Settings of the scheduler, with defaults that work."""

from __future__ import annotations

import msgspec


class SchedulerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How large turns are, how long sessions live, how often timers look."""

    turns_at_once: int = 2  # a store with a single writer has no use for more than one
    turn_items_max: int = 1_000
    turn_rows_max: int = 1_000
    inbox_items_max: int = 10_000
    outgoing_messages_max: int = 1_000
    dispatch_parallelism: int = 4  # batches of assignments read at once, beside the turns
    session_ttl_seconds: float = 6.0
    lost_stream_seconds: float = 3.0
    renew_seconds: float = 2.0
    ping_seconds: float = 1.0
    silence_seconds: float = 3.0
    scan_seconds: float = 1.0
    look_seconds: float = 2.0
    timer_horizon_seconds: float = 60.0  # timers further away are found by scans alone
    sweep_seconds: float = 5.0
    reconcile_seconds: float = 3.0
    start_bound_seconds: float = 5.0
    broker_start_bound_seconds: float = 15.0  # for a worker behind a broker to take up a command
    broker_command_bytes_max: int = 900_000
    retry_seconds_max: float = 1.0
    scan_items_max: int = 5_000
    log_bytes_max: int = 65_536
    log_flush_seconds: float = 0.3
    log_chunks_max: int = 10_000
    assignment_bytes_max: int = 4 * 1024 * 1024
    result_bytes_max: int = 256 * 1024
    executors_allowed: tuple[str, ...] = ()  # a worker that offers another is refused; empty: any

    def __post_init__(self) -> None:
        assert self.renew_seconds * 2 < self.session_ttl_seconds, "a session is renewed in time"
        assert self.lost_stream_seconds <= self.session_ttl_seconds
        assert self.turns_at_once > 0
        assert self.turn_items_max > 0
        assert self.turn_rows_max > 0
        assert self.dispatch_parallelism > 0
