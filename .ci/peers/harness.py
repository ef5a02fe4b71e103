"""What every check shares: running checks, starting programs, waiting for what they say, and cutting lines.

The environment says what there is: SWITCHBOARD is the program under test, NODE_FOLDER has the packages of Node,
ONIONS the virtual environments with ConnectOnion (the newest last), BROWSER and AXE what the pages need. `run` sets it.

Nothing sleeps and nothing is timed: a check waits for a state, and one generous deadline ends what hangs."""

import asyncio
import contextlib
import inspect
import json
import os
import signal
import sys
from pathlib import Path

# Seconds. Everything that works takes far less, also on a machine that is busy.
DEADLINE = 120
LONGEST_LINE = 16 * 1024 * 1024
SWITCHBOARD = os.environ.get("SWITCHBOARD", "")
# Settings that a person may have, which must not reach the programs.
SETTINGS = ("ACOLYTE_", "AGENT_", "ANTHROPIC_", "CO_", "EXOCLAW_", "NATS_", "OLLAMA_", "OPENAI_", "RUST_LOG", "SMARTHOLE_", "SNEK_", "VLLM_")

class Failed(Exception):
    pass

def expect(condition, what):
    if not condition:
        raise Failed(what)

def same(found, expected, what):
    expect(found == expected, f"{what}: {short(found)} instead of {short(expected)}")

def json_lines(text):
    """The values of JSON Lines. Their texts may have characters at which `str.splitlines` breaks."""
    return [json.loads(line) for line in text.split("\n") if line]

def call(tool, **arguments):
    """What makes the scripted model call a tool."""
    return f"!call {tool} {json.dumps(arguments, ensure_ascii=False)}"

def short(value):
    text = repr(value)
    return text if len(text) < 400 else f"{text[:400]}…"

async def until(holds, what):
    """Waits until a function is true and returns what it gave; it may be a coroutine function."""
    try:
        while True:
            found = holds()
            if inspect.isawaitable(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        raise Failed(f"never: {what}") from None

class Checks:
    """Runs checks, prints a line for each, remembers failures."""

    def __init__(self):
        self.count = self.failed = 0
        self.tasks = []
        # Seconds for each check.
        self.deadline = DEADLINE

    async def run(self, check, *args, name=None):
        """Runs a coroutine function. Its name, as words, is the name of the check, with short texts and the names of
        its arguments behind."""
        words = (getattr(arg, "name", arg) for arg in args)
        words = [word for word in words if isinstance(word, str) and len(word) < 30]
        name = " ".join([name or check.__name__.replace("_", " "), *words])
        self.count += 1
        try:
            await asyncio.wait_for(check(*args), self.deadline)
        except Exception as error:
            self.failed += 1
            print(f"FAIL  {name}: {type(error).__name__} {error}", flush=True)
        else:
            print(f"ok    {name}", flush=True)

    async def each(self, several, *args):
        """Runs one check after the other."""
        for check in several:
            await self.run(check, *args)

    def beside(self, check, *args, name=None):
        """Begins a check that mostly waits, beside the others."""
        self.tasks.append(asyncio.create_task(self.run(check, *args, name=name)))

    async def finished(self):
        """Waits for those that were begun beside."""
        await asyncio.gather(*self.tasks)

def main(body):
    """Runs `body(checks)`, then waits for what was begun beside it, and exits with whether all passed."""

    async def whole():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
        checks = Checks()
        await body(checks)
        await checks.finished()
        print(f"{checks.count} checks, {checks.failed} failed", flush=True)
        return 1 if checks.failed or not checks.count else 0

    sys.exit(asyncio.run(whole()))

class Inbox:
    """What has come, in order, and those who wait for some of it."""

    def __init__(self):
        self.items = []
        self.is_over = False
        self.changed = asyncio.Condition()

    async def put(self, item):
        async with self.changed:
            self.items.append(item)
            self.changed.notify_all()

    async def end(self):
        """Nothing more comes."""
        async with self.changed:
            self.is_over = True
            self.changed.notify_all()

    async def next(self, fits=lambda item: True, what="something"):
        """Takes the first item that fits, and leaves the others."""

        def found():
            return next((at for at, item in enumerate(self.items) if fits(item)), None)

        try:
            async with self.changed:
                await self.changed.wait_for(lambda: found() is not None or self.is_over)
                at = found()
                expect(at is not None, f"ended without {what}; there is {short(self.items[-8:])}")
                return self.items.pop(at)
        except asyncio.CancelledError:
            raise Failed(f"never came: {what}; there is {short(self.items[-8:])}") from None

class Program:
    """A program that was started: what it says, line by line, what it is told, and how it ends."""

    def __init__(self, argv, cwd=None, env=None):
        self.argv = [str(arg) for arg in argv]
        self.cwd = cwd
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(SETTINGS)} | (env or {})

    async def start(self):
        """Starts it; once more after its end."""
        pipe = asyncio.subprocess.PIPE
        how = {"cwd": self.cwd, "env": self.env, "stdin": pipe, "stdout": pipe, "stderr": pipe, "limit": LONGEST_LINE}
        self.process = await asyncio.create_subprocess_exec(*self.argv, **how)
        self.said = {1: [], 2: []}
        self.lines = []
        # Lines that are JSON objects. Each is taken once.
        self.events = Inbox()
        self.changed = asyncio.Condition()
        self.is_over = False
        streams = [self.read(1, self.process.stdout), self.read(2, self.process.stderr)]
        self.reader = asyncio.create_task(self.read_all(streams))
        return self

    async def read_all(self, streams):
        await asyncio.gather(*streams)
        async with self.changed:
            self.is_over = True
            self.changed.notify_all()
        await self.events.end()

    async def read(self, number, stream):
        async for data in stream:
            line = data.decode(errors="replace").rstrip("\r\n")
            async with self.changed:
                self.said[number].append(line)
                self.lines.append(line)
                self.changed.notify_all()
            if line.startswith("{"):
                with contextlib.suppress(ValueError):
                    await self.events.put(json.loads(line))

    def find(self, text):
        return next((line for line in self.lines if text in line), None)

    async def line(self, text):
        """Waits for a line of output that holds the text."""
        try:
            async with self.changed:
                await self.changed.wait_for(lambda: self.find(text) or self.is_over)
        except asyncio.CancelledError:
            raise Failed(f"no line with {text!r}: {self.tail()}") from None
        expect(self.find(text), f"ended without a line with {text!r}: {self.tail()}")
        return self.find(text)

    async def event(self, name, **members):
        """Takes the next line of JSON with this member `event`, and these."""
        wanted = {"event": name} | members
        return await self.events.next(lambda event: wanted.items() <= event.items(), f"event {wanted}")

    def tail(self):
        return "\n".join(line[:300] for line in self.lines[-12:])

    async def write(self, line):
        self.process.stdin.write((line + "\n").encode())
        await self.process.stdin.drain()

    def close_input(self):
        self.process.stdin.close()

    @property
    def is_running(self):
        return self.process.returncode is None

    async def end(self):
        """Waits for the end and returns the exit code."""
        code = await self.process.wait()
        await self.reader
        return code

    async def stop(self, number=signal.SIGINT):
        """Ends it as Ctrl-C does, or by another signal, and returns the exit code."""
        self.signal(number)
        return await self.end()

    async def kill(self):
        return await self.stop(signal.SIGKILL)

    def signal(self, number):
        # `send_signal` of asyncio may take the exit code of a program that has just ended from who waits for it.
        with contextlib.suppress(ProcessLookupError):
            if self.is_running:
                os.kill(self.process.pid, number)

