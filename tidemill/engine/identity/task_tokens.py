"""Tokens of tasks: with one, the code of an attempt shows other services who calls.

A token speaks for one attempt, in words that only whoever has the signing key can write. Whether
that attempt still runs is looked up when somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidemill.domain.errors import NotFound
from tidemill.domain.identifiers import SECOND, RunId, Token
from tidemill.domain.principals import Principal, PrincipalKind, TaskAttempt
from tidemill.domain.task_run import GRANTED
from tidemill.ports.identity import TASK, TokenSigner
from tidemill.ports.reading import RunReader

Claims = Mapping[str, str | int]


class _Stated(msgspec.Struct, frozen=True):
    """The claims beside those that every token has; the subject is `run/position/epoch`."""

    sub: str
    exp: int
    ns: str = ""
    workflow: str = ""
    task: str = ""
    attempt: int = 0


def sign_task(
    signer: TokenSigner, namespace: str, attempt: TaskAttempt, seconds: float | None
) -> str:
    """A token that lives as long as the attempt may, or a day."""
    most = TASK.seconds_max
    lives = most if seconds is None or seconds >= most else int(seconds) + 1
    run_id, position, epoch = attempt.token
    return signer.sign(
        TASK,
        f"{run_id}/{position}/{epoch}",
        lives,
        ns=namespace,
        workflow=attempt.workflow,
        task=attempt.task,
        attempt=attempt.attempt,
    )


def principal_of_task(claims: Claims) -> Principal:
    """Whoever a token speaks for, whether or not that attempt still runs."""
    stated = msgspec.convert(claims, _Stated)
    return Principal(
        kind=PrincipalKind.TASK,
        id=stated.sub,
        name=stated.task or stated.sub,
        namespace=stated.ns,
        bound=True,
        credential=stated.sub,
        expires_at=stated.exp * SECOND,
        attempt=_attempt_of(stated),
    )


def _attempt_of(stated: _Stated) -> TaskAttempt | None:
    run_id, *numbers = stated.sub.split("/")
    if len(numbers) != 2 or not all(one.isascii() and one.isdecimal() for one in numbers):
        return None
    position, epoch = map(int, numbers)
    return TaskAttempt(
        token=Token(RunId(run_id), position, epoch),
        workflow=stated.workflow,
        task=stated.task,
        attempt=stated.attempt,
    )


async def is_running(reader: RunReader, principal: Principal) -> bool:
    """Whether that very attempt holds its task now; one that was asked to stop still does."""
    if principal.attempt is None:
        return False
    token = principal.attempt.token
    try:
        task = await reader.task(principal.namespace, token.key)
    except NotFound:
        return False
    return task.epoch == token.epoch and task.state in GRANTED
