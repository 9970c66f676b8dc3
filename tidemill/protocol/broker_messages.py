"""What workers and schedulers say to each other over a broker; every message is a CloudEvent.

Any of them may be lost, doubled, late or out of order. A worker repeats what it was not answered,
and the store decides what counts. User data travels as the JSON that it is.

| topic | key | who says it | what |
|---|---|---|---|
| tasks.… | none | schedulers, after the commit | Command |
| reports | run id, session; said again: none | workers | Started, Completed, …, Goodbye |
| heartbeats | session, or scheduler | workers, schedulers | Heartbeat, Marker |
| answers | session | schedulers | Answer |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import Meta, Raw

from tidemill.domain.identifiers import Moment, RunId, SessionId, Token
from tidemill.domain.routes import OFFER_CHARACTERS_MAX
from tidemill.domain.workflow import NAME_CHARACTERS_MAX
from tidemill.protocol.cloud_events import (
    JSON_TYPE,
    CloudEvent,
    MalformedEvent,
    cloud_event_type,
    encode_cloud_event,
    source_of,
    time_of,
    type_name,
)

BROKER_PROTOCOL_VERSION = 1
MESSAGE_BYTES_MAX = 1_000_000
"""Of one message: what a broker takes as it comes out of the box."""

REPORTS = "reports"
HEARTBEATS = "heartbeats"
ANSWERS = "answers"
SCHEDULERS = "schedulers"
"""The group in which schedulers share the reports."""

SLOTS_MAX = 10_000
QUEUES_MAX = 100
LABELS_MAX = 64
TOKENS_MAX = 20_000
HEARTBEAT_OFFERS_MAX = 1_000
"""Functions that a worker may offer over a broker, where every heartbeat names them."""

NUMBER_MAX = 2**31 - 1

RunIdText: TypeAlias = Annotated[
    str, Meta(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
]
SessionText: TypeAlias = Annotated[str, Meta(pattern=r"^broker-[0-9A-Za-z_-]{1,64}$")]
Text: TypeAlias = Annotated[str, Meta(max_length=200, pattern=r"^[^\x00]*$")]
NameText: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=NAME_CHARACTERS_MAX, pattern=r"^[^\x00]*$")
]
Offer: TypeAlias = Annotated[str, Meta(max_length=OFFER_CHARACTERS_MAX, pattern=r"^[^\x00]*$")]
Number: TypeAlias = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=31_536_000)]


class TokenData(NamedTuple):
    """A token as it travels in lists: run id, position, epoch."""

    run_id: RunIdText
    position: Number
    epoch: Number


class BoundData(NamedTuple):
    """A token that may begin, and the number of the `started` that is answered."""

    run_id: RunIdText
    position: Number
    epoch: Number
    number: Count


Tokens: TypeAlias = Annotated[tuple[TokenData, ...], Meta(max_length=TOKENS_MAX)]
BoundTokens: TypeAlias = Annotated[tuple[BoundData, ...], Meta(max_length=TOKENS_MAX)]


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`task.scheduled`: a grant of the pool, for the worker that takes it up first.

    With `alone`, for a worker that runs nothing else meanwhile: the task may kill it.
    """

    namespace: NameText
    run_id: RunIdText
    position: Number
    epoch: Number
    attempt: Number
    workflow: str
    task: str
    executor: str
    params: Raw  # a JSON object
    inputs: Raw  # a JSON object of name -> source, as in the definition
    run_input: Raw
    results: dict[str, Raw] = {}  # of the parents referred to, by task id; null when absent
    attempt_seconds: Seconds | None = None
    heartbeat_seconds: Seconds | None = None
    alone: bool = False


class TaskMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What every word of a worker about a grant has in common."""

    session: SessionText
    namespace: NameText
    run_id: RunIdText
    position: Number
    epoch: Number

    @property
    def token(self) -> Token:
        """The grant that it is about."""
        return Token(RunId(self.run_id), self.position, self.epoch)


class Started(TaskMessage, frozen=True, kw_only=True):
    """`task.started`: the worker has the command, and begins once the answer is `bound`.

    The number is that of this command in these hands, and comes back with the answer: one that
    was meant for an earlier copy of the command begins nothing.
    """

    number: Count


class Completed(TaskMessage, frozen=True, kw_only=True, omit_defaults=True):
    """`task.completed`: the body has returned; null when it returned nothing."""

    result: Raw = Raw(b"null")


class ErrorData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong, as the user should see it."""

    type: str
    message: str
    traceback: str = ""