@contextlib.asynccontextmanager
async def program(*argv, cwd=None, kind=Program, **env):
    """Runs a program for as long as the block lasts. `kind` is a class of programs."""
    running = await kind(argv, cwd, env).start()
    try:
        yield running
    finally:
        await running.kill()

def switchboard(*args, cwd=None, **env):
    """Runs the program under test for as long as the block lasts."""
    return program(SWITCHBOARD, *args, cwd=cwd, **env)

async def output(*args, cwd=None, feed=None, **env):
    """Runs the program under test to its end. Returns its exit code, standard output and standard error."""
    running = await Program([SWITCHBOARD, *args], cwd, env).start()
    try:
        if feed is not None:
            running.process.stdin.write(feed if isinstance(feed, bytes) else feed.encode())
        running.close_input()
        code = await running.end()
    finally:
        await running.kill()
    return code, "\n".join(running.said[1]), "\n".join(running.said[2])

@contextlib.asynccontextmanager
async def served(*args, cwd=None, **env):
    """Runs a server of the program on a free port; it has `port` and `address` when it listens."""
    async with switchboard(*args, "--listen", "127.0.0.1:0", cwd=cwd, **env) as running:
        line = await running.line("listening")
        running.address = line[line.index("127.0.0.1:") :].split("/")[0].split()[0].strip('",')
        running.port = int(running.address.split(":")[1])
        yield running

class Proxy:
    """A TCP line to a port, which can be cut, kept silent, led elsewhere and mended."""

    def __init__(self, port):
        self.target = port
        self.is_open = True
        self.flows = asyncio.Event()
        self.flows.set()
        self.accepted = 0
        self.transports = set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()
        self.cut()

    async def serve(self, reader, writer, head=b""):
        """Leads a connection on. `head` is what has been read of it."""
        self.accepted += 1
        try:
            expect(self.is_open, "the line is cut")
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except (OSError, Failed):
            writer.transport.abort()
            return
        far_writer.write(head)
        both = {writer.transport, far_writer.transport}
        self.transports |= both
        if not self.is_open:
            # It was cut meanwhile.
            self.drop()
        ways = [asyncio.create_task(self.copy(*ends)) for ends in ((reader, far_writer), (far_reader, writer))]
        # When one way breaks, so does the other: who only listens is told as well.
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await asyncio.gather(*ways)
        for way in ways:
            way.cancel()
        self.transports -= both
        for transport in both:
            transport.abort()

    async def copy(self, reader, writer):
        while data := await reader.read(65536):
            await self.flows.wait()
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    def cut(self):
        """Cuts it as a lost network does, without a goodbye, until it is mended."""
        self.is_open = False
        self.drop()

    def drop(self):
        """Drops the connections that there are; new ones may come."""
        for transport in list(self.transports):
            transport.abort()

    def mend(self):
        self.is_open = True

class Front(Proxy):
    """A line to a server of HTTP, which answers some requests in its place: by `answer`, with a type and bytes."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader, writer, head=b""):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (OSError, asyncio.IncompleteReadError):
            writer.close()
            return
        answer = await self.answer(head.split()[1].decode().split("?")[0], b"upgrade: websocket" in head.lower())
        if answer is None:
            await super().serve(reader, writer, head)
            return
        kind, body = answer
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n".encode())
        writer.write(b"Connection: close\r\n\r\n" + body)
        writer.close()

def node_folder():
    return Path(os.environ["NODE_FOLDER"])

def onions():
    """The virtual environments with ConnectOnion, the newest last."""
    return os.environ["ONIONS"].split(":")
