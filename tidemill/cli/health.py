"""`tidemill health`: ask a role how it is."""

from __future__ import annotations

import click

from tidemill.cli.options import complete, json_option
from tidemill.cli.output import say


@click.command(short_help="Ask a role whether it is ready.")
@click.argument("endpoint", metavar="HOST:PORT")
@json_option
def health(endpoint: str, as_json: bool) -> int:
    """Ask the role at HOST:PORT; exit 0 when it is ready, 1 when it is not.

    HOST:PORT is its --health, or the --listen of `up` and `api`.

    \b
    tidemill health 127.0.0.1:8080
    """
    return complete(_health(endpoint, as_json))


async def _health(endpoint: str, as_json: bool) -> int:
    from tidemill.cli.views.listing import print_json
    from tidemill.cli.views.text import printable
    from tidemill.domain.errors import InvalidInput, Problem
    from tidemill.runtime.health import ask_health

    try:
        answer = await ask_health(endpoint)
    except ValueError as error:
        problem = Problem(path="HOST:PORT", message=str(error), code="endpoint")
        raise InvalidInput([problem]) from error
    except (OSError, TimeoutError) as error:
        say(f"{endpoint} does not answer: {error or 'no answer in time'}", err=True)
        return 1
    if as_json:
        print_json(answer)
    else:
        say(f"{printable(answer.role)} is {'ready' if answer.ready else 'not ready'}")
        for line in (*answer.reasons, *answer.notes):
            say(f"  {printable(line)}")
    return 0 if answer.ready else 1
