"""What the checks with programs of ConnectOnion share: a line that can be cut, users, hosts."""

import asyncio
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path

import aiohttp
from common import LONGEST_LINE, Checks, Failed, Program, expect

START = 60


RUNNING = set()


def run(main):
    """Runs the checks in a folder for them. A deadline from outside ends all that they have started."""

    async def with_checks(folder):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, give_up, folder)
        checks = Checks()
        await main(checks, Path(folder))
        return checks

    with tempfile.TemporaryDirectory() as folder:
        checks = asyncio.run(with_checks(folder))
    checks.finish()


def give_up(folder):
    for process in RUNNING:
        process.kill()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


class Spoken(Program):
    """A program that reads lines, and says lines of JSON among others."""

    def __init__(self, process):
        self.said = []
        self.reading = 2
        super().__init__(process)

    async def read(self, stream):
        async for line in stream:
            line = line.decode().rstrip()
            async with self.changed:
                self.lines.append(line)
                # Others print lines of their own that look like it.
                with contextlib.suppress(ValueError):
                    if line.startswith("{"):
                        self.said.append(json.loads(line))
                self.changed.notify_all()
        async with self.changed:
            self.reading -= 1
            self.changed.notify_all()

    async def write(self, line):
        self.process.stdin.write((line + "\n").encode())
        await self.process.stdin.drain()

    async def hear(self, fits, what):
        """Takes the next thing that fits; what it has said before that is gone."""

        def found():
            return next((at for at, it in enumerate(self.said) if fits(it)), None)

        try:
            async with self.changed:
                await self.changed.wait_for(lambda: found() is not None or self.is_over())
        except asyncio.CancelledError:
            raise Failed(f"no {what}: {self.told()}") from None
        at = found()
        expect(at is not None, f"ended without {what}: {self.told()}")
        self.skipped, heard = self.said[:at], self.said[at]
        del self.said[: at + 1]
        return heard

    def is_over(self):
        return self.reading == 0

    async def address_at(self, port):
        """Waits until the host that this is serves at a port. Returns its address."""
        async with aiohttp.ClientSession() as session:
            while True:
                with contextlib.suppress(aiohttp.ClientError):
                    async with session.get(f"http://127.0.0.1:{port}/info") as info:
                        return (await info.json())["address"]
                expect(not self.is_over(), f"the host has ended: {self.told()}")
                await asyncio.sleep(0.1)

    def told(self):
        return "\n".join(line[:300] for line in self.lines[-12:])

    async def stopped(self):
        self.process.kill()
        await self.end()


