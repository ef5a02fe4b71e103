"""What both Python peers share: calls with ids over a WebSocket, and the lead by a parent's lines.

A client has a table of futures by id, a task that reads the answers, and a timeout for each call.
JSON is the standard library's.
"""

import asyncio
import json
import sys
import time

TIMEOUT_SECONDS = 60


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
    if request["method"] == "ping":
        return json.dumps({"id": request["id"], "result": "pong"})
    return json.dumps({"id": request["id"], "error": "unknown method"})


async def phase(done):
    print(done, flush=True)
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    if not line:
        sys.exit(0)


async def make(client, in_flight, calls):
    """Makes the calls, so many at a time; returns the median time until an answer."""
    times = []
    left = calls

    async def caller():
        nonlocal left
        while left > 0:
            left -= 1
            start = time.perf_counter_ns() if in_flight == 1 else 0
            assert await client.call("ping", {}) == "pong"
            if in_flight == 1:
                times.append(time.perf_counter_ns() - start)

    await asyncio.gather(*(caller() for _ in range(in_flight)))
    times.sort()
    return times[len(times) // 2] if times else 0


async def measure(client, in_flight, calls):
    await make(client, in_flight, calls // 4)
    await phase("ready")
    median = await make(client, in_flight, calls)
    await phase(str(median))


def main(serve, load):
    match sys.argv[1:]:
        case ["serve", _]:
            asyncio.run(serve())
        case ["load", _, address, in_flight, calls]:
            asyncio.run(load(address, int(in_flight), int(calls)))
        case other:
            sys.exit(f"unknown: {other}")
