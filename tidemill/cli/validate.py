"""`tidemill validate`: is a definition right, and could this machine run it?"""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.options import absolute, json_option
from tidemill.cli.output import answer

REFUSED = 2


@click.command(short_help="Check a definition without running it.")
@click.argument("file")
@click.option(
    "--import",
    "imports",
    multiple=True,
    metavar="MODULE|FILE",
    help="Python functions for tasks, as for `run`; may be repeated.",
)
@json_option
def validate(file: str, imports: tuple[str, ...], as_json: bool) -> int:
    """Check the workflow in FILE and print every problem with its place; exit 2 if there is one.

    Checked are the definition itself, that its imports can be imported, that its functions are in
    them, and the params of its tasks. Of a Python file that is every workflow in it, or the one
    that FILE:NAME names.

    \b
    tidemill validate flow.yaml
    tidemill validate flow.yaml --json | jq '.problems[].line'
    """
    from tidemill.cli.views.text import plural, printable
    from tidemill.domain.errors import InvalidInput

    try:
        workflows = _checked(file, absolute(imports))
    except InvalidInput as error:
        if not as_json:
            raise
        answer({"valid": False, "problems": error.problems}, "", as_json)
        return REFUSED
    words = [
        f"{printable(one.name)}: {plural(len(one.tasks), 'task')}, no problems" for one in workflows
    ]
    found = [{"name": one.name, "tasks": len(one.tasks)} for one in workflows]
    answer({"valid": True, "problems": [], "workflows": found}, "\n".join(words), as_json)
    return 0


def _checked(file: str, imports: tuple[str, ...]) -> list[Any]:
    from tidemill.cli.rehearsed import load_all_rehearsed
    from tidemill.runtime.offering import serving
    from tidemill.runtime.settings import Settings

    workflows = [one.workflow for one in load_all_rehearsed(file, imports)]
    for one in workflows:
        serving(Settings(), [one])  # labels that disagree
    return workflows
