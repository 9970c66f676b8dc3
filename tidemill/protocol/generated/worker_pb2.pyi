from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Token(_message.Message):
    __slots__ = ("run_id", "position", "epoch")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    position: int
    epoch: int
    def __init__(self, run_id: _Optional[str] = ..., position: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class TaskError(_message.Message):
    __slots__ = ("type", "message", "traceback")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TRACEBACK_FIELD_NUMBER: _ClassVar[int]
    type: str
    message: str
    traceback: str
    def __init__(self, type: _Optional[str] = ..., message: _Optional[str] = ..., traceback: _Optional[str] = ...) -> None: ...

class Succeeded(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: bytes
    def __init__(self, result: _Optional[bytes] = ...) -> None: ...

class Failed(_message.Message):
    __slots__ = ("error", "final", "timeout", "retry_after_seconds")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_SECONDS_FIELD_NUMBER: _ClassVar[int]
    error: TaskError
    final: bool
    timeout: bool
    retry_after_seconds: float
    def __init__(self, error: _Optional[_Union[TaskError, _Mapping]] = ..., final: _Optional[bool] = ..., timeout: _Optional[bool] = ..., retry_after_seconds: _Optional[float] = ...) -> None: ...

class CancelConfirmed(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Released(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Outcome(_message.Message):
    __slots__ = ("token", "succeeded", "failed", "cancel_confirmed", "released")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    CANCEL_CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    token: Token
    succeeded: Succeeded
    failed: Failed
    cancel_confirmed: CancelConfirmed
    released: Released
    def __init__(self, token: _Optional[_Union[Token, _Mapping]] = ..., succeeded: _Optional[_Union[Succeeded, _Mapping]] = ..., failed: _Optional[_Union[Failed, _Mapping]] = ..., cancel_confirmed: _Optional[_Union[CancelConfirmed, _Mapping]] = ..., released: _Optional[_Union[Released, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol", "worker", "namespace", "slots", "queues", "labels", "executors", "session", "secret", "held", "finished", "offers", "joins_acks")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    EXECUTORS_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    JOINS_ACKS_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    worker: str
    namespace: str
    slots: int
    queues: _containers.RepeatedScalarFieldContainer[str]
    labels: _containers.ScalarMap[str, str]
    executors: _containers.RepeatedScalarFieldContainer[str]
    session: str
    secret: str
    held: _containers.RepeatedCompositeFieldContainer[Token]
    finished: _containers.RepeatedCompositeFieldContainer[Outcome]
    offers: _containers.RepeatedScalarFieldContainer[str]
    joins_acks: bool
    def __init__(self, protocol: _Optional[int] = ..., worker: _Optional[str] = ..., namespace: _Optional[str] = ..., slots: _Optional[int] = ..., queues: _Optional[_Iterable[str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., executors: _Optional[_Iterable[str]] = ..., session: _Optional[str] = ..., secret: _Optional[str] = ..., held: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., finished: _Optional[_Iterable[_Union[Outcome, _Mapping]]] = ..., offers: _Optional[_Iterable[str]] = ..., joins_acks: _Optional[bool] = ...) -> None: ...

class Outcomes(_message.Message):
    __slots__ = ("outcomes",)
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedCompositeFieldContainer[Outcome]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[Outcome, _Mapping]]] = ...) -> None: ...

class Holdings(_message.Message):
    __slots__ = ("held", "slots")
    HELD_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    held: _containers.RepeatedCompositeFieldContainer[Token]
    slots: int
    def __init__(self, held: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., slots: _Optional[int] = ...) -> None: ...

class ProgressReport(_message.Message):
    __slots__ = ("token", "fraction", "message")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    token: Token
    fraction: float
    message: str
    def __init__(self, token: _Optional[_Union[Token, _Mapping]] = ..., fraction: _Optional[float] = ..., message: _Optional[str] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("reports",)
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    reports: _containers.RepeatedCompositeFieldContainer[ProgressReport]
    def __init__(self, reports: _Optional[_Iterable[_Union[ProgressReport, _Mapping]]] = ...) -> None: ...

class LogText(_message.Message):
    __slots__ = ("token", "text", "dropped")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    token: Token
    text: str
    dropped: int
    def __init__(self, token: _Optional[_Union[Token, _Mapping]] = ..., text: _Optional[str] = ..., dropped: _Optional[int] = ...) -> None: ...

class Logs(_message.Message):
    __slots__ = ("chunks",)
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    chunks: _containers.RepeatedCompositeFieldContainer[LogText]
    def __init__(self, chunks: _Optional[_Iterable[_Union[LogText, _Mapping]]] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Goodbye(_message.Message):
    __slots__ = ("released",)
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    released: _containers.RepeatedCompositeFieldContainer[Token]
    def __init__(self, released: _Optional[_Iterable[_Union[Token, _Mapping]]] = ...) -> None: ...

class WorkerMessage(_message.Message):
    __slots__ = ("hello", "outcomes", "holdings", "progress", "logs", "ping", "goodbye")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    HOLDINGS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOGS_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    outcomes: Outcomes
    holdings: Holdings
    progress: Progress
    logs: Logs
    ping: Ping
    goodbye: Goodbye
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., outcomes: _Optional[_Union[Outcomes, _Mapping]] = ..., holdings: _Optional[_Union[Holdings, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., logs: _Optional[_Union[Logs, _Mapping]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ..., goodbye: _Optional[_Union[Goodbye, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("session", "secret", "keep", "acknowledged")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    session: str
    secret: str
    keep: _containers.RepeatedCompositeFieldContainer[Token]
    acknowledged: _containers.RepeatedCompositeFieldContainer[Token]
    def __init__(self, session: _Optional[str] = ..., secret: _Optional[str] = ..., keep: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., acknowledged: _Optional[_Iterable[_Union[Token, _Mapping]]] = ...) -> None: ...

class Refused(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("token", "attempt", "workflow", "task", "executor", "params", "inputs", "run_input", "results", "attempt_seconds", "heartbeat_seconds", "secrets", "secrets_trouble", "task_token")
    class ResultsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    class SecretsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    RUN_INPUT_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    SECRETS_TROUBLE_FIELD_NUMBER: _ClassVar[int]
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: Token
    attempt: int
    workflow: str
    task: str
    executor: str
    params: bytes
    inputs: bytes
    run_input: bytes
    results: _containers.ScalarMap[str, bytes]
    attempt_seconds: float
    heartbeat_seconds: float
    secrets: _containers.ScalarMap[str, str]
    secrets_trouble: str
    task_token: str
    def __init__(self, token: _Optional[_Union[Token, _Mapping]] = ..., attempt: _Optional[int] = ..., workflow: _Optional[str] = ..., task: _Optional[str] = ..., executor: _Optional[str] = ..., params: _Optional[bytes] = ..., inputs: _Optional[bytes] = ..., run_input: _Optional[bytes] = ..., results: _Optional[_Mapping[str, bytes]] = ..., attempt_seconds: _Optional[float] = ..., heartbeat_seconds: _Optional[float] = ..., secrets: _Optional[_Mapping[str, str]] = ..., secrets_trouble: _Optional[str] = ..., task_token: _Optional[str] = ...) -> None: ...

class Assignments(_message.Message):
    __slots__ = ("assignments", "acks")
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    ACKS_FIELD_NUMBER: _ClassVar[int]
    assignments: _containers.RepeatedCompositeFieldContainer[Assignment]
    acks: Acks
    def __init__(self, assignments: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., acks: _Optional[_Union[Acks, _Mapping]] = ...) -> None: ...

class Acks(_message.Message):
    __slots__ = ("tokens", "stale")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[Token]
    stale: _containers.RepeatedCompositeFieldContainer[Token]
    def __init__(self, tokens: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., stale: _Optional[_Iterable[_Union[Token, _Mapping]]] = ...) -> None: ...

class Cancels(_message.Message):
    __slots__ = ("tokens",)
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[Token]
    def __init__(self, tokens: _Optional[_Iterable[_Union[Token, _Mapping]]] = ...) -> None: ...

class SchedulerMessage(_message.Message):
    __slots__ = ("welcome", "refused", "assignments", "acks", "cancels", "ping")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    ACKS_FIELD_NUMBER: _ClassVar[int]
    CANCELS_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    refused: Refused
    assignments: Assignments
    acks: Acks
    cancels: Cancels
    ping: Ping
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., refused: _Optional[_Union[Refused, _Mapping]] = ..., assignments: _Optional[_Union[Assignments, _Mapping]] = ..., acks: _Optional[_Union[Acks, _Mapping]] = ..., cancels: _Optional[_Union[Cancels, _Mapping]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ...) -> None: ...
