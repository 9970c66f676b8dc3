"""What is known about a task besides its row: what it was given, and how far it has come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tidemill.api.services import Services
from tidemill.domain.errors import InvalidInput
from tidemill.domain.identifiers import TaskKey
from tidemill.domain.plan import Node, Plan
from tidemill.domain.references import resolve_inputs
from tidemill.domain.run import Run
from tidemill.domain.task_run import TaskState
from tidemill.protocol.resources import TaskView
from tidemill.protocol.resources.tasks import TaskProgress


async def input_of(services: Services, run: Run, plan: Plan, node: Node) -> Any:
    """What a task was given, or would be given now; problems where that cannot be said."""
    payloads = services.store.payloads
    inputs = await payloads.inputs([run.id])
    results = await payloads.results([TaskKey(run.id, parent) for parent in node.references])
    by_name = {
        plan.nodes[key.position].id: msgspec.json.decode(data) for key, data in results.items()
    }
    try:
        return resolve_inputs(
            node.spec.inputs, msgspec.json.decode(inputs.get(run.id, b"null")), by_name
        )
    except InvalidInput as error:
        return {"problems": [str(problem) for problem in error.problems]}


def with_progress(services: Services, run: Run, views: Sequence[TaskView]) -> tuple[TaskView, ...]:
    """The same tasks, those that run with what their workers last said."""
    said = {one.token.position: one for one in services.progress(run.id)}
    return tuple(
        msgspec.structs.replace(
            view,
            progress=TaskProgress(
                fraction=said[view.position].fraction, message=said[view.position].message
            ),
        )
        if view.state is TaskState.RUNNING and view.position in said
        else view
        for view in views
    )
