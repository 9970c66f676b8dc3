"""A whole worker in one file: gRPC, the generated messages, and nothing else of Tidemill.

docs/protocol.md says what it must do: `tidemill conformance -- python plain_worker.py` checks it.
"""

import asyncio
import json
import os
import random
import signal
import sys
from contextlib import suppress
from typing import Any

import grpc.aio

try:
    import worker_pb2 as wire  # copied out, or generated from proto/worker.proto
except ImportError:
    from tidemill.protocol.generated import worker_pb2 as wire

ATTACH = "/tidemill.worker.v1.WorkerGateway/Attach"
PING_SECONDS, HOLDINGS_SECONDS, SILENCE_SECONDS = 1.0, 2.0, 3.0
OPTIONS = [("grpc.max_receive_message_length", 8 * 1024 * 1024)]
EXECUTORS = ("echo", "fail", "final", "sleep")
Key = tuple[str, int, int]  # run, position, epoch: what a grant is known by


class TaskFailed(Exception):
    def __init__(self, kind: str, message: str, final: bool = False) -> None:
        super().__init__(message)
        self.kind, self.final = kind, final


async def execute(executor: str, params: Any, inputs: Any) -> Any:
    match executor:
        case "echo":
            return {"params": params, "inputs": inputs}
        case "sleep":
            return await asyncio.sleep(params["seconds"])
        case "fail" | "final":
            raise TaskFailed(params["type"], params["message"], final=executor == "final")
    raise TaskFailed("UnknownExecutor", f"no executor {executor!r} here", final=True)


def resolve(source: Any, run_input: Any, results: Any) -> Any:
    """One input. Sources may hold any JMESPath; names with dots between are enough here."""
    if not isinstance(source, dict) or "const" in source:
        return source["const"] if isinstance(source, dict) else source
    value = results.get(source["result"]) if "result" in source else run_input
    for name in filter(None, source.get("path", source.get("input", "")).split(".")):
        value = value.get(name) if isinstance(value, dict) else None
    return value


