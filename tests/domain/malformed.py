"""Malformed definitions, each with the exact words that a person gets to see."""

from __future__ import annotations

from typing import Any, NamedTuple


class Refused(NamedTuple):
    """A definition with one mistake."""

    definition: Any
    code: str
    message: str


def a_task(task_id: Any = "a", **fields: Any) -> dict[str, Any]:
    return {"id": task_id, "executor": "noop", **fields}


def a_definition(*tasks: Any, **fields: Any) -> dict[str, Any]:
    return {"name": "orders", "tasks": list(tasks) or [a_task()], **fields}


NESTED: list[Any] = []
for _ in range(70):
    NESTED = [NESTED]

KNOWN_TASK_FIELDS = (
    "known are id, executor, params, depends_on, inputs, retry, timeouts, queue, labels, priority, "
    "trigger, title and description"
)
ORDER = {"type": "object", "properties": {"order_id": {"type": "string"}}}

REFUSED: list[Refused] = [
    # The document as a whole.
    Refused(
        None, "WRONG_TYPE", "must be an object, not null: give it a value or leave the field out"
    ),
    Refused([], "WRONG_TYPE", "must be an object, not a list"),
    Refused({"tasks": [a_task()]}, "REQUIRED", "name: is required"),
    Refused({"name": "orders"}, "REQUIRED", "tasks: is required"),
    Refused({"name": "orders", "tasks": []}, "TOO_SHORT", "tasks: must not be empty"),
    Refused(
        {"name": "orders", "tasks": {"a": a_task()}},
        "WRONG_TYPE",
        "tasks: must be a list, not an object",
    ),
    Refused(
        a_definition(steps=[]),
        "UNKNOWN_FIELD",
        'steps: is not a known field, did you mean "tasks"?',
    ),
    Refused(
        a_definition(labels={"-": "x"}),
        "BAD_KEY",
        "labels: has a key that is refused: must be letters a-z and A-Z, digits, '.', '_', '/' "
        "and '-', beginning with a letter or a digit, not \"-\"",
    ),
    Refused(
        a_definition(labels={"team": "ä"}),
        "BAD_FORMAT",
        "labels.team: must be letters a-z and A-Z, digits, '.', '_' and '-', not \"ä\"",
    ),
    Refused(
        a_definition(on_failure="stopp"),
        "NOT_ALLOWED",
        'on_failure: must be "continue" or "stop", not "stopp", did you mean "stop"?',
    ),
    Refused(
        a_definition(on_failure=5),
        "NOT_ALLOWED",
        'on_failure: must be "continue" or "stop", not 5',
    ),
    Refused(
        a_definition(timeout_seconds=0),
        "OUT_OF_RANGE",
        "timeout_seconds: 0 is less than or equal to the minimum of 0",
    ),
    Refused(
        a_definition(timeout_seconds="1h"),
        "WRONG_TYPE",
        'timeout_seconds: must be a number, not "1h"',
    ),
    Refused(
        a_definition(description="x" * 4_001),
        "TOO_LONG",
        "description: has 4,001 characters, at most 4,000 are allowed",
    ),
    # Names.
    Refused(
        a_definition(a_task("fetch order")),
        "BAD_NAME",
        'tasks[0].id: "fetch order" is not a name: use letters a-z and A-Z, digits, '
        "'.', '_' and '-', beginning with a letter or a digit",
    ),
    Refused(
        a_definition(a_task("раy")),  # the first two letters are Cyrillic
        "BAD_NAME",
        "tasks[0].id: \"раy\" is not a name: use letters a-z and A-Z, digits, '.', '_' and '-'; "
        'letters of other alphabets, which can look the same, are refused ("р" and "а")',
    ),
    Refused(
        a_definition(a_task("x" * 129)),
        "TOO_LONG",
        "tasks[0].id: has 129 characters, at most 128 are allowed",
    ),
    Refused(
        a_definition(a_task(5)),
        "WRONG_TYPE",
        'tasks[0].id: must be a string, not 5: put it in quotes, like "5"',
    ),
    Refused(
        a_definition(a_task(), a_task()),
        "DUPLICATE_ID",
        'tasks[1].id: "a" is already the id of tasks[0], choose another',
    ),
    Refused(
        a_definition(a_task("send-mail"), a_task("Send_Mail")),
        "LOOK_ALIKE_ID",
        'tasks[1].id: "Send_Mail" looks like "send-mail", the id of tasks[0]: '
        "ids must differ in more than case and '-', '_', '.'",
    ),
    # Fields of a task.
    Refused(a_definition(3), "WRONG_TYPE", "tasks[0]: must be an object, not 3"),
    Refused(a_definition({"id": "a"}), "REQUIRED", "tasks[0].executor: is required"),
    Refused(
        a_definition(a_task(needs=["b"])),
        "UNKNOWN_FIELD",
        'tasks[0].needs: is not a known field, did you mean "depends_on"?',
    ),
    Refused(
        a_definition(a_task(prioritty=1)),
        "UNKNOWN_FIELD",
        'tasks[0].prioritty: is not a known field, did you mean "priority"?',
    ),
    Refused(
        a_definition(a_task(zebra=1)),
        "UNKNOWN_FIELD",
        f"tasks[0].zebra: is not a known field, {KNOWN_TASK_FIELDS}",
    ),
    Refused(
        a_definition(a_task(trigger="all_sucess")),
        "NOT_ALLOWED",
        'tasks[0].trigger: must be "all_done", "all_failed", "all_succeeded", "none_failed", '
        '"one_failed" or "one_succeeded", not "all_sucess", did you mean "all_succeeded"?',
    ),
    Refused(
        a_definition(a_task(priority=101)),
        "OUT_OF_RANGE",
        "tasks[0].priority: 101 is greater than the maximum of 100",
    ),
    Refused(
        a_definition(a_task(priority=1.5)),
        "WRONG_TYPE",
        "tasks[0].priority: must be a whole number, not 1.5",
    ),
    Refused(
        a_definition(a_task("b"), a_task(priority=2.0)),
        "WRONG_TYPE",
        "tasks[1].priority: must be a whole number, written without a decimal point",
    ),
    Refused(
        a_definition(a_task(retry={"max_retries": 3.0})),
        "WRONG_TYPE",
        "tasks[0].retry.max_retries: must be a whole number, written without a decimal point",
    ),
    Refused(
        a_definition(a_task(retry=None)),
        "WRONG_TYPE",
        "tasks[0].retry: must be an object, not null: give it a value or leave the field out",
    ),
    Refused(
        a_definition(a_task(retry={"jitter": "some"})),
        "WRONG_TYPE",
        'tasks[0].retry.jitter: must be a number or "full", not "some"',
    ),
    Refused(
        a_definition(a_task(retry={"jitter": 2})),
        "OUT_OF_RANGE",
        "tasks[0].retry.jitter: 2 is greater than the maximum of 1",
    ),
    # What a task waits for.
    Refused(
        a_definition(a_task(depends_on="b")),
        "WRONG_TYPE",
        'tasks[0].depends_on: must be a list, not "b": write it as a list, like [b]',
    ),
    Refused(
        a_definition(a_task(depends_on=["a"])),
        "SELF_LOOP",
        'tasks[0].depends_on[0]: task "a" waits for itself, remove this',
    ),
    Refused(
        a_definition(a_task("fetch-order"), a_task("pay", depends_on=["fetch_order"])),
        "UNKNOWN_TASK",
        'tasks[1].depends_on[0]: no task has the id "fetch_order", did you mean "fetch-order"?',
    ),
    Refused(
        a_definition(a_task("fetch-order"), a_task("pay", inputs={"x": {"result": "fetch-ordr"}})),
        "UNKNOWN_TASK",
        'tasks[1].inputs.x.result: no task has the id "fetch-ordr", did you mean "fetch-order"?',
    ),
    Refused(
        a_definition(a_task(depends_on=["zebra"])),
        "UNKNOWN_TASK",
        'tasks[0].depends_on[0]: no task has the id "zebra"',
    ),
    Refused(
        a_definition(
            a_task("a", depends_on=["c"]),
            a_task("b", depends_on=["a"]),
            a_task("c", inputs={"order": {"result": "b"}}),
        ),
        "CYCLE",
        "tasks[1].depends_on[0]: tasks wait in a circle, each for the next one: a → c → b → a",
    ),
    # Inputs.
    Refused(
        a_definition(a_task(inputs={"x": {}})),
        "BAD_SOURCE",
        "tasks[0].inputs.x: does not say where it comes from: "
        "give exactly one of const, input, result, secret, list and object",
    ),
    Refused(
        a_definition(a_task(inputs={"x": {"const": 1, "input": "y"}})),
        "BAD_SOURCE",
        "tasks[0].inputs.x: has const and input: "
        "give exactly one of const, input, result, secret, list and object",
    ),
    Refused(
        a_definition(a_task(inputs={"x y": {"const": 1, "path": "y"}})),
        "BAD_SOURCE",
        'tasks[0].inputs["x y"].path: goes only with result: it reads from the result of a task',
    ),
    Refused(
        a_definition(a_task(inputs={"x": {"list": [1, {"object": {"y": {"result": "zebra"}}}]}})),
        "UNKNOWN_TASK",
        'tasks[0].inputs.x.list[1].object.y.result: no task has the id "zebra"',
    ),
    Refused(
        a_definition(a_task(inputs={"x": {"list": [{"list": [], "const": 1}]}})),
        "BAD_SOURCE",
        "tasks[0].inputs.x.list[0]: has const and list: "
        "give exactly one of const, input, result, secret, list and object",
    ),
    Refused(
        a_definition(a_task(inputs={"x": {"secret": "db", "const": "hunter2"}})),
        "BAD_SOURCE",
        "tasks[0].inputs.x: has const and secret: "
        "give exactly one of const, input, result, secret, list and object",
    ),
    Refused(
        a_definition(a_task(inputs={"x": {"id": 5}})),
        "UNKNOWN_FIELD",
        "tasks[0].inputs.x.id: is not a known field, known are const, input, result, path, "
        "secret, list and object; an object as it stands is written const: {...}",
    ),
    Refused(
        a_definition(a_task(inputs={"x": {"input": "order-id"}})),
        "BAD_EXPRESSION",
        "tasks[0].inputs.x.input: \"order-id\" is not a JMESPath expression: unknown token '-' at "
        'character 6; a name with "-" in it is written in double quotes, like "fetch-order".total',
    ),
    Refused(
        a_definition(a_task("b"), a_task(inputs={"x": {"result": "b", "path": "items["}})),
        "BAD_EXPRESSION",
        'tasks[1].inputs.x.path: "items[" is not a JMESPath expression: it ends too early',
    ),
    Refused(
        a_definition(a_task(inputs={"x": {"input": "ordr_id"}}), input=ORDER),
        "UNKNOWN_INPUT",
        'tasks[0].inputs.x.input: the workflow\'s input has no property "ordr_id", '
        'did you mean "order_id"?',
    ),
    # Output.
    Refused(a_definition(output=""), "TOO_SHORT", "output: must not be empty"),
    Refused(
        a_definition(output="b.total"),
        "UNKNOWN_TASK",
        'output: no task has the id "b"',
    ),
    Refused(
        a_definition(a_task("pay.card"), output="pay.card.total"),
        "UNKNOWN_TASK",
        'output: no task has the id "pay"; an id with a dot is quoted: "pay.card"',
    ),
    Refused(
        a_definition(output="size(a)"),
        "BAD_EXPRESSION",
        'output: "size(a)" calls size() at character 1, which is not a function of JMESPath',
    ),
    # The schema of the input.
    Refused(
        a_definition(input={"order_id": {"type": "string"}}),
        "BAD_SCHEMA",
        "input.order_id: is not a keyword of JSON Schema; fields of the input are listed under "
        '"properties"',
    ),
    Refused(
        a_definition(input={"propertys": {}}),
        "BAD_SCHEMA",
        'input.propertys: is not a keyword of JSON Schema, did you mean "properties"?',
    ),
    Refused(
        a_definition(input={"type": "array"}),
        "BAD_SCHEMA",
        'input.type: must be "object": the input of a run is an object',
    ),
    Refused(
        a_definition(input={"$schema": "http://json-schema.org/draft-07/schema#"}),
        "BAD_SCHEMA",
        'input.$schema: must be "https://json-schema.org/draft/2020-12/schema", or left out',
    ),
    Refused(
        a_definition(input={"required": "order_id"}),
        "WRONG_TYPE",
        'input.required: must be a list, not "order_id": write it as a list, like [order_id]',
    ),
    Refused(
        a_definition(input={"properties": {"a": {"$ref": "https://example.com/a.json"}}}),
        "BAD_SCHEMA",
        'input.properties.a.$ref: refers to "https://example.com/a.json": only places in this '
        'schema, like "#/$defs/address", can be referred to',
    ),
    Refused(
        a_definition(input={"properties": {"a": {"$ref": "#/$defs/a"}}}),
        "BAD_SCHEMA",
        'input.properties.a.$ref: refers to "#/$defs/a", which is not in this schema',
    ),
    Refused(
        a_definition(input={"properties": {"a": {"items": {"$ref": "#/properties/a"}}}}),
        "BAD_SCHEMA",
        'input.properties.a.items.$ref: refers to itself through "#/properties/a": '
        "it would never end",
    ),
    Refused(
        a_definition(input={"$id": "https://example.com/a.json"}),
        "BAD_SCHEMA",
        'input.$id: is not supported here: use "$ref" with "#/$defs/..."',
    ),
    Refused(
        a_definition(input={"properties": {"a": {"pattern": "(?=x)"}}}),
        "BAD_SCHEMA",
        'input.properties.a.pattern: "(?=x)" is not a "regex": a pattern has no look-around '
        "and no back-references",
    ),
    Refused(
        a_definition(input={"properties": {"a": {"type": "string", "default": 5}}}),
        "BAD_SCHEMA",
        "input.properties.a.default: is refused by its own schema: "
        'a: must be a string, not 5: put it in quotes, like "5"',
    ),
    # What JSON cannot hold.
    Refused(
        a_definition(a_task(params={"x": float("nan")})),
        "BAD_NUMBER",
        "tasks[0].params.x: is nan, which JSON cannot hold",
    ),
    Refused(
        a_definition(a_task(params={"x": 2**64})),
        "BAD_NUMBER",
        "tasks[0].params.x: is too large a number, put it in quotes",
    ),
    Refused(
        a_definition(a_task(params={1: 2})),
        "BAD_KEY",
        "tasks[0].params: has the key 1, which is not text: put it in quotes",
    ),
    Refused(
        a_definition(a_task(params={"x": {1, 2}})),
        "NOT_JSON",
        "tasks[0].params.x: is of type set, which JSON cannot hold",
    ),
    Refused(
        a_definition(a_task(params={"x": "\ud800"})),
        "NOT_JSON",
        "tasks[0].params.x: is not valid text: it holds half a character",
    ),
    Refused(
        a_definition(a_task(params={"x": NESTED})),
        "TOO_DEEP",
        "tasks[0].params.x[0][0][0][0][0][0][0][0]: is nested too deeply, "
        "at most 64 levels are allowed",
    ),
]