class Failed(TaskMessage, frozen=True, kw_only=True, omit_defaults=True):
    """`task.failed`: an attempt failed; whether another one follows is the scheduler's to say."""

    error: ErrorData
    final: bool = False
    timeout: bool = False
    retry_after_seconds: Seconds | None = None


class Cancelled(TaskMessage, frozen=True, kw_only=True):
    """`task.cancelled`: the worker has stopped what it was asked to stop."""


class Released(TaskMessage, frozen=True, kw_only=True, omit_defaults=True):
    """`task.released`: the worker hands the grant back, nothing was spent.

    When `unbound` it had the command in hand only, and the grant is still the pool's.
    """

    unbound: bool = False


class Advanced(TaskMessage, frozen=True, kw_only=True, omit_defaults=True):
    """`task.advanced`: how far an attempt has come, in the user's words. Not kept."""

    number: Count
    fraction: Annotated[float, Meta(ge=0, le=1)]
    message: str = ""


class Printed(TaskMessage, frozen=True, kw_only=True, omit_defaults=True):
    """`task.printed`: some output of an attempt; numbers of one session tell the order."""

    number: Count
    text: str
    dropped: Count = 0  # bytes written between what was sent before and this


class Goodbye(msgspec.Struct, frozen=True, kw_only=True):
    """`worker.goodbye`: the worker leaves, and hands back unspent whatever it still holds."""

    session: SessionText
    namespace: NameText


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`worker.heartbeat`, every second: who is there, and all that it runs or is owed an ack for.

    Of two heartbeats of a session the one with the higher number is the truth.
    """

    protocol: Number
    session: SessionText
    number: Count
    greeted: bool = False  # some scheduler has answered already
    worker: Text
    namespace: NameText
    slots: Annotated[int, Meta(ge=0, le=SLOTS_MAX)]  # that it would fill now, busy ones included
    queues: Annotated[tuple[NameText, ...], Meta(min_length=1, max_length=QUEUES_MAX)]
    labels: Annotated[dict[Text, Text], Meta(max_length=LABELS_MAX)] = {}
    executors: Annotated[tuple[Text, ...], Meta(max_length=1_000)] = ()
    offers: Annotated[tuple[Offer, ...], Meta(max_length=HEARTBEAT_OFFERS_MAX)] = ()
    held: Tokens = ()
    unbound: Tokens = ()  # commands in hand that are not bound yet


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """`scheduler.marker`: a scheduler looks whether the broker still brings what is sent."""

    scheduler: Text
    number: Count


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`worker.answer`: what schedulers have to say to one session."""

    session: SessionText
    namespace: NameText
    scheduler: Text
    number: Count
    welcome: bool = False  # the session is open: commands may be taken
    bound: BoundTokens = ()  # begin
    stale: Tokens = ()  # drop these commands: somebody else has them, or nobody may
    acknowledged: Tokens = ()  # forget these outcomes
    cancel: Tokens = ()  # stop these and confirm it
    closed: bool = False  # the session is over: what it held is somebody else's
    refused: str | None = None  # and coming back will not help


Report: TypeAlias = (
    Started | Completed | Failed | Cancelled | Released | Advanced | Printed | Goodbye
)
Beat: TypeAlias = Heartbeat | Marker
BrokerMessage: TypeAlias = Command | Report | Beat | Answer

TYPES: Mapping[type[Any], str] = {
    Command: type_name("task.scheduled"),
    Started: type_name("task.started"),
    Completed: type_name("task.completed"),
    Failed: type_name("task.failed"),
    Cancelled: type_name("task.cancelled"),
    Released: type_name("task.released"),
    Advanced: type_name("task.advanced"),
    Printed: type_name("task.printed"),
    Goodbye: type_name("worker.goodbye"),
    Heartbeat: type_name("worker.heartbeat"),
    Marker: type_name("scheduler.marker"),
    Answer: type_name("worker.answer"),
}
"""The type of the CloudEvent for each kind of data."""

