"""Makes one HTTP request, and knows which answers are worth another try."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Collection, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Literal

import httpx
import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidemill.domain.identifiers import SECOND, Moment
from tidemill.worker.executor import Call, Executor, Workshop, problems_of, read_params
from tidemill.worker.executors.arguments import Argument, argument_text, unknown_inputs
from tidemill.worker.failures import TaskFailure

REDIRECTS_MAX = 5
BODY_CHARACTERS_SHOWN = 500
RETRY_STATUSES = frozenset({408, 425, 429})  # of the 4xx; every 5xx is worth another try
PATIENT_STATUSES = frozenset({429, 503})  # those whose Retry-After is heeded
_asks = contextvars.ContextVar("tidemill_http_asks", default=False)
KEPT_HEADERS = ("content-type", "etag", "last-modified", "location", "retry-after", "date")


class HttpParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request. Without `json`, POST, PUT and PATCH send the task's inputs."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    url: Argument
    headers: dict[str, Argument] = {}
    json: Any | UnsetType = UNSET
    expect_status: tuple[Annotated[int, Meta(ge=100, le=599)], ...] = ()  # empty: any 2xx
    timeout_seconds: Annotated[float, Meta(gt=0, le=86_400)] = 30.0


class _OwnLines(logging.Filter):
    """Keeps what httpx tells about our requests out of the task's output; users' own requests, in
    Python functions, are logged as ever."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is worth keeping."""
        return record.levelno >= logging.WARNING or not _asks.get()


_own_lines = _OwnLines()


class HttpExecutor(Executor):
    """Sends an Idempotency-Key that is the same for every attempt of a task."""

    def __init__(self, workshop: Workshop) -> None:
        self._clock = workshop.clock
        self._body_bytes_max = workshop.result_bytes_max
        self._client: httpx.AsyncClient | None = None
        logging.getLogger("httpx").addFilter(_own_lines)  # the same one again changes nothing

    def check(self, params: Mapping[str, Any]) -> list[str]:
        """Needs `url`."""
        return problems_of(params, HttpParams)

    def rehearse(self, params: Mapping[str, Any], inputs: Collection[str]) -> list[str]:
        """Also: the inputs that url and headers take are inputs of the task."""
        if problems := self.check(params):
            return problems
        given = msgspec.convert(params, HttpParams)
        headers = {f"headers.{name}": value for name, value in given.headers.items()}
        return unknown_inputs({"url": given.url, **headers}, inputs)

    async def run(self, call: Call) -> dict[str, Any]:
        """Make the request and return status, some headers, and the body as JSON or text."""
        params = read_params(call.params, HttpParams)
        _asks.set(True)  # each attempt is a task with a context of its own
        try:
            async with asyncio.timeout(params.timeout_seconds):
                response, body = await self._exchange(params, call)
        except (TimeoutError, httpx.TimeoutException) as error:
            text = f"no answer within {params.timeout_seconds:g} s"
            raise TaskFailure("HttpTimeout", text) from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise TaskFailure("InvalidParams", f"params.url: {error}", final=True) from error
        except httpx.HTTPError as error:
            raise TaskFailure("HttpError", f"{type(error).__name__}: {error}") from error
        self._judge(params, response, body)
        return _result(response, body)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _exchange(self, params: HttpParams, call: Call) -> tuple[httpx.Response, bytes]:
        client = self._shared_client()
        request = _request(client, params, call)
        for _ in range(REDIRECTS_MAX + 1):
            response = await client.send(request, stream=True)
            try:
                following = response.next_request
                if following is None or response.status_code in params.expect_status:
                    return response, await self._read(response)
            finally:
                await response.aclose()
            _check_redirect(request, following)
            request = following
        raise TaskFailure("TooManyRedirects", f"more than {REDIRECTS_MAX} redirects", final=True)

    async def _read(self, response: httpx.Response) -> bytes:
        body = b""
        async for data in response.aiter_bytes():
            body += data
            if len(body) > self._body_bytes_max:
                text = f"the answer is larger than {self._body_bytes_max} bytes, the limit"
                raise TaskFailure("ResultTooLarge", text, final=True)
        return body

    def _judge(self, params: HttpParams, response: httpx.Response, body: bytes) -> None:
        status = response.status_code
        expected = status in params.expect_status if params.expect_status else 200 <= status < 300
        if expected:
            return
        patience = None
        if status in PATIENT_STATUSES:
            patience = retry_after(response.headers.get("retry-after"), self._clock.now())
        words = body.decode("utf-8", "replace")[:BODY_CHARACTERS_SHOWN].strip()
        raise TaskFailure(
            "HttpStatus",
            f"{response.request.method} {response.request.url}: {status} {words}".rstrip(),
            final=status < 500 and status not in RETRY_STATUSES,
            retry_after_seconds=patience,
        )

    def _shared_client(self) -> httpx.AsyncClient:
        if self._client is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
            self._client = httpx.AsyncClient(limits=limits, timeout=None)  # noqa: S113  (ours)
        return self._client


def retry_after(value: str | None, now: Moment) -> float | None:
    """The seconds that a Retry-After header asks for, given as a number or as a date."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        due = parsedate_to_datetime(value)
    except ValueError:
        return None
    moment = due if due.tzinfo is not None else due.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now / SECOND)


def _request(client: httpx.AsyncClient, params: HttpParams, call: Call) -> httpx.Request:
    url = _text(params.url, call, "url")
    headers = {
        "Idempotency-Key": call.context.idempotency_key,
        **{name: _text(v, call, f"headers.{name}") for name, v in params.headers.items()},
    }
    content = _content(params, call)
    if content is not None:
        headers.setdefault("Content-Type", "application/json")
    request = client.build_request(params.method, url, headers=headers, content=content)
    if request.url.scheme not in {"http", "https"}:
        raise TaskFailure("InvalidParams", "params.url: must begin with http(s)://", final=True)
    return request


def _content(params: HttpParams, call: Call) -> bytes | None:
    if params.json is not UNSET:
        return msgspec.json.encode(params.json)
    if params.method in {"POST", "PUT", "PATCH"}:
        return msgspec.json.encode(call.inputs)
    return None


def _text(argument: Argument, call: Call, place: str) -> str:
    value = argument_text(argument, call.inputs, place)
    if "\r" in value or "\n" in value or "\0" in value:
        raise TaskFailure("InvalidParams", f"params.{place}: holds a line break", final=True)
    return value


def _check_redirect(request: httpx.Request, following: httpx.Request) -> None:
    if following.url.scheme != request.url.scheme:
        raise TaskFailure(
            "RedirectRefused",
            f"{request.url} leads to {following.url}: another scheme is not followed",
            final=True,
        )


def _result(response: httpx.Response, body: bytes) -> dict[str, Any]:
    headers = {n: response.headers[n] for n in KEPT_HEADERS if n in response.headers}
    result: dict[str, Any] = {"status": response.status_code, "headers": headers}
    if "json" in response.headers.get("content-type", ""):
        try:
            return {**result, "json": msgspec.json.decode(body)}
        except (msgspec.DecodeError, RecursionError):
            """The answer is not what it says it is: hand it on as text."""
    return {**result, "text": body.decode("utf-8", "replace")}
