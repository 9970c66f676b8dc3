"""A bounded part of what python -m tests.fuzz does: some cases for every operation."""

from __future__ import annotations

import pytest

from tests.fuzz.fuzzing import fuzz

EXAMPLES = 4
CASES_MIN = 200


@pytest.mark.timeout(180)
async def test_no_request_breaks_the_document() -> None:
    found = await fuzz(EXAMPLES, seed=1, more=["--phases=examples,fuzzing"])

    assert found.status == 0, found.text[-20_000:]
    assert found.cases >= CASES_MIN
