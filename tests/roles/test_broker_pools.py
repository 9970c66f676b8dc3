"""What a pool of workers behind the broker believes of its free slots."""

from __future__ import annotations

from tests.contract.conftest import ManualClock
from tidemill.domain.pools import pool_key
from tidemill.protocol.broker_messages import BROKER_PROTOCOL_VERSION, Heartbeat
from tidemill.scheduler.letters import Letters
from tidemill.scheduler.pools import BrokerSession, Pool


def a_worker(name: str) -> BrokerSession:
    heartbeat = Heartbeat(
        protocol=BROKER_PROTOCOL_VERSION,
        session=f"broker-{name}",
        number=1,
        worker=name,
        namespace="default",
        slots=4,
        queues=("default",),
    )
    return BrokerSession(heartbeat, at=0.0)


async def test_a_worker_that_joins_while_the_store_counts_is_left_for_the_next_count() -> None:
    key = pool_key("default", ("default",), {})
    pool = Pool(key, Letters("s1", 10), ManualClock(), start_seconds=15.0)
    there, joining = a_worker("there"), a_worker("joining")
    pool.members[there.id] = there
    counted = {pool.id: 1, there.id: 1}

    pool.members[joining.id] = joining
    pool.count(counted, {})

    assert pool.free == 2
