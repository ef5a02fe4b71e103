"""What all programs of checks need: running checks, running the program under test."""

import asyncio
import contextlib
import os
import sys

DEADLINE = 30
LONGEST_LINE = 16 * 1024 * 1024


class Failed(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failed(what)


def title(check):
    """What a function is called in the list of checks."""
    return check.__name__.replace("_", " ")


class Checks:
    """Runs checks one after the other, prints a line for each, remembers failures."""

    def __init__(self):
        self.failed = 0
        self.count = 0
        self.tasks = []

    async def run(self, name, check, deadline=DEADLINE, again=None):
        """`again` makes the check once more, if it fails: a machine that was busy is no fault of ours. The first
        failure is there to be read."""
        try:
            await asyncio.wait_for(check, deadline)
        except Exception as error:
            said = f"{name}: {type(error).__name__} {error}"
            if again is not None:
                print(f"again {said}", flush=True)
                return await self.run(name, again(), deadline)
            self.failed += 1
            print(f"FAIL  {said}", flush=True)
        else:
            print(f"ok    {name}", flush=True)
        self.count += 1

    def beside(self, name, check, deadline=DEADLINE):
        """Begins a check that mostly waits. `others` waits for it."""
        task = asyncio.create_task(self.run(name, check, deadline))
        self.tasks.append(task)
        return task

    async def others(self):
        await asyncio.gather(*self.tasks)

    def finish(self):
        print(f"{self.count} checks, {self.failed} failed", flush=True)
        sys.exit(1 if self.failed or not self.count else 0)


class Program:
    """The program under test, with its output as lines."""

    def __init__(self, process):
        self.process = process
        self.lines = []
        self.changed = asyncio.Condition()
        self.readers = [
            asyncio.create_task(self.read(process.stdout)),
            asyncio.create_task(self.read(process.stderr)),
        ]

    async def read(self, stream):
        async for line in stream:
            async with self.changed:
                self.lines.append(line.decode().rstrip())
                self.changed.notify_all()

    def find(self, text):
        return next((line for line in self.lines if text in line), None)

    async def line_with(self, text):
        """Waits for a line of output that holds the text."""
        try:
            async with self.changed:
                await self.changed.wait_for(lambda: self.find(text))
        except asyncio.CancelledError:
            raise Failed(f"no line with {text!r} in {self.lines}") from None
        return self.find(text)

    async def end(self):
        """Waits for the end and returns the exit code."""
        code = await self.process.wait()
        await asyncio.gather(*self.readers)
        return code


@contextlib.asynccontextmanager
async def program(path, *args, feed=False, **env):
    """Runs a program; with `feed`, its standard input can be written."""
    ours = ("ACOLYTE_", "AGENT_", "ANTHROPIC_", "OLLAMA_", "VLLM_", "EXOCLAW_", "NATS_", "OPENAI_", "RUST_LOG", "SMARTHOLE_", "SNEK_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(ours)} | env
    pipe = asyncio.subprocess.PIPE
    how = {"env": env, "stdout": pipe, "stderr": pipe, "limit": LONGEST_LINE}
    if feed:
        how["stdin"] = pipe
    process = await asyncio.create_subprocess_exec(path, *args, **how)
    running = Program(process)
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await running.end()


class Proxy:
    """A TCP line between two programs, which can be cut."""

    def __init__(self, port):
        self.target = port
        self.open = True
        self.writers = set()

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        if not self.open:
            writer.close()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        both = {writer, far_writer}
        self.writers |= both
        await asyncio.gather(self.copy(reader, far_writer), self.copy(far_reader, writer))
        self.writers -= both

    async def copy(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    def cut(self):
        self.open = False
        for writer in self.writers:
            writer.transport.abort()

    def mend(self):
        self.open = True
