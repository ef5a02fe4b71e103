"""What both Python peers share: calls with ids over a WebSocket, and the lead by a parent's lines.

A client has a table of futures by id, a task that reads the answers, and a timeout for each call.
JSON is the standard library's.
"""

import asyncio
import json
import sys
import time

TIMEOUT_SECONDS = 60
STATUS = {"version": "0.1.0", "plugins": 3, "sessions": 12}
SAID = {"text": "The quick brown fox jumps over a lazy dog."}
# Of each kind of work: the method, its parameters, and the right answer.
WORKS = {
    "ping": ("ping", {}, "pong"),
    "status": ("status", {}, STATUS),
    "echo, 42 B": ("echo", SAID, SAID),
}
METHODS = {
    "ping": lambda params: "pong",
    "status": lambda params: STATUS,
    "echo": lambda params: {"text": params["text"]},
}


class Client:
    """`send` is a coroutine function that sends one text."""

    def __init__(self, send):
        self._send = send
        self._pending = {}
        self._next = 0
        self._loop = asyncio.get_running_loop()

    async def call(self, method, params):
        self._next += 1
        call_id = f"{self._next:016x}"
        future = self._loop.create_future()
        self._pending[call_id] = future
        try:
            await self._send(json.dumps({"id": call_id, "method": method, "params": params}))
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await future
        finally:
            self._pending.pop(call_id, None)

    def answered(self, text):
        answer = json.loads(text)
        future = self._pending.get(answer["id"])
        if future is not None and not future.done():
            future.set_result(answer["result"])


def answer(text):
    """What a server says to a request."""
    request = json.loads(text)
    method = METHODS.get(request["method"])
    if method is None:
        return json.dumps({"id": request["id"], "error": "unknown method"})
    return json.dumps({"id": request["id"], "result": method(request["params"])})


async def phase(done):
    print(done, flush=True)
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    if not line:
        sys.exit(0)


async def make(client, work, in_flight, calls):
    """Makes the calls, so many at a time; returns the median time until an answer."""
    method, params, right = WORKS[work]
    times = []
    left = calls

    async def caller():
        nonlocal left
        while left > 0:
            left -= 1
            start = time.perf_counter_ns() if in_flight == 1 else 0
            assert await client.call(method, params) == right
            if in_flight == 1:
                times.append(time.perf_counter_ns() - start)

    await asyncio.gather(*(caller() for _ in range(in_flight)))
    times.sort()
    return times[len(times) // 2] if times else 0


async def measure(client, work, in_flight, calls):
    await make(client, work, in_flight, calls // 4)
    await phase("ready")
    median = await make(client, work, in_flight, calls)
    await phase(str(median))


def main(serve, load):
    match sys.argv[1:]:
        case ["serve", _]:
            asyncio.run(serve())
        case ["load", kind, address, in_flight, calls]:
            work = kind.partition(": ")[2]
            asyncio.run(load(address, work, int(in_flight), int(calls)))
        case other:
            sys.exit(f"unknown: {other}")
