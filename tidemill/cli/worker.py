"""`tidemill worker`: run tasks for schedulers on this machine or on others."""

from __future__ import annotations

import click

from tidemill.cli.options import settings_options
from tidemill.runtime.settings import Settings


@click.command(short_help="Run tasks for schedulers, here or elsewhere.")
@settings_options("worker")
def worker(settings: Settings) -> None:
    """Run tasks whose queue and labels fit.

    SIGTERM or Ctrl-C takes no more tasks, lets the running ones finish within --grace and hands the
    rest back; a second one ends it at once.

    \b
    tidemill worker --connect scheduler-1:7300 --import flow.py --token-file token
    tidemill worker --connect 127.0.0.1:7300 --queues gpu --labels zone=north
    """
    from tidemill.runtime.worker_process import main

    main(settings)
