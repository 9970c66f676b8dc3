"""Forty and more requests that are wrong, each with exactly what its sender is told."""

from __future__ import annotations

import httpx
import pytest

from tests.api.malformed import REQUESTS, Wrong

# Status, code, and the text in the order in which the problems are told.
TOLD: dict[str, tuple[int, str, str]] = {
    "no body": (400, "REQUIRED", "a JSON body is needed, and there is none"),
    "half of a body": (400, "NOT_JSON", "the body is not JSON: Input data was truncated"),
    "text that is no JSON": (
        400,
        "NOT_JSON",
        "the body is not JSON: JSON is malformed: invalid character (byte 4)",
    ),
    "bytes that are no text": (400, "NOT_JSON", "the body is not UTF-8: byte 0 cannot be read"),
    "a list for an object": (400, "WRONG_TYPE", "must be an object, not a list"),
    "a form": (
        415,
        "UNSUPPORTED_MEDIA_TYPE",
        "Content-Type must be application/json, not text/plain",
    ),
    "a name twice": (
        400,
        "DUPLICATE",
        'type: the name "type" stands twice in one object: remove one',
    ),
    "a body too deep": (
        400,
        "TOO_DEEP",
        (
            "payload[0][0][0][0][0][0][0][0][0][0][0]: is nested too deeply, at "
            "most 64 levels are allowed"
        ),
    ),
    "a number too large": (
        400,
        "NOT_JSON",
        "the body is not JSON: Number out of range - at `$[...]`",
    ),
    "a field left out": (400, "REQUIRED", "type: is required"),
    "a field misspelt": (
        400,
        "UNKNOWN_FIELD",
        'max_retry: is not a known field, did you mean "max_retries"?',
    ),
    "two mistakes at once": (
        400,
        "INVALID",
        (
            "type: must be a string, not 5: put it in quotes, like "
            '"5"\nmax_retries: -1 is less than the minimum of 0'
        ),
    ),
    "a type that nobody knows": (
        400,
        "UNKNOWN_TYPE",
        (
            'type: "unheard" is no type of job: use compute, default, flaky, noop, '
            "notify, sleep or transform"
        ),
    ),
    "a fraction of a retry": (400, "WRONG_TYPE", "max_retries: must be a whole number, not 2.5"),
    "a key too long": (400, "TOO_LONG", "key: has 300 characters, at most 256 are allowed"),
    "two keys": (
        400,
        "BAD_KEY",
        "Idempotency-Key: is another key than `key` in the body: send one of them",
    ),
    "a state set by the client": (
        400,
        "UNKNOWN_FIELD",
        (
            "state: is not a known field, known are type, payload, max_retries, "
            "queue, priority, key and labels"
        ),
    ),
    "another namespace inside": (
        400,
        "UNKNOWN_FIELD",
        (
            "namespace: is not a known field, known are workflow, version, "
            "definition, input, key and labels"
        ),
    ),
    "nothing to start": (400, "BAD_START", "workflow: give exactly one of workflow and definition"),
    "two things to start": (
        400,
        "BAD_START",
        "workflow: give exactly one of workflow and definition",
    ),
    "a version of nothing": (
        400,
        "BAD_START",
        "version: goes only with workflow: a definition that is sent along has no number",
    ),
    "a workflow that is not there": (404, "NOT_FOUND", "there is no workflow 'nothing'"),
    "an input that does not fit": (400, "WRONG_TYPE", 'input.n: must be a whole number, not "x"'),
    "a workflow without tasks": (400, "TOO_SHORT", "tasks: must not be empty"),
    "a task that waits for itself": (
        400,
        "SELF_LOOP",
        'tasks[0].depends_on[0]: task "a" waits for itself, remove this',
    ),
    "tasks in a circle": (
        400,
        "CYCLE",
        "tasks[1].depends_on[0]: tasks wait in a circle, each for the next one: a → b → a",
    ),
    "a parent misspelt": (
        400,
        "UNKNOWN_TASK",
        'tasks[1].depends_on[0]: no task has the id "extrakt", did you mean "extract"?',
    ),
    "a bad expression": (
        400,
        "BAD_EXPRESSION",
        'output: "a[" is not a JMESPath expression: it ends too early',
    ),
    "a bad task name": (
        400,
        "BAD_NAME",
        (
            'tasks[0].id: "a b" is not a name: use letters a-z and A-Z, digits, '
            "'.', '_' and '-', beginning with a letter or a digit"
        ),
    ),
    "an array that is none": (
        400,
        "WRONG_TYPE",
        "must be an array of items: put [ and ] around them, or send a line for each",
    ),
    "an array of nothing": (400, "TOO_SHORT", "must not be empty"),
    "a page too large": (400, "OUT_OF_RANGE", "limit: 1000 is greater than the maximum of 500"),
    "a limit in words": (400, "WRONG_TYPE", 'limit: must be a whole number, not "ten"'),
    "a parameter that is not known": (
        400,
        "UNKNOWN_FIELD",
        'staet: is not a known field, did you mean "state"?',
    ),
    "a state that is none": (
        400,
        "NOT_ALLOWED",
        (
            'state[0]: must be "CANCELLED", "FAILED", "PAUSED", "PENDING", '
            '"RUNNING" or "SUCCEEDED", not "DONE"'
        ),
    ),
    "a cursor made up": (
        400,
        "BAD_CURSOR",
        "after: is not the `next` of a page of this list: leave it out to begin anew",
    ),
    "a cursor of another list": (
        400,
        "BAD_CURSOR",
        "after: is not the `next` of a page of this list: leave it out to begin anew",
    ),
    "a label without a value": (400, "BAD_FORMAT", 'label: must be name=value, not "team"'),
    "an event id that is none": (
        400,
        "BAD_FORMAT",
        'after: must be an event id such as 12.0, not "xx"',
    ),
    "a status that is none": (
        400,
        "NOT_ALLOWED",
        (
            'status: must be "completed", "dead_letter", "failed", "pending", "queued", '
            '"retrying" or "running", not "complete", did you mean "completed"?'
        ),
    ),
    "a label of strange letters": (
        400,
        "BAD_FORMAT",
        "labels.team: must be letters a-z and A-Z, digits, '.', '_' and '-', not \"a b\"",
    ),
    "a key on two lines": (
        400,
        "BAD_FORMAT",
        'key: must be printable ASCII characters, not "a\\nb"',
    ),
    "every dead letter": (
        400,
        "NO_FILTER",
        'all: give workflow or group, or `"all": true` to replay every dead letter',
    ),
    "a sort that is not offered": (
        400,
        "NOT_ALLOWED",
        'sort: must be "-created" or "created", not "name"',
    ),
    "a time that is none": (
        400,
        "WRONG_TYPE",
        "created_after: must be a time such as 2027-01-15T08:00:00Z",
    ),
    "a wait too long": (400, "OUT_OF_RANGE", "timeout: 600.0 is greater than the maximum of 60.0"),
    "a run that is not there": (
        404,
        "NOT_FOUND",
        'there is no run "01980000-0000-7000-8000-000000000001"',
    ),
    "a run with a strange name": (
        404,
        "NOT_FOUND",
        "there is nothing at this path; /docs lists what there is",
    ),
    "an event that never was": (
        400,
        "BAD_CURSOR",
        "Last-Event-ID: is not the id of an event: send one as the stream gave it, or leave it out",
    ),
    "a namespace that is no name": (
        400,
        "BAD_NAME",
        "Tidemill-Namespace: \"a b\" is not a name: use letters, digits, '.', '_' and '-'",
    ),
    "a path that is not there": (
        404,
        "NOT_FOUND",
        "there is nothing at this path; /docs lists what there is",
    ),
    "a method that is not there": (
        405,
        "METHOD_NOT_ALLOWED",
        "DELETE is not possible here, GET, HEAD, POST is",
    ),
    "a version that is no number": (
        400,
        "WRONG_TYPE",
        'number: must be a whole number, not "latest"',
    ),
}


@pytest.mark.parametrize("wrong", REQUESTS, ids=lambda wrong: wrong.name)
async def test_a_wrong_request_is_told_what_to_mend(
    wrong: Wrong, client: httpx.AsyncClient
) -> None:
    answer = await client.request(
        wrong.method, wrong.path, content=wrong.body, headers=wrong.headers
    )

    told = answer.json()
    assert (answer.status_code, told["code"], told["detail"]) == TOLD[wrong.name]
    assert answer.headers["content-type"] == "application/problem+json"
    assert told["status"] == answer.status_code
    assert told["request_id"] == answer.headers["x-request-id"]
    assert (
        told["detail"]
        == "\n".join(
            f"{one['path']}: {one['message']}" if one["path"] else one["message"]
            for one in told["errors"]
        )
        or not told["errors"]
    )


async def test_nothing_of_it_is_stored(client: httpx.AsyncClient) -> None:
    for wrong in REQUESTS:
        await client.request(wrong.method, wrong.path, content=wrong.body, headers=wrong.headers)

    assert (await client.get("/v1/runs")).json()["items"] == []
    assert (await client.get("/v1/workflows")).json()["items"] == []
