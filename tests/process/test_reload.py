"""`tidemill up --reload`: changed files are taken up, and nothing that runs is lost for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.run import RUN_ENDED
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.engine import runs
from tidemill.runtime.addresses import parse_store
from tidemill.runtime.reloading import look_at, watched_folders
from tidemill.runtime.roles import up_role
from tidemill.runtime.settings import Settings
from tidemill.runtime.system import SystemEntropy

T = TypeVar("T")

CODE = """
import pathlib, time

def answer():
    return {answer!r}

def slow(gate):
    pathlib.Path(gate + ".begun").touch()
    while not pathlib.Path(gate).exists():
        time.sleep(0.02)
    return {answer!r}
"""


async def until(look: Callable[[], Awaitable[T | None]]) -> T:
    """What `look` sees as soon as it sees something: processes offer no signal to await."""
    async with asyncio.timeout(20):
        while True:
            if seen := await look():
                return seen
            await asyncio.sleep(0.02)


class Flow:
    """A file with functions, and runs that call them."""

    def __init__(self, folder: Path) -> None:
        self.told: list[str] = []
        self.path = folder / "flow.py"
        self.gate = folder / "gate"
        self.write("old")

    def write(self, answer: str) -> None:
        self.path.write_text(CODE.format(answer=answer))

    async def start(self, parts: Any, function: str, **inputs: Any) -> RunId:
        spec = TaskSpec(
            id="t", executor="python", params={"function": f"flow:{function}"}, inputs=inputs
        )
        request = runs.StartRequest(workflow=Workflow(name="w", tasks=(spec,)), input={})
        [started] = await runs.start(parts.store, parts.bus, SystemEntropy(), [request])
        return started.run_id

    async def result(self, parts: Any, run_id: RunId) -> Any:
        async def ended() -> bool:
            return (await parts.store.reader.run("default", run_id)).state in RUN_ENDED

        await until(ended)
        key = TaskKey(run_id, 0)
        return msgspec.json.decode((await parts.store.payloads.results([key]))[key])

    async def heard(self, words: str) -> None:
        async def told() -> bool:
            return any(words in text for text in self.told)

        await until(told)

    async def begun(self) -> None:
        async def seen() -> bool:
            return self.gate.with_name("gate.begun").exists()

        await until(seen)

    async def renewed(self, parts: Any) -> str:
        """What a run answers as soon as it is not the old answer any more."""

        async def look() -> str | None:
            answer: str = await self.result(parts, await self.start(parts, "answer"))
            return None if answer == "old" else answer

        return await until(look)


async def test_changed_code_is_taken_up_and_what_runs_finishes(tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    settings = Settings(
        store=parse_store(str(tmp_path / "store.db")),
        imports=(str(flow.path),),
        listen="127.0.0.1:0",
        auth="single-user",
        reload=True,
    )
    async with up_role(settings, flow.told.append) as role:
        before = await flow.result(role.parts, await flow.start(role.parts, "answer"))
        slow = await flow.start(role.parts, "slow", gate=str(flow.gate))
        await flow.begun()

        flow.path.write_text("def answer(:\n")
        await flow.heard("flow.py has changed, but the workers go on with the old code")
        still = await flow.result(role.parts, await flow.start(role.parts, "answer"))
        flow.write("new")
        await flow.heard("flow.py has changed: workers are replaced")
        after = await flow.renewed(role.parts)
        flow.gate.touch()

        assert (before, still, after) == ("old", "old", "new")
        assert await flow.result(role.parts, slow) == "old"
        assert not any("takes its place" in text for text in flow.told)


def test_the_folders_of_files_and_packages_are_watched(tmp_path: Path) -> None:
    package = tmp_path / "shop" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "shop" / ".venv").mkdir()
    for name in ("shop/flow.py", "shop/inner/steps.py", "shop/notes.txt", "shop/.venv/other.py"):
        (tmp_path / name).touch()

    folders = watched_folders([str(tmp_path / "shop" / "flow.py"), "no_such_module", "msgspec"])
    seen = {Path(path).name for path in look_at(folders[:1])}

    assert folders[0] == tmp_path / "shop"
    assert folders[1].name == "msgspec"
    assert seen == {"flow.py", "steps.py"}
