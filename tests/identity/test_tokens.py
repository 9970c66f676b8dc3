"""Signed tokens, and everything that people try with them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.identity.stage import Clock, House
from tidemill.credentials.tokens import ALGORITHM, LEEWAY_SECONDS, JwtSigner, read_key_file
from tidemill.domain.errors import InvalidInput
from tidemill.domain.identifiers import SECOND
from tidemill.ports.identity import ACCESS, TASK
from tidemill.runtime.system import SystemEntropy

KEY = bytes(range(32))
CLOCK = Clock()
NOW = CLOCK.moment // SECOND
SIGNER = JwtSigner(KEY, CLOCK, SystemEntropy())
CLAIMS: dict[str, Any] = {
    "iss": "tidemill",
    "aud": "tidemill-access",
    "typ": "access",
    "sub": "1",
    "jti": "2",
    "sid": "3",
    "iat": NOW,
    "nbf": NOW,
    "exp": NOW + 900,
}
PUBLIC_KEY = (
    b"-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----"
)


def forged(header: dict[str, Any], claims: dict[str, Any] = CLAIMS, key: bytes = KEY) -> str:
    """A token with any header, signed by HMAC-SHA256 with any key."""
    parts = [_encoded(json.dumps(part).encode()) for part in (header, claims)]
    signature = hmac.new(key, ".".join(parts).encode(), hashlib.sha256).digest()
    return ".".join([*parts, _encoded(signature)])


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


OURS = {"alg": "HS256", "typ": "JWT"}
ATTACKS: dict[str, str] = {
    "no algorithm": forged({"alg": "none", "typ": "JWT"}).rpartition(".")[0] + ".",
    "no algorithm, signed": forged({"alg": "none", "typ": "JWT"}),
    "odd case of none": forged({"alg": "nOnE", "typ": "JWT"}),
    "another hash": jwt.encode(CLAIMS, KEY * 2, "HS512", headers={"typ": "JWT"}),
    "says RS256": forged({"alg": "RS256", "typ": "JWT"}),
    "says ES256": forged({"alg": "ES256", "typ": "JWT"}),
    "a public key as the secret": forged(OURS, key=PUBLIC_KEY),
    "an empty key": forged(OURS, key=b"\0"),
    "another key": forged(OURS, key=bytes(32)),
    "unknown crit": forged({**OURS, "crit": ["exp"]}),
    "crit b64": forged({**OURS, "crit": ["b64"], "b64": False}),
    "kid that is a path": forged({**OURS, "kid": "../../dev/null"}),
    "kid that is SQL": forged({**OURS, "kid": "x' UNION SELECT 'key"}),
    "jku": forged({**OURS, "jku": "https://evil.test/keys"}),
    "x5u": forged({**OURS, "x5u": "https://evil.test/chain"}),
    "jwk": forged({**OURS, "jwk": {"kty": "oct", "k": "AAAA"}}),
    "x5c": forged({**OURS, "x5c": ["AAAA"]}),
    "no typ": forged({"alg": "HS256"}),
    "no alg": forged({"typ": "JWT"}),
    "cty": forged({**OURS, "cty": "JWT"}),
    "no signature": forged(OURS).rpartition(".")[0] + ".",
    "a flipped signature": forged(OURS)[:-2] + "AA",
    "four parts": forged(OURS) + ".AAAA",
    "two parts": forged(OURS).rpartition(".")[0],
    "no base64": "%%%.%%%.%%%",
    "empty": "",
    "dots": "..",
    "very long": forged(OURS) + "A" * 5_000,
}


def test_a_token_of_ours_is_read() -> None:
    assert SIGNER.read(ACCESS, forged(OURS)) == CLAIMS
    assert ALGORITHM == "HS256"


@pytest.mark.parametrize("attack", ATTACKS)
def test_point_04_a_token_that_is_not_exactly_ours_is_nothing(attack: str) -> None:
    assert SIGNER.read(ACCESS, ATTACKS[attack]) is None


@pytest.mark.parametrize("attack", [name for name, token in ATTACKS.items() if token.isascii()])
async def test_point_04_over_http_each_of_them_is_401(house: House, attack: str) -> None:
    answer = await house.ask(ATTACKS[attack] or "x", "GET", "/v1/auth/me")

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


WRONG: dict[str, dict[str, Any]] = {
    "expired": {"iat": NOW - 1_000, "exp": NOW - LEEWAY_SECONDS},
    "expired long ago": {"iat": 0, "exp": 900},
    "not yet": {"nbf": NOW + LEEWAY_SECONDS + 1},
    "issued in the future": {"iat": NOW + LEEWAY_SECONDS + 1},
    "too long": {"exp": NOW + 901},
    "backwards": {"exp": NOW - 1, "iat": NOW},
    "another issuer": {"iss": "someone"},
    "another audience": {"aud": "tidemill-task"},
    "several audiences": {"aud": ["tidemill-access", "x"]},
    "another kind": {"typ": "task"},
    "a refresh token": {"typ": "refresh"},
    "exp as text": {"exp": str(NOW + 900)},
    "exp true": {"exp": True},
    "exp a fraction": {"exp": NOW + 0.5},
    "exp null": {"exp": None},
    "exp infinite": {"exp": 10**400},
    "negative iat": {"iat": -1},
    "sub a number": {"sub": 1},
    "sub a list": {"sub": ["1"]},
}


@pytest.mark.parametrize("name", WRONG)
def test_point_05_a_claim_that_is_wrong_makes_the_token_nothing(name: str) -> None:
    assert SIGNER.read(ACCESS, forged(OURS, {**CLAIMS, **WRONG[name]})) is None


@pytest.mark.parametrize("claim", ["iss", "aud", "typ", "sub", "jti", "iat", "nbf", "exp"])
def test_point_05_a_claim_that_is_missing_makes_the_token_nothing(claim: str) -> None:
    claims = {name: value for name, value in CLAIMS.items() if name != claim}

    assert SIGNER.read(ACCESS, forged(OURS, claims)) is None


def test_point_05_the_leeway_is_below_a_minute_and_holds_to_the_second() -> None:
    inside = {"iat": NOW - 100, "exp": NOW - LEEWAY_SECONDS + 1}

    assert LEEWAY_SECONDS <= 60
    assert SIGNER.read(ACCESS, forged(OURS, {**CLAIMS, **inside}))
    assert SIGNER.read(ACCESS, forged(OURS, {**CLAIMS, "nbf": NOW + LEEWAY_SECONDS}))


def test_a_token_of_one_kind_is_not_taken_for_another() -> None:
    task = SIGNER.sign(TASK, "run/0/1", 60)

    assert SIGNER.read(ACCESS, task) is None
    assert SIGNER.read(TASK, task)


async def test_point_05_an_access_token_ends_after_a_quarter_of_an_hour(
    house: House, clock: Clock
) -> None:
    clock.moment += (15 * 60 + LEEWAY_SECONDS) * SECOND

    assert (await house.ask(house.root, "GET", "/v1/auth/me")).status_code == 401


async def test_a_good_signature_without_a_living_login_opens_nothing(house: House) -> None:
    """What a thief of the database could sign: the key is there, no session is."""
    account = (await house.got(house.root, "GET", "/v1/auth/me"))["id"]
    signer = house.identity.signer

    for session in ("", "0" * 32, house.root):
        token = signer.sign(ACCESS, account, 900, sid=session)
        assert (await house.ask(token, "GET", "/v1/auth/me")).status_code == 401


async def test_a_login_opens_nothing_for_another_account(house: House) -> None:
    other = await house.user("eve@mill.test")
    sid = jwt.decode(other, options={"verify_signature": False})["sid"]
    root = (await house.got(house.root, "GET", "/v1/auth/me"))["id"]

    token = house.identity.signer.sign(ACCESS, root, 900, sid=sid)

    assert (await house.ask(token, "GET", "/v1/auth/me")).status_code == 401


@pytest.mark.parametrize(
    "text", ["", "secret", "a" * 64, "00" * 32, "tidemill-secret-tidemill-secret-0123456789"]
)
def test_point_03_a_signing_key_that_can_be_guessed_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "key"
    file.write_text(text)

    with pytest.raises(InvalidInput, match="signing-key-file"):
        read_key_file(file)


def test_a_signing_key_comes_as_digits_base64_or_bytes(tmp_path: Path) -> None:
    file = tmp_path / "key"
    for data in (KEY.hex().encode(), base64.b64encode(KEY) + b"\n", KEY):
        file.write_bytes(data)
        assert read_key_file(file)[:8] in {KEY[:8], KEY.strip()[:8]}


def test_a_signing_key_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_key_file(tmp_path / "nothing")
