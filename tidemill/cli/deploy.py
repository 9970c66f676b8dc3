"""`tidemill deploy`: put workflows on a server, each as the latest version of its name."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, link_options
from tidemill.cli.options import json_option
from tidemill.cli.output import say, width


@click.command(short_help="Deploy workflows to a server.")
@click.argument("sources", metavar="MODULE|FILE[:NAME]...", nargs=-1, required=True)
@json_option
@link_options
def deploy(sources: tuple[str, ...], as_json: bool, link: Link) -> None:
    """Deploy the workflows in Python modules, Python files, YAML or JSON files.

    All are read and checked before the first one is sent. A workflow whose content the server has
    as its latest version is left as it is.

    \b
    tidemill deploy flow.py
    tidemill deploy shop.flows nightly.yaml --json
    """
    definitions = _read(sources)

    async def work(reached: Any) -> None:
        deployed = [await reached.client.deploy(each) for each in definitions]
        _tell(deployed, as_json)

    link.run(work, changes=True, creates=True)


def _read(sources: tuple[str, ...]) -> list[Any]:
    """Every workflow, each name once; all problems of a source at once."""
    from tidemill.authoring.submitting import refuse_local
    from tidemill.cli.describe import load_definitions
    from tidemill.domain.errors import InvalidInput, Problem

    homes: dict[str, str] = {}
    found: list[Any] = []
    for source in sources:
        for loaded in load_definitions(source):
            name = loaded.workflow.name
            refuse_local(loaded.workflow)
            if name in homes:
                text = f"the workflow {name} is in {homes[name]} too: give one of them"
                raise InvalidInput([Problem(path=source, message=text, code="DUPLICATE_NAME")])
            homes[name] = source
            found.append(loaded.workflow)
    return found


def _tell(deployed: list[Any], as_json: bool) -> None:
    from tidemill.cli.views.listing import print_json
    from tidemill.cli.views.text import printable, table

    if as_json:
        print_json(deployed)
        return
    rows = [
        (printable(each.name), str(each.version), "new" if each.created else "unchanged")
        for each in deployed
    ]
    for line in table(("WORKFLOW", "VERSION", "STATE"), rows, width()):
        say(line)
