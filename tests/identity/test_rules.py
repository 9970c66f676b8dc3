"""The pure rules: permissions, principals, passwords, credentials as shown, the chain."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.builders import NOON
from tidemill.domain.audit import BEGINNING, Deed, Head, follow, link
from tidemill.domain.errors import Conflict, InvalidInput
from tidemill.domain.identifiers import SECOND, Moment
from tidemill.domain.identity import ApiKey, Attempts, KeyKind, RefreshFamily
from tidemill.domain.identity_rules import (
    LOCK_SECONDS_MAX,
    TRIES_PER_MINUTE,
    check_password,
    email_of,
    failed,
    is_email,
    name_of,
    namespace_of,
    tried,
)
from tidemill.domain.permissions import (
    EVERYWHERE,
    GRANTS,
    SYSTEM_NAMESPACE,
    Permission,
    Role,
    permits,
)
from tidemill.domain.principals import SINGLE_USER, Principal, PrincipalKind, home_of
from tidemill.domain.secrets_shown import Prefix, Shown, hash_secret, is_secret, read_shown

names = st.text(st.sampled_from("abc*-."), min_size=1, max_size=4)
roles = st.sampled_from(list(Role))
permissions = st.sampled_from(list(Permission))
SECRET = "5" * 64


def test_each_role_can_do_what_the_one_before_it_can() -> None:
    held = [GRANTS[role] for role in Role]

    assert all(less < more for less, more in pairwise(held))
    assert GRANTS[Role.ADMIN] == frozenset(Permission)


@given(st.dictionaries(names, roles, max_size=3), names, permissions)
def test_point_14_names_are_compared_whole_and_never_by_a_part(
    memberships: dict[str, Role], namespace: str, permission: Permission
) -> None:
    local = memberships.get(namespace)
    system = memberships.get(SYSTEM_NAMESPACE)
    by_system = system is not None and permission in GRANTS[system]
    by_local = local is not None and permission in GRANTS[local] and permission not in EVERYWHERE

    assert permits(memberships, namespace, permission) == (by_system or by_local)


@given(names, names, roles, permissions)
def test_point_14_a_role_in_one_namespace_says_nothing_about_another(
    mine: str, other: str, role: Role, permission: Permission
) -> None:
    assume(mine not in {other, SYSTEM_NAMESPACE})

    assert not permits({mine: role}, other, permission)


@given(roles, permissions, st.frozensets(permissions))
def test_scopes_only_take_away(
    role: Role, permission: Permission, scopes: frozenset[Permission]
) -> None:
    key = Principal(id="1", name="key", memberships={"a": role}, scopes=scopes)

    assert key.may("a", permission) == (
        permits({"a": role}, "a", permission) and permission in scopes
    )


def test_a_bound_credential_reaches_one_namespace() -> None:
    key = Principal(
        id="1", name="key", namespace="a", bound=True, memberships={SYSTEM_NAMESPACE: Role.ADMIN}
    )

    assert key.may("a", Permission.RUNS_READ)
    assert not key.may("b", Permission.RUNS_READ)


@pytest.mark.parametrize("kind", ["worker", "task", "anonymous"])
def test_workers_tasks_and_nobody_may_do_nothing(kind: str) -> None:
    one = Principal(
        id="1", name="x", kind=PrincipalKind(kind), memberships={SYSTEM_NAMESPACE: Role.ADMIN}
    )

    assert not any(one.may("default", permission) for permission in Permission)


def test_nobody_gives_more_than_they_have() -> None:
    admin = Principal(id="1", name="x", memberships={"a": Role.ADMIN})
    editor = Principal(id="2", name="y", memberships={"a": Role.EDITOR})
    scoped = msgspec.structs.replace(admin, scopes=frozenset({Permission.MEMBERS_WRITE}))

    assert admin.may_give("a", Role.ADMIN)
    assert not admin.may_give("b", Role.VIEWER)
    assert not admin.may_give(SYSTEM_NAMESPACE, Role.VIEWER)
    assert (editor.may_give("a", Role.EDITOR), editor.may_give("a", Role.ADMIN)) == (True, False)
    assert not scoped.may_give("a", Role.VIEWER)
    assert SINGLE_USER.may_give(SYSTEM_NAMESPACE, Role.ADMIN)


def test_what_a_principal_may_do_is_what_its_role_grants() -> None:
    viewer = Principal(id="v", name="Vera", memberships={"a": Role.VIEWER})

    assert viewer.permissions("a") == {one for one in Permission if viewer.may("a", one)} != set()
    assert viewer.permissions("b") == frozenset()


def test_a_request_without_a_namespace_is_about_the_only_one_or_the_default() -> None:
    assert home_of({}) == "default"
    assert home_of({"a": Role.VIEWER}) == "a"
    assert home_of({"a": Role.VIEWER, "b": Role.VIEWER}) == "default"
    assert home_of({SYSTEM_NAMESPACE: Role.ADMIN}) == "default"


@pytest.mark.parametrize("password", ["short", "eleven char", "x" * 257])
def test_a_password_has_twelve_to_256_characters(password: str) -> None:
    with pytest.raises(InvalidInput, match="password"):
        check_password(password, "ada@mill.test")


@pytest.mark.parametrize(
    "password",
    ["Password1234", "passwordpassword", "aaaaaaaaaaaab", "ada@mill.test", "000000000000"],
)
def test_a_password_that_others_try_first_is_refused(password: str) -> None:
    with pytest.raises(Conflict, match="try first"):
        check_password(password, "ada@mill.test")


def test_a_long_password_of_ones_own_is_taken() -> None:
    check_password("correct horse battery", "ann@mill.test")


@pytest.mark.parametrize(
    ("revoked_at", "at", "live"), [(None, NOON, True), (None, NOON + 9, False), (NOON, NOON, False)]
)
def test_a_credential_opens_until_it_ends_or_is_taken_back(
    revoked_at: Moment | None, at: Moment, live: bool
) -> None:
    login = RefreshFamily(
        id="1", account_id="a", address="", created_at=NOON, expires_at=NOON + 9,
        revoked_at=revoked_at,
    )  # fmt: skip
    key = ApiKey(
        id="1", kind=KeyKind.API, namespace="a", name="key", secret_hash="", created_at=NOON,
        created_by="a", expires_at=NOON + 9, revoked_at=revoked_at,
    )  # fmt: skip

    assert (login.is_live(at), key.is_live(at)) == (live, live)


def test_addresses_are_compared_without_case() -> None:
    assert email_of("Ada@Mill.Test") == "ada@mill.test"
    assert email_of("root@localhost") == "root@localhost"
    assert is_email("Ada@Mill.Test")


@pytest.mark.parametrize(
    "text",
    ["", "ada", "ada@", "@mill", "a b@mill", "ada@mill\n", "a\0@mill", "ada@-mill", "é@mill"],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="email"):
        email_of(text)


def test_a_name_for_people_stays_as_it_is() -> None:
    assert name_of("Ada Lovelace") == "Ada Lovelace"


@pytest.mark.parametrize("text", ["", " ", "a\nb", "a\x1b[31m", "x" * 101, "a\u202eb", "trailing "])
def test_point_29_a_name_is_one_line_without_tricks(text: str) -> None:
    with pytest.raises(InvalidInput, match="name"):
        name_of(text)


@pytest.mark.parametrize("text", ["", "*", "A", "-a", "a-", "a.b", "a/b", "x" * 64])
def test_what_cannot_be_a_namespace_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="name"):
        namespace_of(text)
    assert namespace_of("team-7") == "team-7"


def test_a_credential_is_read_back_and_a_mistyped_one_is_not() -> None:
    shown = Shown(Prefix.API_KEY, "a" * 32, SECRET)

    assert read_shown(shown.text) == shown
    assert read_shown(shown.text[:-1] + ("0" if shown.text[-1] != "0" else "1")) is None
    assert read_shown("tmx" + shown.text[3:]) is None
    assert read_shown("") is None


@given(st.text(max_size=120))
def test_no_text_but_ours_is_a_credential(text: str) -> None:
    assert read_shown(text) is None


def test_only_the_hash_of_a_secret_is_needed_to_know_it() -> None:
    assert is_secret(SECRET, hash_secret(SECRET))
    assert not is_secret("6" * 64, hash_secret(SECRET))


def test_so_many_tries_a_minute_and_no_more() -> None:
    attempts = Attempts(subject="here")
    for _ in range(TRIES_PER_MINUTE):
        attempts = tried(attempts, NOON)
    assert attempts.locked_until <= NOON

    one_more = tried(attempts, NOON)

    assert one_more.locked_until == NOON + 60 * SECOND
    assert tried(one_more, NOON + 60 * SECOND).tries == 1


def test_failures_in_a_row_lock_for_longer_and_longer_up_to_a_bound() -> None:
    attempts, locks = Attempts(subject="here"), []
    for _ in range(20):
        attempts = failed(attempts, NOON)
        locks.append(max(0, attempts.locked_until - NOON) // SECOND)

    assert locks[:8] == [0, 0, 0, 0, 30, 60, 120, 240]
    assert locks[-1] == LOCK_SECONDS_MAX


def a_deed(action: str = "run.cancel") -> Deed:
    """Something that somebody did."""
    return Deed(at=NOON, actor="1", actor_name="Ada", action=action, namespace="default")


def test_a_chain_is_followed_to_its_end() -> None:
    entries = link(Head(), [a_deed("a"), a_deed("b")])

    assert entries[0].previous == BEGINNING
    assert follow(Head(), entries) == (Head(number=2, hash=entries[1].hash), None)


@pytest.mark.parametrize(
    "field",
    [
        "at",
        "actor",
        "actor_name",
        "action",
        "namespace",
        "target",
        "outcome",
        "address",
        "request_id",
        "detail",
    ],
)
def test_whatever_is_changed_breaks_the_chain(field: str) -> None:
    entries = link(Head(), [a_deed(), a_deed(), a_deed()])
    other = {"at": 0, "detail": {"a": "b"}}.get(field, "forged")
    deed = msgspec.structs.replace(entries[1].deed, **{field: other})
    entries[1] = msgspec.structs.replace(entries[1], deed=deed)

    assert follow(Head(), entries)[1] == 2


def test_an_entry_that_is_missing_or_doubled_breaks_the_chain() -> None:
    first, second, third = link(Head(), [a_deed(), a_deed(), a_deed()])

    assert follow(Head(), [first, third])[1] == 2
    assert follow(Head(), [first, first, second])[1] == 2
