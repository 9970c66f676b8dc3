"""Ids that travel to PostgreSQL as one text."""

from __future__ import annotations

import pytest

from tests.builders import a_run_id
from tidemill.stores.postgres.connection import joined_ids

NOBODY = "ffffffff-ffff-ffff-ffff-ffffffffffff"


def test_ids_are_joined_with_commas() -> None:
    ids = [a_run_id() for _ in range(3)]

    assert joined_ids(ids) == ",".join(ids)
    assert joined_ids([]) == ""


@pytest.mark.parametrize(
    "wrong", ["", "x", ",", "'", "{}", NOBODY.upper(), a_run_id() + ",", f"{NOBODY},{NOBODY}"]
)
def test_what_is_no_id_is_nobodys(wrong: str) -> None:
    right = a_run_id()

    assert joined_ids([right, wrong, right]) == f"{right},{NOBODY},{right}"
