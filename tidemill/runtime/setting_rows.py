"""What one row of the table of settings holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemill.runtime.setting_kinds import Kind


def setting(default: Any, explained: str, roles: tuple[str, ...], **more: Any) -> Any:
    """Declare a field of Settings; `more` are further fields of Setting.

    A default that is callable is called for every use.
    """
    facts = {"help": explained, "roles": roles, **more}
    if callable(default):
        return field(default_factory=default, metadata=facts)
    return field(default=default, metadata=facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of the table."""

    name: str  # as in Settings and in TOML files
    kind: Kind
    make: Callable[[], Any]  # the default
    help: str
    roles: tuple[str, ...]
    bounds: tuple[float, float] | None = None
    check: Callable[[Any], None] | None = None  # ValueError says what is wrong
    flag: str | None = None  # an empty one means that there is none, nor a key in the file
    metavar: str = ""
    by_role: Mapping[str | None, Any] = field(default_factory=dict)  # defaults of single roles
    also: Mapping[str | None, str] = field(default_factory=dict)  # a second flag of single roles
    only: Mapping[tuple[str, ...], str] = field(default_factory=dict)  # more help for these roles
    secret: bool = False
    tuning: bool = False  # for those who run many machines
    filled: bool = False  # an empty list makes no sense

    @property
    def option(self) -> str:
        """The flag on the command line; empty when there is none."""
        return f"--{self.name.replace('_', '-')}" if self.flag is None else self.flag

    def option_for(self, role: str | None) -> str:
        """The flag as this role's examples have it."""
        return self.also.get(role, self.option)

    def help_for(self, role: str | None) -> str:
        """What it means to a role; to no role in particular, what it means to each."""
        if role is None:
            more = [f"for {' and '.join(roles)} {text}" for roles, text in self.only.items()]
        else:
            more = [text for roles, text in self.only.items() if role in roles]
        return "; ".join([self.help, *more])

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"TIDEMILL_{self.name.upper()}"

    def default_for(self, role: str | None) -> Any:
        """What holds when nobody says anything."""
        return self.by_role[role] if role in self.by_role else self.make()

    def complaint(self, value: Any) -> str | None:
        """What is wrong with a value of the right type."""
        if self.bounds and not self.bounds[0] <= value <= self.bounds[1]:  # "nan" is no value
            least, most = self.bounds
            return f"must be between {least:.12g} and {most:.12g}, not {value:.12g}"
        if self.filled and not value:
            return "must name at least one"
        if self.check is not None and value is not None:
            try:
                self.check(value)
            except ValueError as error:
                return str(error)
        return None
