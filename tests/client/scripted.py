"""A server that answers as a test says, and a machine on which no time passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import httpx
import msgspec

from tidemill.client import Client
from tidemill.client.connection import Connection, Place
from tidemill.client.credentials import Credentials

SERVER = "http://mill.example"
Answer = httpx.Response | Exception


class StillSystem:
    """Notes how long it was asked to wait."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self._keys = 0

    def monotonic(self) -> float:
        return sum(self.waits)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def fraction(self) -> float:
        return 0.5

    def fresh_key(self) -> str:
        self._keys += 1
        return f"key-{self._keys}"


class Script:
    """Answers in turn; the last one again and again. Keeps what was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[httpx.Request] = []
        self._answers = list(answers)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def bodies(self) -> list[Any]:
        """What was sent, decoded."""
        return [msgspec.json.decode(request.content) for request in self.asked]


def scripted(
    answer: Callable[[httpx.Request], httpx.Response],
    system: StillSystem | None = None,
    credentials: Credentials | None = None,
) -> Client:
    """A client of a scripted server."""
    place = Place(server=SERVER, transport=httpx.MockTransport(answer))
    return Client.over(Connection(place, credentials, system or StillSystem()))  # type: ignore[arg-type]


def ok(value: Any, status: int = 200) -> httpx.Response:
    """An answer with a JSON body."""
    return httpx.Response(status, content=msgspec.json.encode(value))


def problem(status: int, code: str, detail: str = "", **more: Any) -> httpx.Response:
    """A refusal as RFC 9457 has it."""
    body = {"status": status, "code": code, "title": code, "detail": detail, **more}
    return httpx.Response(status, content=msgspec.json.encode(body))


def started(run_id: str = "r1") -> httpx.Response:
    """What a start answers."""
    return ok({"id": run_id, "created": True}, 201)


def lines(items: Sequence[Any]) -> httpx.Response:
    """NDJSON."""
    return httpx.Response(200, content=b"".join(msgspec.json.encode(i) + b"\n" for i in items))
