"""`tidemill run`: start a workflow and see it to its end."""

from __future__ import annotations

from dataclasses import replace

import click

from tidemill.cli.options import json_option, read_input, settings_options
from tidemill.runtime.loops import run_serving
from tidemill.runtime.offering import serving
from tidemill.runtime.settings import Settings


@click.command(short_help="Run a workflow to its end.")
@click.argument("file")
@click.option("--input", "value", metavar="JSON|@FILE", help="The run's input.")
@json_option
@settings_options("run")
def run(file: str, value: str | None, as_json: bool, settings: Settings) -> int:
    """Run the workflow in FILE to its end; exit 0 when it succeeded, 1 when it did not.

    FILE is YAML, JSON, or Python: path.py, path.py:name or module:name. Ctrl-C lets running tasks
    finish, for as long as --grace says, and leaves the run for `tidemill resume`; a second Ctrl-C
    stops at once.

    \b
    tidemill run flow.yaml --input '{"city": "Porto"}'
    tidemill run flow.py --workers 4
    tidemill run flow.py --json | jq .result
    """
    from tidemill.cli.rehearsed import load_rehearsed
    from tidemill.cli.session import RunSession
    from tidemill.domain.inputs import prepare_input

    loaded = load_rehearsed(file, settings.imports)
    workflow = loaded.workflow
    given = read_input(value)
    prepare_input(workflow.input, given)  # refused here, before anything is started
    settings = replace(settings, imports=(*loaded.imports, *settings.imports))
    session = RunSession(serving(settings, [workflow]), quiet=as_json)
    code = run_serving(session.run_new(workflow, given))
    if as_json:
        session.print_run()
    return code
