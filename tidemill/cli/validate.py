"""`tidemill validate`: is a definition right, and could this machine run it?"""

from __future__ import annotations

import click

from tidemill.cli.options import absolute


@click.command(short_help="Check a definition without running it.")
@click.argument("file")
@click.option(
    "--import",
    "imports",
    multiple=True,
    metavar="MODULE|FILE",
    help="Python functions for tasks, as for `run`; may be repeated.",
)
def validate(file: str, imports: tuple[str, ...]) -> None:
    """Check the workflow in FILE and print every problem with its place; exit 2 if there is one.

    Checked are the definition itself, that its imports can be imported, that its functions are in
    them, and the params of its tasks.
    """
    from tidemill.cli.rehearsed import load_rehearsed
    from tidemill.cli.views.text import plural, printable
    from tidemill.runtime.offering import serving
    from tidemill.runtime.settings import Settings

    workflow = load_rehearsed(file, absolute(imports)).workflow
    serving(Settings(), [workflow])  # labels that disagree
    click.echo(f"{printable(workflow.name)}: {plural(len(workflow.tasks), 'task')}, no problems")
