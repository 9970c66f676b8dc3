"""The greeting: whether a worker that says Hello gets a session, and if not, why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tidemill.domain.routes import OFFER_CHARACTERS_MAX, OFFERS_MAX, is_function
from tidemill.domain.workflow import NAME_CHARACTERS_MAX, NAME_PATTERN
from tidemill.protocol.messages import PROTOCOL_VERSION, Hello, WorkerMessage
from tidemill.scheduler.config import SchedulerConfig

SLOTS_MAX = 10_000
QUEUES_MAX = 64
LABELS_MAX = 64
EXECUTORS_MAX = 256
TOKENS_MAX = 50_000  # held and finished, some 3 MB on the wire
SECRET_CHARACTERS_MAX = 256
SHOWN_CHARACTERS_MAX = 40

_NAME = re.compile(NAME_PATTERN)
_LABEL = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$")
_LABEL_VALUE = re.compile(r"^[A-Za-z0-9._-]{0,63}$")
_NAME_RULE = f"use 1 to {NAME_CHARACTERS_MAX} letters, digits, dots, hyphens and underscores"


def refusal_of(message: WorkerMessage | None, config: SchedulerConfig) -> str | None:
    """Why the sender of a first message gets no session; None when it does."""
    if not isinstance(message, Hello):
        return "the first message must be Hello"
    return next(_problems(message, config), None)


def _problems(hello: Hello, config: SchedulerConfig) -> Iterator[str]:
    # First of all: nothing else of another version can be judged.
    if hello.protocol != PROTOCOL_VERSION:
        yield f"protocol {hello.protocol} is not spoken here, only {PROTOCOL_VERSION}"
    if not 1 <= len(hello.worker) <= NAME_CHARACTERS_MAX or not hello.worker.isprintable():
        yield f"worker {_shown(hello.worker)}: use 1 to {NAME_CHARACTERS_MAX} printable characters"
    if not _is_name(hello.namespace):
        yield f"namespace {_shown(hello.namespace)} is malformed: {_NAME_RULE}"
    # None, when a worker that leaves comes back only to hand over what it still owes.
    if not 0 <= hello.slots <= SLOTS_MAX:
        yield f"slots must be from 0 to {SLOTS_MAX}, not {hello.slots}"
    yield from _queue_problems(hello.queues)
    yield from _label_problems(hello.labels)
    yield from _executor_problems(hello.executors, config.executors_allowed)
    yield from _offer_problems(hello.offers, config.executors_allowed)
    if len(hello.held) + len(hello.finished) > TOKENS_MAX:
        yield f"more than {TOKENS_MAX} grants are held or finished"
    for proof in (hello.session, hello.secret):
        if proof is not None and not (len(proof) <= SECRET_CHARACTERS_MAX and proof.isprintable()):
            yield f"session and secret have at most {SECRET_CHARACTERS_MAX} printable characters"


def _queue_problems(queues: Sequence[str]) -> Iterator[str]:
    if not queues:
        yield "a worker must serve at least one queue"
    if len(queues) > QUEUES_MAX:
        yield f"a worker may serve {QUEUES_MAX} queues, not {len(queues)}"
    for queue in queues:
        if not _is_name(queue):
            yield f"queue {_shown(queue)} is malformed: {_NAME_RULE}"


def _label_problems(labels: dict[str, str]) -> Iterator[str]:
    if len(labels) > LABELS_MAX:
        yield f"a worker may have {LABELS_MAX} labels, not {len(labels)}"
    for name, value in labels.items():
        if not (_LABEL.fullmatch(name) and _LABEL_VALUE.fullmatch(value)):
            yield (
                f"label {_shown(f'{name}={value}')} is malformed: use up to 63 letters, digits, "
                "dots, hyphens and underscores"
            )


def _executor_problems(executors: Sequence[str], allowed: Sequence[str]) -> Iterator[str]:
    if len(executors) > EXECUTORS_MAX:
        yield f"a worker may offer {EXECUTORS_MAX} executors, not {len(executors)}"
    for executor in executors:
        if not _is_name(executor):
            yield f"executor {_shown(executor)} is malformed: {_NAME_RULE}"
        if allowed and executor not in allowed:
            yield f"executor {_shown(executor)} is not known here, only {', '.join(allowed)}"


def _offer_problems(offers: Sequence[str], allowed: Sequence[str]) -> Iterator[str]:
    if len(offers) > OFFERS_MAX:
        yield f"a worker may offer {OFFERS_MAX} functions, not {len(offers)}"
        return
    for offer in offers:
        executor, _, function = offer.partition(":")
        if len(offer) > OFFER_CHARACTERS_MAX or not _is_name(executor) or not is_function(function):
            yield f"offer {_shown(offer)} is malformed: write executor:module:function"
        if allowed and executor not in allowed:
            yield f"executor {_shown(executor)} is not known here, only {', '.join(allowed)}"


def _is_name(text: str) -> bool:
    return len(text) <= NAME_CHARACTERS_MAX and _NAME.fullmatch(text) is not None


def _shown(text: str) -> str:
    cut = text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]}…"
    return ascii(cut) if not cut.isprintable() else repr(cut)
