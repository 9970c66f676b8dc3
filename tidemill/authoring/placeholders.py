"""Values that do not exist yet: what a task will return, what a run will be given."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol

import msgspec

from tidemill.authoring.fields import NoSuchPart, attribute_part, item_part
from tidemill.authoring.places import problem, refuse
from tidemill.domain.errors import Problem

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Owner(Protocol):
    """Keeps what is wrong with the workflow that is being described."""

    problems: list[Problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What a placeholder stands for: a part of a task's result, or of the run's input."""

    owner: Owner  # the workflow that is being described
    task: str | None  # None for the run's input and for secrets
    secret: str | None = None
    path: tuple[str | int, ...] = ()
    kind: Any = Any  # the type that user code gives it

    @property
    def label(self) -> str:
        """How a message names it: `extract.rows[0]`."""
        if self.secret is not None:
            return f"secret {self.secret}"
        parts = (self.task, *self.path) if self.task is not None else self.path
        return expression(parts)


def expression(path: tuple[str | int, ...]) -> str:
    """A JMESPath expression for a path; `@` for an empty one."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if _PLAIN.fullmatch(part) else msgspec.json.encode(part).decode()
            text += f".{name}" if text else name
    return text or "@"


class Placeholder:
    """Stands for a value while a workflow is described; it can be passed on and taken apart."""

    __slots__ = ("_tidemill_reference",)
    _tidemill_reference: Reference

    def __init__(self, reference: Reference) -> None:
        object.__setattr__(self, "_tidemill_reference", reference)

    def __getattr__(self, name: str) -> Placeholder:
        if name.startswith("_"):
            raise AttributeError(name)
        return _part(self, name, is_attribute=True)

    def __getitem__(self, key: Any) -> Placeholder:
        return _part(self, key, is_attribute=False)

    def __repr__(self) -> str:
        return f"<the value of {self._tidemill_reference.label}, not known yet>"

    def __hash__(self) -> int:
        return id(self)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        _no_value(self, "nothing can be set in it")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        _no_value(self, "nothing can be set in it")

    def __bool__(self) -> NoReturn:  # noqa: PLE0304 - raises
        _no_value(self, "it cannot be tested (if, while, and, or, not)")

    def __iter__(self) -> NoReturn:
        _no_value(self, "it cannot be iterated or unpacked")

    def __len__(self) -> NoReturn:  # noqa: PLE0303 - raises
        _no_value(self, "it has no length")

    def __contains__(self, item: Any) -> NoReturn:
        _no_value(self, "nothing can be looked up in it")

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _no_value(self, "it cannot be called")

    def __await__(self) -> NoReturn:
        _no_value(self, "it is not awaited: call an async task here without await")

    def __str__(self) -> str:  # noqa: PLE0307 - raises
        _no_value(self, "it cannot be made into text")

    def __format__(self, spec: str) -> str:
        _no_value(self, "it cannot be made into text")


def _forbid(name: str, what: str) -> None:
    def operation(self: Placeholder, *others: Any) -> NoReturn:
        _no_value(self, what)

    operation.__name__ = name
    setattr(Placeholder, name, operation)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _forbid(f"__{_name}__", "it cannot be compared")
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
    _forbid(f"__{_name}__", "it cannot be computed with")
    _forbid(f"__r{_name}__", "it cannot be computed with")
for _name in ("neg", "pos", "abs", "invert", "int", "float", "index", "round"):
    _forbid(f"__{_name}__", "it cannot be computed with")


def reference_of(value: Any) -> Reference | None:
    """What a placeholder stands for; None for any other value."""
    return value._tidemill_reference if type(value) is Placeholder else None  # noqa: SLF001


def _part(placeholder: Placeholder, key: Any, *, is_attribute: bool) -> Placeholder:
    reference = placeholder._tidemill_reference  # noqa: SLF001
    try:
        take = attribute_part if is_attribute else item_part
        step, kind = take(reference.kind, key)
    except NoSuchPart as error:
        # What follows from it is not known, and the other problems are worth knowing.
        reference.owner.problems.append(problem(reference.label, str(error), "NO_SUCH_PART"))
        step, kind = (key if isinstance(key, str | int) else str(key)), Any
    return Placeholder(replace(reference, path=(*reference.path, step), kind=kind))


def _no_value(placeholder: Placeholder, what: str) -> NoReturn:
    label = placeholder._tidemill_reference.label  # noqa: SLF001
    message = (
        f"has no value while the workflow is described, so {what}; "
        "pass it to a task and do it there"
    )
    refuse(label, message, "NO_VALUE_YET")


__all__ = ["Placeholder", "Reference", "expression", "reference_of"]
