"""/v1/runs:bulk and /v1/jobs:bulk: thousands of starts in one request.

A JSON array is answered as a whole; NDJSON is answered line by line while it comes in. Either way
each item stands for itself: those that are wrong are refused, the others are started, and each
answer comes after its commit. Send and read at the same time, or send some thousand lines at once:
a server whose answers are not read stops reading too.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from tidemill.api.bulk_lines import Prepare, answer_lines, elements, start_all
from tidemill.api.decoding import decode_json
from tidemill.api.routing import JSON, NDJSON, Call, Stream, endpoint
from tidemill.api.starting import Deployed, job_request, run_request
from tidemill.domain.permissions import Permission
from tidemill.engine.runs import StartRequest
from tidemill.protocol.resources import BulkItem, BulkView, StartJob, StartRun
from tidemill.protocol.resources.bulk import BULK_ITEMS_MAX

# Each item is checked by itself, and refused by itself, so the request as a whole takes any.
Items: TypeAlias = Annotated[
    list[Any], Meta(min_length=1, max_length=BULK_ITEMS_MAX, description="Items, as for one.")
]


@endpoint(
    "POST",
    "/v1/runs:bulk",
    permission=Permission.RUNS_START,
    summary="Start many runs",
    tag="bulk",
    consumes={JSON: Items, NDJSON: Any},
    returns=BulkView,
    alternatives={NDJSON: BulkItem},
    errors=("UNAVAILABLE",),
    example=[{"workflow": "hello", "input": {"name": "Ada"}}],
)
async def start_runs(call: Call) -> BulkView | Stream:
    """An array of what `POST /v1/runs` takes, or one of them in each line."""
    deployed = Deployed(call)

    async def prepare(line: bytes) -> StartRequest:
        return await run_request(call, decode_json(line, StartRun), deployed, single=False)

    return await _answer(call, prepare)


@endpoint(
    "POST",
    "/v1/jobs:bulk",
    permission=Permission.RUNS_START,
    summary="Start many jobs",
    tag="bulk",
    consumes={JSON: Items, NDJSON: Any},
    returns=BulkView,
    alternatives={NDJSON: BulkItem},
    errors=("UNAVAILABLE",),
    example=[{"type": "default", "payload": {"n": 1}}],
)
async def start_jobs(call: Call) -> BulkView | Stream:
    """An array of what `POST /v1/jobs` takes, or one of them in each line."""

    async def prepare(line: bytes) -> StartRequest:
        return job_request(call, decode_json(line, StartJob), single=False)

    return await _answer(call, prepare)


async def _answer(call: Call, prepare: Prepare) -> BulkView | Stream:
    if call.media_type == NDJSON:
        return Stream(answer_lines(call, prepare), headers={"Content-Type": NDJSON})
    lines = list(elements(await call.body_bytes(), BULK_ITEMS_MAX))
    return BulkView(items=tuple(await start_all(call, lines, prepare)))


ENDPOINTS = (start_runs, start_jobs)
