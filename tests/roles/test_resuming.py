"""What `up` reads of a store before it serves it."""

from __future__ import annotations

from pathlib import Path

from tidemill.runtime.addresses import StoreAddress
from tidemill.runtime.resuming import with_left_imports
from tidemill.runtime.settings import Settings
from tidemill.stores.sqlite.connection import connect_writer


async def test_a_file_whose_first_start_was_cut_short_is_served(tmp_path: Path) -> None:
    path = tmp_path / "tidemill.db"
    connect_writer(str(path)).close()  # there, but without tables
    settings = Settings(store=StoreAddress(path=path))

    assert await with_left_imports(settings, print) == settings
