"""Kafka behind TLS and a password: who is let in, and what the others are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from tests.contract.broker_stage import numbered, numbers_in, take_all
from tests.servers import KafkaServer, missing
from tidemill.buses.kafka import KafkaBroker
from tidemill.domain.errors import Unavailable

PASSWORD = "open-sesame"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Who signs the server's certificate."""
    return trustme.CA()


@pytest.fixture(scope="module")
def secured(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a Kafka that wants TLS and a password."""
    certificate = tmp_path_factory.mktemp("certificates") / "server.pem"
    certificate.write_bytes(_certificate(authority))
    with ExitStack() as stack:
        try:
            server = stack.enter_context(KafkaServer(certificate, ("ann", PASSWORD)))
        except (OSError, RuntimeError) as error:
            missing("Kafka with TLS", error)
        if not server.durable:
            missing("Apache Kafka", RuntimeError("what stands in for it has no TLS"))
        yield f"127.0.0.1:{server.secure_port}"


def _certificate(authority: trustme.CA) -> bytes:
    issued = authority.issue_cert("127.0.0.1")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    # Java reads keys in this form only.
    readable = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return readable + b"".join(one.bytes() for one in issued.cert_chain_pems)


@pytest.fixture
def authority_file(authority: trustme.CA, tmp_path: Path) -> Path:
    """The certificate that clients trust."""
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


async def test_whoever_trusts_and_knows_the_password_is_let_in(
    secured: str, authority_file: Path
) -> None:
    broker = KafkaBroker(f"kafka://ann:{PASSWORD}@{secured}?sasl=PLAIN&ca={authority_file}")

    await broker.send("work", numbered(3))

    async with broker.consume(["work"], "workers") as member:
        assert sorted(numbers_in(await take_all(member, 3))) == [0, 1, 2]
    await broker.close()


async def test_a_wrong_password_is_told_without_naming_it(
    secured: str, authority_file: Path
) -> None:
    broker = KafkaBroker(f"kafka://ann:wrong-guess@{secured}?sasl=PLAIN&ca={authority_file}")

    with pytest.raises(Unavailable, match=r"[Aa]uthentication") as told:
        await broker.send("work", numbered(1))

    await broker.close()
    assert "wrong-guess" not in str(told.value)


async def test_a_server_that_nobody_vouches_for_is_refused(secured: str) -> None:
    broker = KafkaBroker(f"kafka://ann:{PASSWORD}@{secured}?sasl=PLAIN")

    with pytest.raises(Unavailable, match=r"[Cc]ertificate"):
        await broker.send("work", numbered(1))

    await broker.close()
