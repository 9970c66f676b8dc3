"""Where a Kafka cluster is and how to talk to it, read from a kafka:// URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.urls import mask_url

FORM = "kafka://[user:password@]host[:port][,host2[:port]…][/prefix][?option=value&…]"
PORT_DEFAULT = 9092
PREFIX_DEFAULT = "tidemill"
PARTITIONS_DEFAULT = 6
PARTITIONS_MAX = 1_000
REPLICATION_MAX = 32_767
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SECURITIES = ("plaintext", "ssl")
OPTIONS = ("partitions", "replication", "security", "sasl", "ca", "cert", "key")
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,63}")


class KafkaAddress(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster, the beginning of its topics' names, and what new topics are made of."""

    servers: tuple[str, ...]
    prefix: str = PREFIX_DEFAULT
    partitions: int = PARTITIONS_DEFAULT
    replication: int | None = None
    """Copies of each partition; as the cluster does by default when None."""
    user: str | None = None
    password: str | None = None
    mechanism: str = "SCRAM-SHA-512"
    encrypted: bool = False
    authority_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None

    def __str__(self) -> str:
        """As it may be shown: without user and password."""
        return f"kafka://{','.join(self.servers)}/{self.prefix}"

    __repr__ = __str__


def parse_kafka_url(url: str) -> KafkaAddress:
    """Read a kafka:// URL; InvalidInput names every part that is wrong and never a password."""
    problems: list[Problem] = []
    scheme, _, rest = url.partition("://")
    if scheme != "kafka" or not rest:
        raise InvalidInput([_problem("", f"{mask_url(url)!r} is not {FORM}")])
    location, _, query = rest.partition("?")
    authority, _, prefix = location.partition("/")
    login, _, hosts = authority.rpartition("@")
    user, _, password = login.partition(":")
    options = _options(query, problems)
    if login and not (user and password):
        problems.append(_problem("user", "needs a name and a password: user:password@host"))
    if prefix and not _PREFIX.fullmatch(prefix):
        problems.append(_problem("prefix", "is 1 to 64 letters, digits, dots and hyphens"))
    servers = _servers(hosts, problems)
    address = _address(servers, options, bool(login), problems)
    if problems:
        raise InvalidInput(problems)
    return msgspec.structs.replace(
        address,
        prefix=prefix or PREFIX_DEFAULT,
        user=unquote(user) or None,
        password=unquote(password) or None,
    )


def _problem(part: str, message: str) -> Problem:
    return Problem(path=f"kafka.{part}" if part else "kafka", message=message, code="url")


def _options(query: str, problems: list[Problem]) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    problems += [
        _problem(name, f"is not an option; there are {', '.join(OPTIONS)}")
        for name in options
        if name not in OPTIONS
    ]
    return options


def _servers(hosts: str, problems: list[Problem]) -> tuple[str, ...]:
    servers = []
    for host in hosts.split(","):
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname, parts.port or PORT_DEFAULT
        except ValueError:
            name, port = None, 0
        if not name or not re.fullmatch(r"[\w.:-]+", name):
            problems.append(_problem("host", f"{host!r} is not host or host:port"))
            continue
        servers.append(f"[{name}]:{port}" if ":" in name else f"{name}:{port}")
    return tuple(servers)


def _address(
    servers: tuple[str, ...], options: Mapping[str, str], login: bool, problems: list[Problem]
) -> KafkaAddress:
    # A password goes over an open line only where somebody wrote that it may.
    security = options.get("security", "ssl" if login else "plaintext")
    _check_choice("security", security, SECURITIES, problems)
    mechanism = options.get("sasl", MECHANISMS[-1])
    _check_choice("sasl", mechanism, MECHANISMS, problems)
    if ("cert" in options) != ("key" in options):
        problems.append(_problem("cert", "and key come together: the files of one certificate"))
    if security != "ssl" and {"ca", "cert", "key"} & options.keys():
        problems.append(_problem("ca", "cert and key need security=ssl"))
    return KafkaAddress(
        servers=servers,
        partitions=_number("partitions", options, PARTITIONS_MAX, problems) or PARTITIONS_DEFAULT,
        replication=_number("replication", options, REPLICATION_MAX, problems),
        mechanism=mechanism,
        encrypted=security == "ssl",
        authority_file=options.get("ca"),
        certificate_file=options.get("cert"),
        key_file=options.get("key"),
    )


def _check_choice(name: str, value: str, choices: tuple[str, ...], problems: list[Problem]) -> None:
    if value not in choices:
        problems.append(_problem(name, f"{value!r} is not one of {', '.join(choices)}"))


def _number(
    name: str, options: Mapping[str, str], highest: int, problems: list[Problem]
) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= highest:
        problems.append(_problem(name, f"{text!r} is not a whole number from 1 to {highest:,}"))
        return None
    return int(text)
