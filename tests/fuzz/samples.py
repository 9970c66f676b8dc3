"""Things to ask about: without them most requests would end at 404."""

from __future__ import annotations

from typing import Any

import httpx

from tests.api.crew import a_definition, one_task
from tests.api.stage import JOB_TYPES


async def make_samples(client: httpx.AsyncClient) -> dict[str, Any]:
    """Store some of everything; values of path parameters by the beginning of the path."""
    for definition in (a_definition("hello"), one_task("boom", "fails")):
        await _made(client, "/v1/workflows", definition)
    ended = await _run(client, a_definition("hello"))
    failed = [await _run(client, one_task("boom", "fails")) for _ in range(3)]
    open_runs = [await _run(client, one_task("hold", "waits"), wait=False) for _ in range(3)]
    job = (await _made(client, "/v1/jobs", {"type": "noop"}))["id"]
    steps = [{"name": "first", "type": "noop"}, {"name": "then", "type": "noop"}]
    chain = (await _made(client, "/api/v1/workflows", {"name": "chain", "steps": steps}))["id"]
    draft = (await _made(client, "/api/workflows", {"name": "draft"}))["id"]
    await _made(client, "/workflows", {"workflowId": "dag-1", "tasks": [{"taskId": "a"}]})
    user = {"email": "ada@mill.test", "password": "a mill by the tide"}
    runs = [ended, *failed, *open_runs, job, "dag-1"]
    return {
        "types": list(JOB_TYPES),
        "paths": {
            "/v1/workflows": {"name": ["hello", "fails"], "number": ["1"]},
            "/v1/runs": {"run_id": runs, "task": ["only", "pick", "ship"]},
            "/v1/dead-letters": {"run_id": failed, "task": ["only"]},
            "/v1/jobs": {"job_id": [job]},
            "/v1/namespaces": {"name": ["default"]},
            "/v1/users": {"user_id": [(await _made(client, "/v1/users", user))["id"]]},
            "/api/v1/jobs": {"job_id": [job]},
            "/api/v1/workflows": {"chain_id": [chain]},
            "/api/workflows": {"workflow_id": [draft]},
            "/workflows": {"workflow_id": ["dag-1"]},
        },
    }


async def _made(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post(path, json=body)
    assert answer.is_success, f"{path}: {answer.text}"
    made: dict[str, Any] = answer.json()
    return made


async def _run(client: httpx.AsyncClient, definition: dict[str, Any], *, wait: bool = True) -> str:
    run_id: str = (await _made(client, "/v1/runs", {"definition": definition}))["id"]
    if wait:
        await client.get(f"/v1/runs/{run_id}/wait?timeout=10")
    return run_id
