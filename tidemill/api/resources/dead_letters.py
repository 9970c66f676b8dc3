"""/v1/dead-letters: tasks that failed for good, and what can be done about them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

import msgspec

from tidemill.api.cursors import LetterCursor, decode_cursor, paged
from tidemill.api.looking import find_node, find_run, find_run_id, plan_of, plans_of
from tidemill.api.routing import Call, endpoint
from tidemill.api.showing import shown_run
from tidemill.api.views import dead_letter_view, group_view
from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.permissions import Permission
from tidemill.domain.plan import Plan
from tidemill.engine.dead_letters import BulkReplay, Replayed, discard, replay, replay_many
from tidemill.ports.queries import DeadQuery
from tidemill.protocol.resources import (
    DeadLettersQuery,
    DeadLetterView,
    GroupsQuery,
    GroupView,
    Page,
    ReplayedView,
    ReplayMany,
    RunView,
)

REPLAY_SECONDS_MAX = 60.0


@endpoint(
    "GET",
    "/v1/dead-letters",
    permission=Permission.DEAD_LETTERS_READ,
    summary="List dead letters",
    tag="dead letters",
    errors=("NOT_FOUND",),
)
async def list_dead_letters(call: Call, query: DeadLettersQuery) -> Page[DeadLetterView]:
    """Tasks that failed for good, newest run first, until they are replayed or discarded."""
    cursor = decode_cursor(query.after, LetterCursor)
    run_id = await find_run_id(call.services, call.namespace, query.run) if query.run else None
    wanted = DeadQuery(
        namespace=call.namespace,
        run_id=run_id,
        workflow=query.workflow,
        fingerprint=query.group,
        after=cursor.key if cursor else None,
        limit=query.limit + 1,
    )
    letters = await call.services.store.reader.dead_letters(wanted)
    plans = await _plans(call, [letter.run_id for letter in letters])
    return paged(
        [letter for letter in letters if letter.run_id in plans],
        query.limit,
        lambda letter: dead_letter_view(letter, plans[letter.run_id]),
        lambda letter: LetterCursor(letter.run_id, letter.position),
    )


@endpoint(
    "GET",
    "/v1/dead-letters/groups",
    permission=Permission.DEAD_LETTERS_READ,
    summary="List dead letters that failed alike",
    tag="dead letters",
)
async def list_groups(call: Call, query: GroupsQuery) -> Page[GroupView]:
    """The largest group first; of the newest 10,000 dead letters. There is one page."""
    groups = (await call.services.store.reader.dead_groups(call.namespace))[: query.limit]
    plans = await _plans(call, [group.newest.run_id for group in groups])
    return Page(
        items=tuple(
            group_view(group, plans[group.newest.run_id])
            for group in groups
            if group.newest.run_id in plans
        )
    )


@endpoint(
    "POST",
    "/v1/dead-letters/{run_id}/{task}/replay",
    permission=Permission.DEAD_LETTERS_CONTROL,
    summary="Try a dead letter again",
    tag="dead letters",
    audit="dead_letter.replay",
    errors=("NOT_FOUND", "CONFLICT", "UNAVAILABLE"),
)
async def replay_dead_letter(call: Call, run_id: str, task: str) -> RunView:
    """With fresh budgets; its run goes on, and what waited for the task waits again."""
    services = call.services
    key = await _key(call, run_id, task)
    await services.steer(await services.store.reader.run(call.namespace, key.run_id), True)
    after = await replay(services.store, services.bus, call.namespace, key)
    return await shown_run(services, after)


@endpoint(
    "POST",
    "/v1/dead-letters/{run_id}/{task}/discard",
    permission=Permission.DEAD_LETTERS_CONTROL,
    summary="Let a dead letter go",
    tag="dead letters",
    audit="dead_letter.discard",
    errors=("NOT_FOUND", "CONFLICT", "UNAVAILABLE"),
)
async def discard_dead_letter(call: Call, run_id: str, task: str) -> None:
    """It is no longer listed. Its run stays as it ended."""
    await discard(call.services.store, call.namespace, await _key(call, run_id, task))


@endpoint(
    "POST",
    "/v1/dead-letters:replay",
    permission=Permission.DEAD_LETTERS_CONTROL,
    summary="Try many dead letters again",
    tag="dead letters",
    audit="dead_letter.replay_many",
    errors=("UNAVAILABLE",),
    example={"workflow": "orders", "rate": 20},
)
async def replay_dead_letters(call: Call, body: ReplayMany) -> ReplayedView:
    """So many a second at most. After a minute it stops: `more` tells whether others are left."""
    if not (body.all or body.workflow or body.group):
        text = 'give workflow or group, or `"all": true` to replay every dead letter'
        raise InvalidInput([Problem(path="all", message=text, code="NO_FILTER")])
    services = call.services
    query = DeadQuery(namespace=call.namespace, workflow=body.workflow, fingerprint=body.group)
    wish = BulkReplay(query=query, rate=body.rate, limit=body.limit)
    end = services.clock.monotonic() + REPLAY_SECONDS_MAX
    done: list[Replayed] = []
    replays = replay_many(services.store, services.bus, services.clock, wish)
    async with aclosing(cast(AsyncGenerator[Replayed, None], replays)) as letters:
        async for one in letters:
            done.append(one)
            if services.clock.monotonic() > end:
                break
    failed = sum(one.error is not None for one in done)
    left = await services.store.reader.dead_letters(msgspec.structs.replace(query, limit=1))
    return ReplayedView(replayed=len(done) - failed, failed=failed, more=bool(left))


async def _key(call: Call, run_id: str, task: str) -> TaskKey:
    run = await find_run(call.services, call.namespace, run_id)
    return TaskKey(run.id, find_node(await plan_of(call.services, run), task).index)


async def _plans(call: Call, run_ids: list[RunId]) -> dict[RunId, Plan]:
    reader = call.services.store.reader
    runs = [await reader.run(call.namespace, run_id) for run_id in dict.fromkeys(run_ids)]
    plans = await plans_of(call.services, runs)
    return {run.id: plans[run.version_id] for run in runs if run.version_id in plans}


ENDPOINTS = (
    list_dead_letters,
    list_groups,
    replay_dead_letter,
    discard_dead_letter,
    replay_dead_letters,
)
