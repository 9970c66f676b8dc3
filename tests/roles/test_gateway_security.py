"""TLS and tokens on the gateway's address, from both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
import pytest
import trustme

from tests.roles.gateway_stage import a_mill
from tests.roles.test_worker_grpc import hello_then_silence
from tests.servers.listening import listening
from tidemill.domain.errors import InvalidInput
from tidemill.gateway.gates import SharedTokens
from tidemill.gateway.security import TokenFile, Tokens, server_credentials
from tidemill.protocol.codec import ATTACH
from tidemill.protocol.generated import query_pb2, worker_pb2
from tidemill.protocol.messages import (
    Hello,
    Ping,
    SchedulerMessage,
    Welcome,
    WorkerMessage,
)
from tidemill.worker.grpc_link import ChannelSecurity, GrpcLink, read_security
from tidemill.worker.link import LinkLost, WorkerRefused

SERVICES = [
    *worker_pb2.DESCRIPTOR.services_by_name.values(),
    *query_pb2.DESCRIPTOR.services_by_name.values(),
]
METHODS = [f"/{one.full_name}/{method.name}" for one in SERVICES for method in one.methods]
STRANGERS = ["/tidemill.query.v1.Query/NoSuchMethod", "/no.such.Service/Method"]
GOOD = SharedTokens(Tokens(["s3cret-one", "s3cret-two"]))


@dataclass(frozen=True)
class Papers:
    """Certificates of one authority, as files."""

    authority: Path
    certificate: Path
    key: Path


def papers(folder: Path, name: str, *hosts: str) -> Papers:
    authority = trustme.CA()
    pair = authority.issue_cert(*hosts)
    files = Papers(folder / f"{name}.ca", folder / f"{name}.crt", folder / f"{name}.key")
    authority.cert_pem.write_to_path(str(files.authority))
    pair.private_key_pem.write_to_path(str(files.key))
    for blob in pair.cert_chain_pems:
        blob.write_to_path(str(files.certificate), append=True)
    return files


@pytest.fixture
def server(tmp_path: Path) -> Papers:
    return papers(tmp_path, "server", "localhost", "127.0.0.1")


async def first_word(address: str, security: ChannelSecurity | None = None) -> SchedulerMessage:
    """What a worker hears first."""
    answers = GrpcLink(address, security).open(hello_then_silence())
    try:
        async with asyncio.timeout(5):
            return await anext(aiter(answers))
    finally:
        await answers.aclose()  # type: ignore[attr-defined]


async def call(address: str, method: str, *tokens: str | None) -> grpc.StatusCode:
    """How a call of any kind ends that brings an empty request."""
    metadata = [("authorization", token) for token in tokens if token is not None]
    async with grpc.aio.insecure_channel(address) as channel, asyncio.timeout(5):
        started = channel.stream_stream(method, None, None)(None, metadata=metadata)
        with suppress(grpc.aio.AioRpcError):
            await started.write(b"")
            while isinstance(await started.read(), bytes):
                """Whatever it says."""
        return await started.code()


def test_the_services_are_the_ones_that_are_known() -> None:
    assert len(METHODS) == 6
    assert ATTACH in METHODS


@pytest.mark.parametrize("method", [*METHODS, *STRANGERS])
@pytest.mark.parametrize(
    "token", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic s3cret-one", "s3cret-one"]
)
async def test_no_method_of_any_service_answers_without_a_token(
    method: str, token: str | None
) -> None:
    async with a_mill(gate=GOOD) as mill:
        assert await call(mill.address, method, token) is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("method", METHODS)
async def test_every_method_answers_whoever_has_a_token(method: str) -> None:
    async with a_mill(gate=GOOD) as mill:
        code = await call(mill.address, method, "Bearer s3cret-two")

    # An empty request lacks something, except where everything has a default.
    expected = "OK" if method.endswith("ListRuns") else "INVALID_ARGUMENT"
    assert code is grpc.StatusCode[expected]


async def test_two_tokens_in_one_call_are_refused() -> None:
    async with a_mill(gate=GOOD) as mill:
        code = await call(mill.address, METHODS[0], "Bearer wrong", "Bearer s3cret-one")

    assert code is grpc.StatusCode.UNAUTHENTICATED


async def test_a_token_opens_a_plaintext_port_on_loopback() -> None:
    async with a_mill(gate=GOOD) as mill:
        word = await first_word(mill.address, read_security(token="s3cret-one"))

    assert isinstance(word, Welcome)


async def test_a_wrong_token_ends_the_worker_with_a_clear_message() -> None:
    async with a_mill(gate=GOOD) as mill:
        with pytest.raises(WorkerRefused) as refused:
            await first_word(mill.address, read_security(token="wrong"))

    assert str(refused.value) == f"the scheduler at {mill.address} refused the token"


async def test_a_missing_token_is_named() -> None:
    async with a_mill(gate=GOOD) as mill:
        with pytest.raises(WorkerRefused, match="wants a token"):
            await first_word(mill.address)


async def test_a_unix_socket_needs_no_token(tmp_path: Path) -> None:
    async with a_mill(address=f"unix:{tmp_path}/gate") as mill:
        assert isinstance(await first_word(mill.address), Welcome)


async def test_tls_and_token_together_let_a_worker_in(server: Papers) -> None:
    credentials = server_credentials(server.certificate, server.key)
    async with a_mill(credentials=credentials, gate=GOOD) as mill:
        security = read_security(ca=server.authority, token="s3cret-one")

        assert isinstance(await first_word(mill.address, security), Welcome)


async def test_mutual_tls_lets_in_who_has_a_certificate(server: Papers, tmp_path: Path) -> None:
    worker = papers(tmp_path, "worker", "worker-1")
    credentials = server_credentials(server.certificate, server.key, worker.authority)
    async with a_mill(credentials=credentials) as mill:
        known = read_security(ca=server.authority, certificate=worker.certificate, key=worker.key)

        assert isinstance(await first_word(mill.address, known), Welcome)
        with pytest.raises(LinkLost, match="want a certificate of the worker"):
            await first_word(mill.address, read_security(ca=server.authority))


@pytest.fixture
def other(tmp_path: Path) -> Papers:
    return papers(tmp_path, "other", "elsewhere.example")


async def test_an_untrusted_certificate_is_a_lost_link_in_one_line(
    server: Papers, other: Papers
) -> None:
    async with a_mill(credentials=server_credentials(server.certificate, server.key)) as mill:
        with pytest.raises(LinkLost) as lost:
            await first_word(mill.address, read_security(ca=other.authority))

    assert str(lost.value).startswith(f"{mill.address}: its certificate is not trusted (unable")
    assert "\n" not in str(lost.value)


async def test_a_certificate_for_another_name_is_a_lost_link(other: Papers) -> None:
    async with a_mill(credentials=server_credentials(other.certificate, other.key)) as mill:
        with pytest.raises(LinkLost, match="its certificate is for another name"):
            await first_word(mill.address, read_security(ca=other.authority))


async def test_tls_where_the_other_side_has_none_is_a_lost_link(server: Papers) -> None:
    async with a_mill() as plain:
        with pytest.raises(LinkLost, match="does not speak TLS"):
            await first_word(plain.address, read_security(ca=server.authority))
    async with a_mill(credentials=server_credentials(server.certificate, server.key)) as mill:
        with pytest.raises(LinkLost, match="does it want TLS"):
            await first_word(mill.address)


async def test_a_port_that_serves_http_is_told_from_the_one_for_workers() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await reader.read()

    async with listening(refuse) as port:
        with pytest.raises(LinkLost, match=r"is this the port for workers \(7300 by default\)\?"):
            await first_word(f"127.0.0.1:{port}")


def test_files_that_are_no_papers_are_refused_by_name(server: Papers, other: Papers) -> None:
    with pytest.raises(InvalidInput, match=r"server\.crt: and .*other\.key are no certificate"):
        server_credentials(server.certificate, other.key)
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        server_credentials(server.certificate.with_name("nothing"), server.key)
    with pytest.raises(InvalidInput, match="holds no certificate"):
        read_security(ca=server.key)
    with pytest.raises(InvalidInput, match="belong together"):
        read_security(certificate=server.certificate)


def test_tokens_are_rotated_by_editing_their_file(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# of this year\nold-token\n")
    tokens = TokenFile(file)
    file.write_text("new-token\nold-token\n")
    both = (tokens.accepts("new-token"), tokens.accepts("old-token"))
    file.write_text("new-token\n")

    assert both == (True, True)
    assert (tokens.accepts("new-token"), tokens.accepts("old-token")) == (True, False)


def test_a_token_file_that_goes_away_leaves_the_tokens_in_force(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("token\n")
    tokens = TokenFile(file)
    file.unlink()
    gone = tokens.accepts("token")
    file.write_text("\n")

    assert (gone, tokens.accepts("token"), tokens.accepts("")) == (True, True, False)


async def test_a_token_that_is_withdrawn_ends_the_streams_it_opened(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("old-token\n")
    async with a_mill(gate=SharedTokens(TokenFile(file))) as mill:
        link = GrpcLink(mill.address, read_security(token="old-token"))
        answers = link.open(_hello_then_pings())
        await anext(aiter(answers))
        file.write_text("new-token\n")

        with pytest.raises(WorkerRefused, match="refused the token"):
            async with asyncio.timeout(5):
                _ = [message async for message in answers]
        assert mill.sessions() == 0


async def _hello_then_pings() -> AsyncIterator[WorkerMessage]:
    yield Hello(worker="w1", slots=1)
    while True:
        await asyncio.sleep(0.05)
        yield Ping()


@pytest.mark.parametrize("text", ["", "# nothing\n", "two words\n", "ümlaut\n", "x" * 513])
def test_a_token_file_without_usable_tokens_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)

    with pytest.raises(InvalidInput) as refused:
        TokenFile(file)

    assert str(file) in str(refused.value)
    assert not text or text.strip("# \n") not in str(refused.value)


def test_no_token_is_shown_where_values_are_printed() -> None:
    assert "s3cret" not in repr(ChannelSecurity(token="s3cret-one"))
