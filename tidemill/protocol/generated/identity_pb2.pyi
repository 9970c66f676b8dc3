import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ValidateTokenRequest(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: str
    def __init__(self, token: _Optional[str] = ...) -> None: ...

class ValidateTokenResponse(_message.Message):
    __slots__ = ("active", "kind", "principal_id", "principal_name", "namespace", "namespaces", "expires_at", "queues", "attempt")
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    active: bool
    kind: str
    principal_id: str
    principal_name: str
    namespace: str
    namespaces: _containers.RepeatedCompositeFieldContainer[NamespaceAccess]
    expires_at: _timestamp_pb2.Timestamp
    queues: _containers.RepeatedScalarFieldContainer[str]
    attempt: Attempt
    def __init__(self, active: _Optional[bool] = ..., kind: _Optional[str] = ..., principal_id: _Optional[str] = ..., principal_name: _Optional[str] = ..., namespace: _Optional[str] = ..., namespaces: _Optional[_Iterable[_Union[NamespaceAccess, _Mapping]]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., queues: _Optional[_Iterable[str]] = ..., attempt: _Optional[_Union[Attempt, _Mapping]] = ...) -> None: ...

class NamespaceAccess(_message.Message):
    __slots__ = ("namespace", "role", "permissions")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    role: str
    permissions: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, namespace: _Optional[str] = ..., role: _Optional[str] = ..., permissions: _Optional[_Iterable[str]] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("run_id", "position", "epoch", "workflow", "task", "attempt")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    position: int
    epoch: int
    workflow: str
    task: str
    attempt: int
    def __init__(self, run_id: _Optional[str] = ..., position: _Optional[int] = ..., epoch: _Optional[int] = ..., workflow: _Optional[str] = ..., task: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...