class Worker:
    def __init__(self, address: str, token: str, slots: int) -> None:
        self.address, self.slots = address, slots
        self.bearer = [("authorization", f"Bearer {token}")]
        self.proof: dict[str, str] = {}  # session and secret, once we have them
        self.running: dict[Key, asyncio.Task[None]] = {}
        self.finished: dict[Key, Any] = {}  # outcomes, until they are acknowledged
        self.unsent: set[Key] = set()  # outcomes that this stream has not carried yet
        self.released, self.gone = [], False  # what is handed back; Goodbye has been said
        self.news = self.welcome = asyncio.Event()

    async def work(self) -> None:
        while not self.gone or self.finished:  # until Goodbye is said and nothing is owed
            try:
                with suppress(TimeoutError):  # silence: try again
                    await self.converse()
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNAUTHENTICATED:
                    sys.exit(f"the scheduler at {self.address} refused the token")
            await asyncio.sleep(0.1 + random.random() / 5)

    async def converse(self) -> None:
        async with grpc.aio.insecure_channel(self.address, options=OPTIONS) as channel:
            call = channel.stream_stream(ATTACH)(metadata=self.bearer)
            presented = list(self.running)
            talking = asyncio.create_task(self.talk(call))
            try:
                while data := await asyncio.wait_for(call.read(), SILENCE_SECONDS):
                    self.handle(wire.SchedulerMessage.FromString(data), presented)
            finally:
                talking.cancel()
                await asyncio.gather(talking, return_exceptions=True)

    async def talk(self, call: Any) -> None:
        """Hello; then outcomes at once, Holdings every two seconds, else a ping every second."""
        clock, holdings_at = asyncio.get_running_loop().time, 0.0
        self.unsent, self.welcome = set(), asyncio.Event()
        await call.write(wire.WorkerMessage(hello=self.hello()).SerializeToString())
        await self.welcome.wait()
        while not self.gone:
            self.news.clear()
            message = wire.WorkerMessage(ping=wire.Ping())
            if self.unsent:
                told = [self.finished[key] for key in sorted(self.unsent)[:100]]
                self.unsent -= {key_of(outcome.token) for outcome in told}
                message.outcomes.outcomes.extend(told)
            elif not self.slots:
                message.goodbye.released.extend(map(token_of, self.released))
                self.gone = True
            elif clock() >= holdings_at:
                holdings_at = clock() + HOLDINGS_SECONDS
                held = map(token_of, (*self.running, *self.finished))
                message.holdings.MergeFrom(wire.Holdings(held=held, slots=self.slots))
            await call.write(message.SerializeToString())
            with suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), 0 if self.unsent else PING_SECONDS)

    def hello(self) -> Any:
        """Who we are; after a lost stream also what we run and what we still owe."""
        name = {"protocol": 1, "worker": f"plain-{os.getpid()}", "namespace": "default"}
        offer = {"slots": self.slots, "queues": ["default"], "executors": EXECUTORS}
        owed = {"held": map(token_of, self.running), "finished": self.finished.values()}
        return wire.Hello(**name, **offer, **self.proof, **owed)

    def handle(self, message: Any, presented: list[Key]) -> None:
        match message.WhichOneof("message"):
            case "welcome":
                welcome = message.welcome
                self.proof = {"session": welcome.session, "secret": welcome.secret}
                self.forget(welcome.acknowledged)
                for key in set(presented) - {key_of(token) for token in welcome.keep}:
                    self.stop(key)  # somebody else has it now: nothing is reported
                self.welcome.set()
            case "refused":
                sys.exit(f"the scheduler refused this worker: {message.refused.reason}")
            case "assignments":
                for assignment in message.assignments.assignments:
                    self.begin(key_of(assignment.token), assignment)
            case "acks":
                self.forget([*message.acks.tokens, *message.acks.stale])
            case "cancels":
                for key in map(key_of, message.cancels.tokens):
                    if self.stop(key):
                        self.report(key, cancel_confirmed=wire.CancelConfirmed())

    def begin(self, key: Key, assignment: Any) -> None:
        if key in self.running or key in self.finished:
            return
        if len(self.running) >= self.slots:
            self.report(key, released=wire.Released())
        else:
            self.running[key] = asyncio.create_task(self.run(key, assignment))

    async def run(self, key: Key, given: Any) -> None:
        try:
            results = {name: json.loads(data) for name, data in given.results.items()}
            sources, run_input = json.loads(given.inputs), json.loads(given.run_input)
            inputs = {name: resolve(one, run_input, results) for name, one in sources.items()}
            value = await execute(given.executor, json.loads(given.params), inputs)
            data = None if value is None else json.dumps(value, allow_nan=False).encode()
            report = {"succeeded": wire.Succeeded(result=data)}
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the task's failure
            kind = getattr(error, "kind", type(error).__name__)
            told = wire.TaskError(type=kind, message=str(error))
            report = {"failed": wire.Failed(error=told, final=getattr(error, "final", False))}
        del self.running[key]
        self.report(key, **report)

    def report(self, key: Key, **report: Any) -> None:
        self.finished[key] = wire.Outcome(token=token_of(key), **report)
        self.unsent.add(key)
        self.news.set()

    def stop(self, key: Key) -> bool:
        task = self.running.pop(key, None)
        return task is not None and task.cancel()

    def forget(self, tokens: Any) -> None:
        for key in map(key_of, tokens):
            self.finished.pop(key, None)

    def leave(self) -> None:
        self.slots = 0
        self.released = [key for key in list(self.running) if self.stop(key)]
        self.news.set()


def key_of(token: Any) -> Key:
    return token.run_id, token.position, token.epoch


def token_of(key: Key) -> Any:
    return wire.Token(run_id=key[0], position=key[1], epoch=key[2])


async def main() -> None:
    address, token = os.environ["TIDEMILL_ADDRESS"], os.environ["TIDEMILL_TOKEN"]
    worker = Worker(address, token, int(os.environ.get("TIDEMILL_SLOTS", "4")))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.leave)
    await worker.work()


if __name__ == "__main__":
    asyncio.run(main())
