"""Half a minute of chaos; `make chaos MINUTES=30` is the long form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.campaign import run_campaign
from tests.chaos.faults import HASTY_LINES
from tests.chaos.stage import Campaign


@pytest.mark.parametrize(("via", "slots", "rate_min"), [(None, 16, 100), ("redis", 200, 20)])
async def test_nothing_is_lost_or_doubled_while_everything_is_killed(
    tmp_path: Path, via: str | None, slots: int, rate_min: float
) -> None:
    campaign = Campaign(
        seconds=30, seed=1, via=via, slots=slots, rate_min=rate_min, lines=HASTY_LINES,
        keep=tmp_path,
    )  # fmt: skip

    report = await run_campaign(campaign)

    assert report.failures == []
    assert (report.lost_runs, report.double_outcomes, report.double_executions) == (0, 0, 0)
    assert report.accepted > 100
