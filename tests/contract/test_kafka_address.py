"""How a kafka:// URL is read, and what it says when it cannot be."""

from __future__ import annotations

import pytest

from tidemill.buses.kafka_address import parse_kafka_url
from tidemill.buses.kafka_client import Troubles, client_settings, topic_name
from tidemill.domain.errors import InvalidInput


def test_a_short_url_gets_the_usual_values() -> None:
    address = parse_kafka_url("kafka://broker")

    assert address.servers == ("broker:9092",)
    assert (address.prefix, address.partitions, address.replication) == ("tidemill", 6, None)
    assert not address.encrypted


def test_every_part_of_a_url_is_read() -> None:
    address = parse_kafka_url(
        "kafka://ann:s%40cret@a:1,[::1]:2/shop?partitions=12&replication=3&sasl=PLAIN&ca=/ca.pem"
    )

    assert address.servers == ("a:1", "[::1]:2")
    assert (address.user, address.password, address.mechanism) == ("ann", "s@cret", "PLAIN")
    assert (address.prefix, address.partitions, address.replication) == ("shop", 12, 3)
    assert address.authority_file == "/ca.pem"


@pytest.mark.parametrize(
    ("url", "security"),
    [
        ("kafka://a", "PLAINTEXT"),
        ("kafka://a?security=ssl", "SSL"),
        ("kafka://ann:secret@a", "SASL_SSL"),
        ("kafka://ann:secret@a?security=plaintext", "SASL_PLAINTEXT"),
    ],
)
def test_a_password_travels_encrypted_unless_the_url_says_otherwise(
    url: str, security: str
) -> None:
    address = parse_kafka_url(url)

    assert client_settings(address, Troubles(address))["security.protocol"] == security


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://a", "kafka: 'redis://a' is not kafka://"),
        ("kafka://", "is not kafka://"),
        ("kafka://a,,b", "kafka.host: '' is not host or host:port"),
        ("kafka://a:x", "kafka.host: 'a:x' is not host or host:port"),
        ("kafka://ann@a", "kafka.user: needs a name and a password"),
        ("kafka://a/x_y", "kafka.prefix: is 1 to 64 letters"),
        ("kafka://a?partitions=0", "kafka.partitions: '0' is not a whole number from 1 to 1,000"),
        ("kafka://a?partition=3", "kafka.partition: is not an option; there are partitions"),
        ("kafka://a?security=tls", "kafka.security: 'tls' is not one of plaintext, ssl"),
        ("kafka://a?sasl=GSSAPI", "kafka.sasl: 'GSSAPI' is not one of PLAIN"),
        ("kafka://a?security=ssl&cert=c", "kafka.cert: and key come together"),
        ("kafka://a?ca=c", "kafka.ca: cert and key need security=ssl"),
    ],
)
def test_what_is_wrong_with_a_url_is_named(url: str, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_kafka_url(url)

    assert told in str(refused.value)


def test_every_problem_is_told_at_once_and_no_password() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_kafka_url("kafka://ann:secret@a:x?partitions=no&replication=0")

    assert len(refused.value.problems) == 3
    assert "secret" not in str(refused.value)


def test_an_address_shows_no_password() -> None:
    address = parse_kafka_url("kafka://ann:secret@a")

    assert "secret" not in f"{address} {address!r}"


def test_topics_have_names_that_kafka_allows_and_that_stay_apart() -> None:
    names = [topic_name("t", topic) for topic in ("a.b-c", "a=b", "a,b", "ä", "x" * 400, "x" * 401)]

    assert names[:4] == ["t.a.b-c", "t.a-3db", "t.a-2cb", "t.-c3-a4"]
    assert len(set(names)) == 6
    assert max(map(len, names)) == 249
