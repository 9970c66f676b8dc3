"""`tidemill run`: start a workflow and see it to its end."""

from __future__ import annotations

import click

from tidemill.cli.options import absolute, complete, read_input, store_option, worker_options


@click.command(short_help="Run a workflow to its end.")
@click.argument("file")
@click.option("--input", "value", metavar="JSON|@FILE", help="The run's input.")
@worker_options
@store_option
def run(
    file: str, value: str | None, imports: tuple[str, ...], slots: int, workers: int, store: str
) -> int:
    """Run the workflow in FILE to its end; exit 0 when it succeeded, 1 when it did not.

    FILE is YAML, JSON, or Python: path.py, path.py:name or module:name. Ctrl-C lets running tasks
    finish and leaves the run for `tidemill resume`; a second Ctrl-C stops at once.
    """
    from tidemill.cli.describe import load_definition
    from tidemill.cli.session import RunSession
    from tidemill.domain.inputs import prepare_input
    from tidemill.runtime.config import EmbeddedSettings, parse_store, serving

    loaded = load_definition(file)
    workflow = loaded.workflow
    given = read_input(value)
    prepare_input(workflow.input, given)  # refused here, before anything is started
    settings = EmbeddedSettings(
        store=parse_store(store),
        workers=workers,
        slots=slots,
        imports=(*loaded.imports, *absolute(imports)),
    )
    return complete(RunSession(serving(settings, [workflow])).run_new(workflow, given))
