"""The published JSON Schema of workflow files."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs

from tidemill.domain.definition_schema import workflow_file_json_schema, workflow_json_schema

PUBLISHED = Path(__file__).parents[2] / "docs" / "workflow.schema.json"


def test_the_published_schema_is_up_to_date() -> None:
    current = json.dumps(workflow_file_json_schema(), indent=2) + "\n"

    # To renew it: write `current` to the file.
    assert PUBLISHED.read_text(encoding="utf-8") == current


def test_the_schema_is_a_schema() -> None:
    jsonschema_rs.meta.validate(workflow_file_json_schema())


def test_every_field_is_described() -> None:
    definitions = workflow_json_schema()["$defs"]

    bare = [
        f"{name}.{field}"
        for name, definition in definitions.items()
        for field, schema in definition.get("properties", {}).items()
        if "description" not in schema
    ]

    assert bare == []


def test_only_a_file_may_have_imports() -> None:
    stored = workflow_json_schema()["$defs"]["Workflow"]["properties"]
    in_file = workflow_file_json_schema()["$defs"]["Workflow"]["properties"]

    assert in_file.keys() - stored.keys() == {"imports", "$schema"}
