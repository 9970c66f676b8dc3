"""What every use case of identity needs, and who it is that asks."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tidemill.domain.audit import DONE, REFUSED, Deed
from tidemill.domain.errors import Forbidden, InvalidInput, NotFound, Problem
from tidemill.domain.identifiers import Moment
from tidemill.domain.identity import Account, Registration
from tidemill.domain.permissions import SYSTEM_NAMESPACE, Role
from tidemill.domain.principals import ANONYMOUS, Principal, PrincipalKind
from tidemill.domain.secrets_shown import Prefix, Shown
from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.ports.identity import PasswordHasher, TokenSigner
from tidemill.ports.store import Store

ACCESS_SECONDS_MAX = 15 * 60
_ID = re.compile(r"[0-9a-z-]{1,64}")
_BY_KEY = frozenset({PrincipalKind.KEY, PrincipalKind.SERVICE})


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityConfig:
    """How identity behaves."""

    registration: Registration = Registration.OFF
    access_seconds: int = ACCESS_SECONDS_MAX
    login_days: int = 30  # after so long somebody must log in again, however often they refreshed
    invitation_days: int = 7

    def __post_init__(self) -> None:
        assert 1 <= self.access_seconds <= ACCESS_SECONDS_MAX, "access tokens are short-lived"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The parts that the use cases of identity work with."""

    store: Store
    clock: Clock
    entropy: Entropy
    hasher: PasswordHasher
    signer: TokenSigner
    config: IdentityConfig = IdentityConfig()

    def now(self) -> Moment:
        """The wall clock."""
        return self.clock.now()

    def fresh(self, prefix: Prefix) -> Shown:
        """A credential that nobody has seen yet."""
        return Shown(prefix, self.entropy.session_id(), self.entropy.secret())

    def fresh_id(self) -> str:
        """An id for an account; later ones sort behind earlier ones."""
        return str(self.entropy.run_id())


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks and from where; nobody is known yet when somebody logs in."""

    principal: Principal = ANONYMOUS
    namespace: str = SYSTEM_NAMESPACE
    address: str = ""
    request_id: str = ""

    def known_as(self, account: Account) -> Caller:
        """The same, once it is known who it is."""
        return replace(self, principal=Principal(id=account.id, name=account.name))

    def deed(self, at: Moment, action: str, target: str = "", **detail: str) -> Deed:
        """An entry for the audit log, about the namespace of the request.

        Of an account with several keys, it names the one that was shown.
        """
        if self.principal.kind in _BY_KEY:
            detail["by_key"] = self.principal.credential
        return Deed(
            at=at,
            actor=self.principal.id,
            actor_name=self.principal.name,
            action=action,
            namespace=self.namespace,
            target=target,
            outcome=REFUSED if detail.get("refused") else DONE,
            address=self.address,
            request_id=self.request_id,
            detail=detail,
        )


def check_may_give(caller: Caller, namespace: str, role: Role) -> None:
    """Forbidden when the role is more than whoever asks has there."""
    if not caller.principal.may_give(namespace, role):
        raise Forbidden(f"nobody gives more than they have: you are no {role} of {namespace}")


def wrong(path: str, message: str, code: str = "invalid") -> InvalidInput:
    """One problem with one field."""
    return InvalidInput([Problem(path=path, message=message, code=code)])


def missing(kind: str, name: str) -> NotFound:
    """The same words whether it never was or belongs to somebody else."""
    return NotFound(f"there is no {kind} {name} here")


def check_id(kind: str, text: str) -> str:
    """The id, if it can be one of ours; no other text reaches the store."""
    if not _ID.fullmatch(text):
        raise missing(kind, "of that id")
    return text
