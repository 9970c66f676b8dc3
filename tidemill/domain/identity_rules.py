"""What names, addresses and passwords must be like, and how long wrong ones lock a door."""

from __future__ import annotations

import re

import msgspec

from tidemill.domain.errors import Conflict, InvalidInput, Problem
from tidemill.domain.identifiers import SECOND, Moment
from tidemill.domain.identity import Attempts

PASSWORD_CHARACTERS_MIN = 12
PASSWORD_CHARACTERS_MAX = 256
NAME_CHARACTERS_MAX = 100
TRIES_PER_MINUTE = 60
FAILURES_FREE = 5
LOCK_SECONDS = 30
LOCK_SECONDS_MAX = 15 * 60
MINUTE: Moment = 60 * SECOND

_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
EMAIL_PATTERN = (
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,186}[A-Za-z0-9])?"
)
NAME_PATTERN = rf"[^\s{_CONTROL}]([^{_CONTROL}]{{0,98}}[^\s{_CONTROL}])?"
NAMESPACE_PATTERN = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_EMAIL = re.compile(EMAIL_PATTERN)
_NAME = re.compile(NAME_PATTERN)
_NAMESPACE = re.compile(NAMESPACE_PATTERN)

# Long enough for the rule, and tried first by everybody who guesses.
KNOWN_PASSWORDS = frozenset(
    {
        "123456789012",
        "1234567890123",
        "12345678901234",
        "123456789012345",
        "1234567890123456",
        "012345678901",
        "111111111111",
        "000000000000",
        "aaaaaaaaaaaa",
        "abcdefghijkl",
        "abcdefghijklm",
        "adminadminadmin",
        "administrator",
        "changemechangeme",
        "changeme1234",
        "changeme12345",
        "correcthorsebatterystaple",
        "iloveyou1234",
        "letmeinletmein",
        "letmein123456",
        "passw0rd1234",
        "passwordpassword",
        "password1234",
        "password12345",
        "password123456",
        "password123!",
        "password1234!",
        "qwertyqwerty",
        "qwertyuiop12",
        "qwertyuiop123",
        "qwertyuiopasdfgh",
        "qwerty123456",
        "secretsecret",
        "tidemilltidemill",
        "tidemill1234",
        "welcome12345",
    }
)


def email_of(text: str, path: str = "email") -> str:
    """The address in the one form that is stored; InvalidInput when it is none."""
    if not _EMAIL.fullmatch(text):
        raise _refused(path, "must be an e-mail address: name@host")
    return text.lower()


def is_email(text: str) -> bool:
    """Whether anybody could have this address."""
    return _EMAIL.fullmatch(text) is not None


def name_of(text: str, path: str = "name") -> str:
    """A name for people: one line of it."""
    if not _NAME.fullmatch(text):
        message = (
            f"must have 1 to {NAME_CHARACTERS_MAX} characters, no control characters, "
            "and no spaces at its ends"
        )
        raise _refused(path, message)
    return text


def namespace_of(text: str, path: str = "name") -> str:
    """The name of a namespace."""
    if not is_namespace(text):
        message = "must have 1 to 63 of a-z, 0-9 and -, and neither begin nor end with -"
        raise _refused(path, message)
    return text


def is_namespace(text: str) -> bool:
    """Whether any namespace could have this name."""
    return _NAMESPACE.fullmatch(text) is not None


def check_password(password: str, email: str, path: str = "password") -> None:
    """InvalidInput or Conflict when somebody could guess it; says why."""
    if len(password) < PASSWORD_CHARACTERS_MIN:
        raise _refused(path, f"must have at least {PASSWORD_CHARACTERS_MIN} characters")
    if len(password) > PASSWORD_CHARACTERS_MAX:
        raise _refused(path, f"must have at most {PASSWORD_CHARACTERS_MAX} characters")
    plain = password.lower().strip()
    if plain in KNOWN_PASSWORDS or plain in {email, email * 2} or len(set(plain)) < 3:
        text = f"{path}: this is one that others try first: choose another"
        raise Conflict(text, code="KNOWN_PASSWORD")


def _refused(path: str, message: str) -> InvalidInput:
    return InvalidInput([Problem(path=path, message=message, code="invalid")])


def tried(attempts: Attempts, now: Moment, tries_max: int = TRIES_PER_MINUTE) -> Attempts:
    """Count one more try; `locked_until` lies ahead when it is one too many."""
    if now >= attempts.window_at + MINUTE:
        attempts = msgspec.structs.replace(attempts, window_at=now, tries=0)
    tries = attempts.tries + 1
    locked = attempts.window_at + MINUTE if tries > tries_max else 0
    return msgspec.structs.replace(
        attempts, tries=tries, locked_until=max(attempts.locked_until, locked)
    )


def failed(attempts: Attempts, now: Moment) -> Attempts:
    """Count a failure: from the sixth in a row on, each locks for twice as long as the last."""
    failures = attempts.failures + 1
    locked = attempts.locked_until
    if failures >= FAILURES_FREE:
        doubled = LOCK_SECONDS << min(failures - FAILURES_FREE, 10)
        locked = max(locked, now + min(doubled, LOCK_SECONDS_MAX) * SECOND)
    return msgspec.structs.replace(attempts, failures=failures, locked_until=locked)
