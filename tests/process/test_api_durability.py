"""What the API has said yes to is in the database, whatever becomes of the API."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from tests.deployment import Deployment
from tests.posting import Posting, post_of
from tests.process.cluster import fresh_database
from tidemill.domain.identifiers import RunId
from tidemill.stores.postgres.store import PostgresStore

CONNECTIONS = 50
KILL_AFTER = 1_500


class _Started(msgspec.Struct):
    id: str


async def test_every_201_is_in_the_database_after_the_api_was_killed(
    postgres_dsn: str, tmp_path: Path
) -> None:
    url = await fresh_database(postgres_dsn)
    with Deployment(tmp_path, url, url) as roles:
        await asyncio.to_thread(roles.migrate)
        api = roles.add_api()
        api.start()
        await asyncio.to_thread(roles.until_listening, roles.api_addresses[0])
        host, _, port = roles.api_addresses[0].partition(":")
        request = post_of("/v1/jobs", roles.api_addresses[0], b'{"type":"default"}')

        def next_request(number: int) -> bytes:
            if number == KILL_AFTER:
                api.kill()
            return request

        posting = Posting(host, int(port), next_request, keep_bodies=True)
        tally = await posting.run(10_000, CONNECTIONS)

    answered = [msgspec.json.decode(body, type=_Started).id for body in tally.bodies]
    assert set(tally.statuses) == {201}
    assert tally.lost == CONNECTIONS
    assert await _stored(url, answered) == set(answered)


async def _stored(dsn: str, run_ids: list[str]) -> set[str]:
    store = PostgresStore(dsn)
    try:
        found = set[str]()
        for run_id in run_ids:
            found.add((await store.reader.run("default", RunId(run_id))).id)
        return found
    finally:
        await store.close()
