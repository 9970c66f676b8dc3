"""The JSON Schema of workflow definitions, made from the types and published for editors."""

from __future__ import annotations

from typing import Any

import msgspec

from tidemill.domain.workflow import Workflow

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_DESCRIPTIONS: dict[str, dict[str, str]] = {
    "Workflow": {
        "name": "The name under which versions of this workflow are kept.",
        "tasks": "The tasks, in any order; what they wait for makes the order.",
        "title": "What people see instead of the name; any text.",
        "description": "What the workflow is for.",
        "labels": "Words to find runs by.",
        "input": "A JSON Schema of the run's input, an object; defaults in it are filled in.",
        "output": "A JMESPath expression over the results by task id: the result of the run.",
        "timeout_seconds": "How long a run may take; without it there is no limit.",
        "on_failure": "Whether other branches run to their end when a task fails for good.",
    },
    "TaskSpec": {
        "id": "The name of the task in this workflow.",
        "executor": "What runs the task: python, shell, http, noop, sleep, or a plug-in.",
        "params": "Settings of the executor.",
        "depends_on": "Tasks that must end first. Reading a task's result implies it.",
        "inputs": "Values handed to the task: constants, run input, results of other tasks.",
        "retry": "When a failed attempt is followed by another one.",
        "timeouts": "How long the task may wait and run.",
        "queue": "Which workers may run the task: those that serve this queue.",
        "labels": "Labels that a worker must have to run the task.",
        "priority": "Higher goes first among tasks that wait in the same queue.",
        "trigger": "What the endings of the parents must be like for the task to run.",
        "title": "What people see instead of the id; any text.",
        "description": "What the task does.",
    },
    "Source": {
        "const": "This very value.",
        "input": "A JMESPath expression over the run's input.",
        "result": "The id of a task whose result is read; it must end first.",
        "path": "A JMESPath expression over that result; without it, the whole result.",
        "secret": "The name of a secret: the worker looks it up, and nobody stores its value.",
        "list": "A list, each part of which is a constant or comes from somewhere itself.",
        "object": "An object, each field of which is a constant or comes from somewhere itself.",
    },
    "RetryPolicy": {
        "max_retries": "How many attempts may follow the first one.",
        "base_seconds": "The wait before the first retry.",
        "factor": "How much longer each wait is than the one before.",
        "cap_seconds": "The longest wait.",
        "jitter": 'The random share of a wait, from 0 to 1; "full" for anything up to the wait.',
        "final_errors": "Names of errors that no retry can mend.",
        "max_losses": "How many times a worker may be lost under the task.",
    },
    "Timeouts": {
        "attempt_seconds": "How long one attempt may run.",
        "queue_seconds": "How long the task may wait for a worker.",
        "heartbeat_seconds": "How long the task may be silent while it runs.",
    },
}


def workflow_json_schema() -> dict[str, Any]:
    """The schema of a stored definition, as `check_workflow` applies it."""
    schema = msgspec.json.schema(Workflow)
    for type_name, fields in _DESCRIPTIONS.items():
        definition = schema["$defs"][type_name]
        definition["description"] = _unwrapped(definition["description"])
        for field, text in fields.items():
            definition["properties"][field]["description"] = text
    return {
        "$schema": DIALECT,
        "title": "Tidemill workflow",
        "description": "A named DAG of tasks for Tidemill.",
        **schema,
    }


def workflow_file_json_schema() -> dict[str, Any]:
    """The schema of a workflow file, which may also say what a worker has to import."""
    schema = workflow_json_schema()
    schema["title"] = "Tidemill workflow file"
    schema["$defs"]["Workflow"]["properties"] |= {
        "imports": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": 1_000},
            "maxItems": 100,
            "default": [],
            "description": "Python modules, or files beside this one, with the task functions.",
        },
        "$schema": {"type": "string", "description": "Where editors find this schema."},
    }
    return schema


def _unwrapped(docstring: str) -> str:
    return " ".join(docstring.split())


__all__ = ["workflow_file_json_schema", "workflow_json_schema"]