@contextlib.asynccontextmanager
async def spoken(kind, *args, cwd=None, **env):
    """Runs a program, and ends it in any case."""
    ours = ("AGENT_", "ANTHROPIC_", "OLLAMA_", "VLLM_", "OPENAI_", "RUST_LOG", "CO_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(ours)} | env
    pipe = asyncio.subprocess.PIPE
    how = {"cwd": cwd, "stdin": pipe, "stdout": pipe, "stderr": pipe, "env": env, "limit": LONGEST_LINE}
    process = await asyncio.create_subprocess_exec(*map(str, args), **how)
    RUNNING.add(process)
    running = kind(process)
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await running.end()
        RUNNING.discard(process)


class Line:
    """A line between a client and a host. It can be cut, lead elsewhere, or change what is sent."""

    def __init__(self, port):
        self.to = port
        self.open = set()
        self.opened = 0
        self.forges = False

    @classmethod
    @contextlib.asynccontextmanager
    async def lead(cls, port):
        line = cls(port)
        server = await asyncio.start_server(line.carry, "127.0.0.1", 0)
        line.port = server.sockets[0].getsockname()[1]
        line.url = f"http://127.0.0.1:{line.port}"
        try:
            yield line
        finally:
            server.close()
            line.cut()

    async def carry(self, reader, writer):
        await self.request(await reader.readuntil(b"\r\n\r\n"), reader, writer)

    async def request(self, head, reader, writer):
        is_socket = b"upgrade: websocket" in head.lower()
        try:
            their_reader, their_writer = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.transport.abort()
            return
        both = (writer.transport, their_writer.transport)
        if is_socket:
            self.opened += 1
            self.open.add(both)
        their_writer.write(head)
        forge = is_socket and self.forges
        ways = [
            asyncio.create_task(self.copy(reader, their_writer, forge)),
            asyncio.create_task(self.copy(their_reader, writer, False)),
        ]
        # When one way breaks, so does the other: who only listens is told as well.
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await asyncio.gather(*ways)
        for way in ways:
            way.cancel()
        self.open.discard(both)
        for transport in both:
            transport.abort()

    @staticmethod
    async def copy(reader, writer, forge):
        if forge:
            writer.write(await forged(reader))
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    def cut(self):
        """Cuts it as a lost network does: without a goodbye."""
        for transports in list(self.open):
            for transport in transports:
                transport.abort()


async def forged(reader):
    """The first message of a client, with another signature."""
    head = bytearray(await reader.readexactly(2))
    length = head[1] & 0x7F
    if length > 125:
        more = await reader.readexactly(2 if length == 126 else 8)
        head += more
        length = int.from_bytes(more, "big")
    mask = await reader.readexactly(4)
    masked = await reader.readexactly(length)
    text = bytes(byte ^ mask[at % 4] for at, byte in enumerate(masked))
    text, count = re.subn(rb'("signature":\s*"(?:0x)?)(.)', other_digit, text)
    expect(count == 1, f"no signature in {text[:300]}")
    return bytes(head) + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(text))


def other_digit(found):
    return found[1] + (b"0" if found[2] != b"0" else b"1")


class Host(Spoken):
    """Our host."""

    async def started(self):
        line = await self.line_with("listening on http://")
        self.port = int(re.search(r"http://[^:]+:(\d+)/", line)[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.address = re.search(r"address: (0x[0-9a-f]{64})", line)[1]
        return self


@contextlib.asynccontextmanager
async def our_host(program, home, *args):
    args = ("agent", "host", "--listen", "127.0.0.1:0", "--home", home, *args)
    async with spoken(Host, program, *args) as host:
        yield await asyncio.wait_for(host.started(), START)


class Chat(Spoken):
    """Our client."""

    def event(self, name, **members):
        def fits(event):
            return event.get("event") == name and members.items() <= event.items()

        return self.hear(fits, f"event {name} {members or ''}")

    def step(self, kind, **members):
        """A step of the agent, or a question of it."""

        def fits(event):
            frame = event.get("frame", {})
            return frame.get("type") == kind and members.items() <= frame.items()

        return self.hear(fits, f"{kind} {members or ''}")

    async def output(self):
        return (await self.event("output"))["result"]

    async def ask(self, prompt):
        await self.write(prompt)
        return await self.output()


class Caller(Spoken):
    """A program with users of another client, each with a name and a key."""

    def __init__(self, process):
        super().__init__(process)
        self.ids = itertools.count(1)

    async def tell(self, do, user, **more):
        order_id = next(self.ids)
        await self.write(json.dumps({"id": order_id, "user": user, "do": do} | more))

        # Others wait for their answers, too.
        def mine():
            return next((it for it in self.said if it.get("id") == order_id), None)

        async with self.changed:
            await self.changed.wait_for(lambda: mine() or self.is_over())
        answer = mine()
        expect(answer is not None, f"ended without an answer: {self.told()}")
        self.said.remove(answer)
        return answer

    async def input(self, user, prompt, **more):
        answer = await self.tell("input", user, prompt=prompt, **more)
        expect("error" not in answer, f"{prompt}: {answer.get('error')}")
        return answer

    async def text(self, user, prompt, **more):
        answer = await self.input(user, prompt, **more)
        expect(answer["done"] is True, f"{prompt}: not done, {answer}")
        return answer["text"]

    async def error(self, do, user, **more):
        answer = await self.tell(do, user, **more)
        expect("error" in answer, f"no error: {answer}")
        return answer["error"]
