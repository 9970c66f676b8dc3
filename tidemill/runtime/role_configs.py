"""From settings to what the roles themselves are configured with."""

from __future__ import annotations

from tidemill.notifier.relay import RelayConfig
from tidemill.runtime.settings import SILENT_PINGS, Settings
from tidemill.scheduler.config import SchedulerConfig


def scheduler_config(settings: Settings) -> SchedulerConfig:
    """The times of a session keep their proportions when its life is set."""
    ttl = settings.session_ttl_seconds
    return SchedulerConfig(
        turns_at_once=1 if settings.store.path else 2,
        turn_items_max=settings.turn_items_max,
        inbox_items_max=settings.inbox_items_max,
        session_ttl_seconds=ttl,
        lost_stream_seconds=ttl / 2,
        renew_seconds=ttl / 3,
        ping_seconds=settings.ping_seconds,
        silence_seconds=SILENT_PINGS * settings.ping_seconds,
        scan_seconds=settings.scan_seconds,
        dispatch_parallelism=settings.dispatch_parallelism,
        result_bytes_max=settings.result_bytes_max,
        executors_allowed=settings.executors,
    )


def relay_config(settings: Settings) -> RelayConfig:
    """Nothing about the relay needs to be set so far."""
    return RelayConfig()