CHANNELS: Mapping[str, tuple[type[Any], ...]] = {
    "tasks.{pool}": (Command,),
    REPORTS: (Started, Completed, Failed, Cancelled, Released, Advanced, Printed, Goodbye),
    HEARTBEATS: (Heartbeat, Marker),
    ANSWERS: (Answer,),
}
"""Which kinds of data travel on which topic."""


def encode(message: BrokerMessage, at: Moment) -> bytes:
    """A message as the broker carries it; `at` is the sender's clock, for people to read."""
    name, subject = _name_of(message)
    namespace = None if isinstance(message, Marker) else message.namespace
    return encode_cloud_event(
        CloudEvent(
            specversion="1.0",
            id=name,
            source=_source_of(message),
            type=TYPES[type(message)],
            time=time_of(at),
            subject=subject,
            datacontenttype=JSON_TYPE,
            namespace=namespace,
            data=message,
        )
    )


def decode_command(data: bytes) -> Command | None:
    """A message of a `tasks` topic; None for an event of another type, else MalformedEvent."""
    return cast(Command | None, _decode(data, _COMMANDS))


def decode_report(data: bytes) -> Report | None:
    """A message of `reports`; None for an event of another type, else MalformedEvent."""
    return cast(Report | None, _decode(data, _REPORTS))


def decode_beat(data: bytes) -> Beat | None:
    """A message of `heartbeats`; None for an event of another type, else MalformedEvent."""
    return cast(Beat | None, _decode(data, _BEATS))


def decode_answer(data: bytes) -> Answer | None:
    """A message of `answers`; None for an event of another type, else MalformedEvent."""
    return cast(Answer | None, _decode(data, _ANSWERS))


def tokens_from(tokens: Iterable[TokenData]) -> tuple[Token, ...]:
    """From the wire."""
    return tuple(Token(RunId(one.run_id), one.position, one.epoch) for one in tokens)


def tokens_to(tokens: Iterable[Token]) -> tuple[TokenData, ...]:
    """To the wire."""
    return tuple(TokenData(*token) for token in tokens)


def session_of(message: TaskMessage | Goodbye | Heartbeat | Answer) -> SessionId:
    """Whose word it is, or to whom."""
    return SessionId(message.session)


def _name_of(message: BrokerMessage) -> tuple[str, str]:
    """The id and the subject of the event. What is said again has the id that it had."""
    kind = TYPES[type(message)].split(".")[2]
    match message:
        case Marker():
            return f"{message.scheduler}/{kind}/{message.number}", message.scheduler
        case Answer():
            return f"{message.scheduler}/{kind}/{message.number}", message.session
        case Heartbeat():
            return f"{message.session}/{kind}/{message.number}", message.session
        case Goodbye():
            return f"{message.session}/{kind}", message.session
        case Started() | Advanced() | Printed():
            grant = f"{message.run_id}/{message.position}"
            return f"{message.session}/{kind}/{message.number}", grant
        case _:
            grant = f"{message.run_id}/{message.position}"
            return f"{grant}/{message.epoch}/{kind}", grant


def _source_of(message: BrokerMessage) -> str:
    match message:
        case Marker():
            return "/tidemill"
        case Command() | Answer():
            return source_of(message.namespace)
        case _:
            return f"{source_of(message.namespace)}/workers/{message.session}"


def _decoders(*kinds: type[Any]) -> dict[str, msgspec.json.Decoder[Any]]:
    return {TYPES[kind]: msgspec.json.Decoder(CloudEvent[kind]) for kind in kinds}  # type: ignore[valid-type]


_COMMANDS = _decoders(Command)
_REPORTS = _decoders(*CHANNELS[REPORTS])
_BEATS = _decoders(*CHANNELS[HEARTBEATS])
_ANSWERS = _decoders(Answer)


def _decode(data: bytes, decoders: Mapping[str, msgspec.json.Decoder[Any]]) -> Any:
    if len(data) > MESSAGE_BYTES_MAX:
        raise MalformedEvent(f"a message of {len(data)} bytes, {MESSAGE_BYTES_MAX} is the limit")
    kind = cloud_event_type(data)
    decoder = decoders.get(kind)
    try:
        return None if decoder is None else decoder.decode(data).data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent(f"{kind}: {error}") from error
