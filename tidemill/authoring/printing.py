"""A definition as YAML for people: what is as usual is left out, and reading it gives it back."""

from __future__ import annotations

from typing import Any

import msgspec

from tidemill.domain.workflow import TaskSpec, Workflow

LINE_CHARACTERS = 100
_FIRST = ("name", "title", "description", "labels", "imports", "input")


def to_yaml(workflow: Workflow, imports: tuple[str, ...] = ()) -> str:
    """The text of a workflow file; `imports` are what a worker has to import to run it."""
    import yaml

    value = to_plain(workflow)
    if imports:
        value["imports"] = list(imports)
    ordered = {name: value.pop(name) for name in _FIRST if name in value} | value
    return str(
        yaml.dump(
            ordered,
            Dumper=_dumper(),
            sort_keys=False,
            allow_unicode=True,
            width=LINE_CHARACTERS,
            default_flow_style=None,  # what holds nothing further stands on one line
        )
    )


def to_plain(workflow: Workflow) -> dict[str, Any]:
    """The definition as JSON data, without what has its default."""
    plain = _without_defaults(workflow)
    plain["tasks"] = [_plain_task(task) for task in workflow.tasks]
    return plain


def _plain_task(task: TaskSpec) -> dict[str, Any]:
    plain = _without_defaults(task)
    for name in ("retry", "timeouts"):
        if name in plain:
            plain[name] = _without_defaults(getattr(task, name))
    return plain


def _without_defaults(value: msgspec.Struct) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for field in msgspec.structs.fields(value):
        part = getattr(value, field.name)
        if field.required or part != _default(field):
            kept[field.encode_name] = msgspec.to_builtins(part)
    return kept


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _dumper() -> Any:
    """Writes text so that it is read back as text: more looks like a number to us than to YAML."""
    import yaml

    from tidemill.sdk.yaml_events import resolve

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = None
        if not text.replace("\n", "").isprintable() or not isinstance(resolve(text), str):
            style = '"'
        elif "\n" in text:
            style = "|"
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent)
    return Dumper


__all__ = ["to_plain", "to_yaml"]
