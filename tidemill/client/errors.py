"""From answers of a server to the errors of the domain: the one mapping there is."""

from __future__ import annotations

from collections.abc import Mapping

import httpx
import msgspec

from tidemill.domain.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    Problem,
    RateLimited,
    TidemillError,
    Unauthenticated,
    Unavailable,
)
from tidemill.protocol.resources import ResultView

RETRY_SECONDS_DEFAULT = 1.0
RETRY_SECONDS_MAX = 60.0
DETAIL_CHARACTERS_MAX = 500


class RunFailed(TidemillError):
    """A run whose result was asked for has not succeeded."""

    code = "RUN_FAILED"

    def __init__(self, outcome: ResultView) -> None:
        why = f": {outcome.error}" if outcome.error else ""
        super().__init__(f"run {outcome.id} is {outcome.state}{why}")
        self.outcome = outcome


class _Wrong(msgspec.Struct, frozen=True):
    path: str = ""
    message: str = ""
    code: str = ""


class ProblemDocument(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9457, as far as a client reads it."""

    title: str = ""
    detail: str = ""
    code: str = ""
    errors: tuple[_Wrong, ...] = ()


_documents = msgspec.json.Decoder(ProblemDocument)
_PLAIN: Mapping[int, type[TidemillError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
_INVALID = frozenset({400, 405, 406, 411, 413, 414, 415, 422, 431})


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> TidemillError:
    """What an answer that is no success means."""
    document = _read(body)
    code = document.code or None
    detail = document.detail or document.title or _words(status, body)
    if status in _INVALID:
        return _invalid(document, detail)
    if status == httpx.codes.TOO_MANY_REQUESTS:
        return RateLimited(detail, retry_seconds=retry_after(headers) or RETRY_SECONDS_DEFAULT)
    return _PLAIN.get(status, TidemillError)(detail, code=code)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """How long the server asks to wait, up to a bound; None when it does not say."""
    text = headers.get("retry-after", "")
    return min(float(text), RETRY_SECONDS_MAX) if text.isdecimal() else None


def unreachable(
    server: str, error: Exception, *, origin: str = "", instead: str = ""
) -> Unavailable:
    """A server that does not answer, who named it, and what to do about it."""
    named = f"{server} of {origin}" if origin else server
    why = str(error) or type(error).__name__
    fix = "start one with `tidemill up`, or name another with --server or TIDEMILL_SERVER"
    also = f"; {instead}" if instead else ""
    return Unavailable(f"{named} does not answer ({why}): {fix}{also}", code="UNREACHABLE")


def unreadable(server: str, error: Exception) -> TidemillError:
    """A server that answers something else than this release expects."""
    return TidemillError(
        f"{server} answers what this release of Tidemill cannot read ({error}): "
        "is it a Tidemill server, and of the same release?",
        code="UNREADABLE",
    )


def _invalid(document: ProblemDocument, detail: str) -> InvalidInput:
    problems = [
        Problem(path=one.path, message=one.message, code=one.code) for one in document.errors
    ]
    code = document.code or InvalidInput.code
    error = InvalidInput(problems or [Problem(path="", message=detail, code=code)])
    error.code = code
    return error


def _read(body: bytes) -> ProblemDocument:
    try:
        return _documents.decode(body)
    except msgspec.DecodeError:
        return ProblemDocument()


def _words(status: int, body: bytes) -> str:
    """For answers that come from somewhere else, such as a proxy."""
    text = body.decode("utf-8", "replace").strip()
    said = f": {text[:DETAIL_CHARACTERS_MAX]}" if text and not text.startswith("<") else ""
    return f"the server answered {status}{said}"
