"""`tidemill print`: a definition as others read it, whatever it is written in."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tidemill.cli.options import json_option


@click.command("print", short_help="Print a definition as YAML, JSON or Python.")
@click.argument("file")
@click.option("--python", "as_python", is_flag=True, help="Print Python code.")
@json_option
def print_command(file: str, as_json: bool, as_python: bool) -> None:
    """Print the workflow in FILE as YAML, without what is left at its default.

    FILE is Python, YAML or JSON, as for `run`. What is printed is a workflow file with the same
    definition, kept beside the Python file whose functions it names.

    \b
    tidemill print flow.py > flow.yaml
    tidemill print shop.flows:nightly --json
    tidemill print flow.yaml --python > flow.py
    """
    import msgspec

    from tidemill.authoring.printing import to_plain, to_yaml
    from tidemill.authoring.python_printing import to_python
    from tidemill.cli.describe import load_definition

    loaded = load_definition(file)
    if as_json:
        text = msgspec.json.format(msgspec.json.encode(to_plain(loaded.workflow)))
        click.echo(text.decode())
        return
    if as_python:
        click.echo(to_python(loaded.workflow), nl=False)
        return
    imports = tuple(_beside(file, name) for name in loaded.imports)
    click.echo(to_yaml(loaded.workflow, imports), nl=False)


def _beside(file: str, imported: str) -> str:
    """A file is named relative to the workflow file, which belongs beside the one it came from."""
    if not imported.endswith(".py"):
        return imported
    folder = Path(file.partition(".py:")[0]).resolve().parent
    return Path(os.path.relpath(imported, folder)).as_posix()
