"""Which server is meant, what is shown to it, and how tokens are renewed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.client.scripted import Script, StillSystem, ok, problem, scripted
from tidemill.client import Client
from tidemill.client.choosing import DEFAULT_SERVER, Choice, Wanted, choose, choose_or_default
from tidemill.client.contexts import Context, ContextFile, Contexts, check_server
from tidemill.client.renewing import ContextCredentials
from tidemill.domain.errors import InvalidInput, NotFound, Unauthenticated

HOME = Context(server="http://home:1", namespace="mine", access_token="a1", refresh_token="r1")
WORK = Context(server="https://office", api_key="tmk_1")
TOKENS = {
    "access_token": "a2",
    "refresh_token": "r2",
    "expires_in": 900,
    "user": {"id": "u", "email": "a@b.c", "name": "Ada", "created_at": "2027-01-01T00:00:00Z"},
}


@pytest.fixture
def file(tmp_path: Path) -> ContextFile:
    """A file with two contexts; `home` is current."""
    file = ContextFile.of({"XDG_CONFIG_HOME": str(tmp_path / "config")})
    file.write(Contexts().with_context("home", HOME).with_context("work", WORK))
    return file


def test_contexts_are_kept_for_the_eyes_of_their_user_only(file: ContextFile) -> None:
    assert file.read() == Contexts(current="home", by_name={"home": HOME, "work": WORK})
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700


def test_contexts_are_added_chosen_and_removed(file: ContextFile) -> None:
    contexts = file.read().using("work").without("home")

    assert (contexts.current, list(contexts.by_name)) == ("work", ["work"])
    assert contexts.without("work").current is None
    with pytest.raises(NotFound, match="home, work"):
        file.read().named("nobody")
    with pytest.raises(InvalidInput, match="must be letters"):
        contexts.with_context("a/b", HOME)


def test_each_server_gets_a_name_of_its_own() -> None:
    contexts = Contexts()
    for server in (
        "http://127.0.0.1:8080",
        "http://127.0.0.1:8091",
        "http://127.0.0.1:8091/mill",
        "https://127.0.0.1",
        "http://[::1]:8080",
        "unix:/run/a",
        "unix:/run/b",
        f"https://{'x' * 99}",
        f"https://{'x' * 99}:8443",
    ):
        contexts = contexts.with_context(contexts.fresh_name(server), Context(server=server))

    assert list(contexts.by_name) == [
        "127.0.0.1",
        "127.0.0.1-8091",
        "127.0.0.1-8091-2",
        "127.0.0.1-2",
        "1",
        "local",
        "local-2",
        "x" * 56,
        f"{'x' * 56}-2",
    ]


def test_a_file_that_cannot_be_read_is_named(file: ContextFile) -> None:
    file.path.write_text("current = [")

    with pytest.raises(InvalidInput, match=r"contexts\.toml: cannot be read"):
        file.read()


@pytest.mark.parametrize(
    ("wanted", "environ", "origin", "server", "token"),
    [
        (Wanted(), {}, "context home", "http://home:1", "a1"),
        (Wanted(), {"TIDEMILL_API_KEY": "k"}, "context home", "http://home:1", "k"),
        (Wanted(), {"TIDEMILL_CONTEXT": "work"}, "context work", "https://office", "tmk_1"),
        (Wanted(), {"TIDEMILL_SERVER": "http://x:2/"}, "TIDEMILL_SERVER", "http://x:2", None),
        (
            Wanted(context="work"),
            {"TIDEMILL_SERVER": "http://x:2", "TIDEMILL_API_KEY": "k"},
            "context work",
            "https://office",
            "tmk_1",
        ),
        (
            Wanted(server="http://y:3", context="work"),
            {"TIDEMILL_API_KEY": "k"},
            "--server",
            "http://y:3",
            "k",
        ),
    ],
)
async def test_flags_beat_the_environment_which_beats_the_current_context(
    file: ContextFile,
    wanted: Wanted,
    environ: dict[str, str],
    origin: str,
    server: str,
    token: str | None,
) -> None:
    choice = choose(wanted, environ, file)

    assert choice is not None
    assert (choice.origin, choice.server) == (origin, server)
    assert await choice.credentials.token() == token


@pytest.mark.parametrize("origin", ["--server", "TIDEMILL_SERVER"])
async def test_a_server_named_by_its_address_is_shown_the_login_of_its_context(
    file: ContextFile, origin: str
) -> None:
    def by_address(server: str, **environ: str) -> Choice | None:
        if origin == "--server":
            return choose(Wanted(server=server), environ, file)
        return choose(Wanted(), {"TIDEMILL_SERVER": server, **environ}, file)

    same = by_address("http://home:1/")
    other = by_address("http://home:2")
    by_key = by_address("http://home:1", TIDEMILL_API_KEY="k")

    assert same is not None
    assert other is not None
    assert by_key is not None
    assert (same.origin, same.context, same.namespace) == (origin, "home", "mine")
    assert await same.credentials.token() == "a1"
    assert (other.context, other.namespace, await other.credentials.token()) == (None, None, None)
    assert (by_key.context, await by_key.credentials.token()) == (None, "k")


def test_of_two_contexts_of_one_server_the_current_one_counts(file: ContextFile) -> None:
    contexts = file.read().with_context("again", HOME)
    file.write(contexts.using("again"))

    current = choose(Wanted(server=HOME.server), {}, file)
    file.write(contexts.using("work"))
    first = choose(Wanted(server=HOME.server), {}, file)

    assert [one and one.context for one in (current, first)] == ["again", "home"]


def test_a_namespace_comes_from_the_flag_the_environment_or_the_context(file: ContextFile) -> None:
    flag = choose(Wanted(namespace="f"), {"TIDEMILL_NAMESPACE": "e"}, file)
    environ = choose(Wanted(), {"TIDEMILL_NAMESPACE": "e"}, file)
    context = choose(Wanted(), {}, file)
    server = choose(Wanted(server=HOME.server, namespace="f"), {}, file)

    found = [one and one.namespace for one in (flag, environ, context, server)]
    assert found == ["f", "e", "mine", "f"]


def test_without_a_word_programs_speak_to_the_usual_address(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}

    assert choose(Wanted(), environ) is None
    assert choose_or_default(environ).server == DEFAULT_SERVER
    assert Client.from_environment(environ).server == DEFAULT_SERVER


@pytest.mark.parametrize("text", ["", "host:80", "ftp://x", "http://", "unix:"])
def test_what_is_no_server_is_refused_with_the_fix(text: str) -> None:
    with pytest.raises(InvalidInput, match="write http://HOST:PORT"):
        check_server(text)


class _Renewing(ContextCredentials):
    """Asks a scripted server for the next tokens."""

    script: Script

    async def _refresh(self, context: Context) -> Context:
        client = scripted(self.script)
        tokens = await client.refresh(context.refresh_token or "")
        await asyncio.sleep(0)  # somebody else may come meanwhile
        return Context(
            server=context.server,
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
        )


async def test_two_commands_at_once_spend_a_refresh_token_once(file: ContextFile) -> None:
    script = Script(ok(TOKENS), problem(401, "UNAUTHENTICATED", "used twice"))
    both = [_Renewing(file, "home", HOME) for _ in range(2)]
    for one in both:
        one.script = script

    renewed = await asyncio.gather(*(one.renewed("a1") for one in both))

    assert renewed == ["a2", "a2"]
    assert len(script.asked) == 1
    assert file.read().by_name["home"].refresh_token == "r2"


async def test_a_request_that_is_refused_is_sent_again_with_the_next_token(
    file: ContextFile,
) -> None:
    credentials = _Renewing(file, "home", HOME)
    credentials.script = Script(ok(TOKENS))

    def answer(request: httpx.Request) -> httpx.Response:
        good = request.headers["Authorization"] == "Bearer a2"
        return ok({"id": "r1", "created": True}) if good else problem(401, "UNAUTHENTICATED")

    client = scripted(answer, StillSystem(), credentials)

    assert (await client.start("orders")).id == "r1"


async def test_a_login_that_is_over_says_what_to_do(file: ContextFile) -> None:
    lonely = ContextCredentials(file, "work", WORK)

    assert await lonely.renewed("tmk_1") is None
    with pytest.raises(Unauthenticated):
        await scripted(Script(problem(401, "UNAUTHENTICATED")), None, lonely).overview()
