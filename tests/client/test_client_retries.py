"""What is tried again, how often, and what comes of errors."""

from __future__ import annotations

import httpx
import pytest

from tests.client.scripted import SERVER, Script, StillSystem, ok, problem, scripted, started
from tidemill.domain.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    RateLimited,
    TidemillError,
    Unauthenticated,
    Unavailable,
)

LOST = httpx.ReadError("connection reset")
AWAY = httpx.ConnectError("connection refused")


async def test_a_start_is_sent_again_with_the_key_that_the_client_made() -> None:
    script = Script(LOST, problem(503, "UNAVAILABLE"), started())

    result = await scripted(script).start("orders")

    assert result.id == "r1"
    assert [body["key"] for body in script.bodies()] == ["key-1"] * 3


async def test_a_key_of_the_user_stays() -> None:
    script = Script(started())

    await scripted(script).start("orders", key="mine")

    assert script.bodies()[0]["key"] == "mine"


async def test_what_may_not_be_done_twice_is_not_sent_twice_once_it_was_sent() -> None:
    script = Script(LOST)

    with pytest.raises(Unavailable):
        await scripted(script).replay("r1", "pick")

    assert len(script.asked) == 1


async def test_what_was_never_sent_may_be_sent_again() -> None:
    script = Script(AWAY, LOST)

    with pytest.raises(Unavailable):
        await scripted(script).replay("r1", "pick")

    assert len(script.asked) == 2


async def test_retries_are_bounded_and_wait_longer_each_time() -> None:
    system, script = StillSystem(), Script(AWAY)

    with pytest.raises(Unavailable, match=rf"{SERVER} does not answer .*tidemill up"):
        await scripted(script, system).overview()

    assert len(script.asked) == 5
    assert system.waits == sorted(system.waits)
    assert sum(system.waits) < 10


async def test_a_server_that_says_when_to_come_again_is_obeyed() -> None:
    limited = problem(429, "RATE_LIMITED", "slow down")
    limited.headers["Retry-After"] = "7"
    system = StillSystem()

    await scripted(Script(limited, started()), system).start("orders")

    assert 7 <= system.waits[0] < 8


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidInput),
        (401, Unauthenticated),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (412, Conflict),
        (415, InvalidInput),
        (429, RateLimited),
        (502, Unavailable),
        (503, Unavailable),
    ],
)
async def test_every_refusal_is_an_error_of_the_domain_with_its_code(
    status: int, kind: type[TidemillError]
) -> None:
    with pytest.raises(kind, match="so it is") as refused:
        await scripted(Script(problem(status, "SOME_CODE", "so it is"))).overview()

    assert refused.value.code in {"SOME_CODE", RateLimited.code}


async def test_problems_keep_their_places() -> None:
    wrong = [{"path": "tasks[0].id", "message": "is missing", "code": "missing"}]
    answer = problem(400, "INVALID", "no", errors=wrong)

    with pytest.raises(InvalidInput) as refused:
        await scripted(Script(answer)).start("orders")

    assert str(refused.value.problems[0]) == "tasks[0].id: is missing"


async def test_an_answer_of_something_else_is_explained() -> None:
    page = httpx.Response(200, content=b"<html>hello</html>")
    proxy = httpx.Response(502, content=b"<html>bad gateway</html>")

    with pytest.raises(TidemillError, match="is it a Tidemill server"):
        await scripted(Script(page)).overview()
    with pytest.raises(Unavailable, match="the server answered 502"):
        await scripted(Script(proxy)).overview()


async def test_fields_of_a_newer_server_are_passed_over() -> None:
    answer = ok({"id": "r1", "created": True, "colour": "green"})

    assert (await scripted(Script(answer)).start("orders")).id == "r1"
