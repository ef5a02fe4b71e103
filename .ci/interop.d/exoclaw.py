"""What the checks of the gateway share: running it, talking to it, and talking to it badly."""

import asyncio
import base64
import contextlib
import itertools
import json
import secrets
import struct
import sys
import tempfile
from pathlib import Path

from common import Failed, expect, program
from provider import KEY
from websockets.asyncio.client import connect

SWITCHBOARD = sys.argv[1] if len(sys.argv) > 1 else None
TOKEN = "correct-horse"
HELLO = {"ok": True, "version": "0.1.0"}
USAGE = {"input_tokens": 11, "output_tokens": 2}
PROVIDERS = ("anthropic", "openai", "openai-responses", "ollama", "vllm")


def toml(value):
    """A value as TOML has it: strings, numbers, booleans and lists look the same in JSON."""
    return json.dumps(value, ensure_ascii=False)


def config_text(tables):
    """A configuration file. A list of tables becomes one `[[name]]` for each."""
    lines = []
    for name, table in tables.items():
        several = isinstance(table, list)
        for one in table if several else [table]:
            lines.append(f"[[{name}]]" if several else f"[{name}]")
            lines += [f"{key} = {toml(value)}" for key, value in one.items()]
    return "\n".join(lines) + "\n"


def agent(provider="anthropic", **more):
    return {"provider": provider, "model": "stub"} | more


class Gateway:
    """A gateway that runs."""

    def __init__(self, running, url, folder, extensions=False):
        self.program, self.http, self.folder = running, url, folder
        self.extensions = extensions
        self.port = int(url.rsplit(":", 1)[1])
        self.url = f"ws://127.0.0.1:{self.port}/ws"

    @contextlib.asynccontextmanager
    async def talk(self, token=None, **options):
        """A client that has been told hello."""
        async with connect(self.url, max_size=None, proxy=None, **options) as socket:
            if token is not None:
                await socket.send(json.dumps({"token": token}))
            hello = json.loads(await socket.recv())
            if self.extensions:
                hello.pop("extensions")
            expect(hello == HELLO, f"hello is {hello}")
            talk = Talk(socket)
            try:
                yield talk
            finally:
                talk.reader.cancel()

    async def chat(self, content, **params):
        """One chat on a connection of its own."""
        async with self.talk() as talk:
            return await talk.chat(content, **params)

    def show_nothing_secret(self):
        shown = [line for line in self.program.lines if KEY in line or TOKEN in line]
        expect(not shown, f"a secret was shown: {shown}")
        panics = [line for line in self.program.lines if "panicked" in line]
        expect(not panics, f"the gateway panicked: {panics}")


@contextlib.asynccontextmanager
async def gateway(provider=None, *args, folder=None, config=None, **env):
    """The gateway with this configuration and, if there is one, this provider. The folder keeps
    what must survive it."""
    tables = config if config is not None else {"agent": agent()}
    with tempfile.TemporaryDirectory() as fresh:
        folder = folder or fresh
        path = Path(folder) / "config.toml"
        path.write_text(tables if isinstance(tables, str) else config_text(tables))
        env = {"HOME": folder} | (provider.env if provider else {}) | env
        async with program(SWITCHBOARD, "gateway", "--config", str(path), "--port", "0", *args, **env) as running:
            line = await asyncio.wait_for(running.line_with("http://"), 20)
            url = "http://" + line.split("http://")[1].split()[0].rstrip("/.,")
            started = Gateway(running, url, folder)
            yield started
            started.show_nothing_secret()
        if provider:
            provider.check()


class Chat:
    """A chat: the frames that have come, and what they say."""

    def __init__(self, talk, id, frames):
        self.talk, self.id, self.queue, self.frames = talk, id, frames, []

    async def next(self):
        """The next frame; fails when there can be none."""
        frame = await self.queue.get()
        if isinstance(frame, Exception):
            raise Failed(f"{frame} after {self.frames}")
        self.frames.append(frame)
        return frame

    async def event(self, name):
        """Reads on to an event of this name."""
        while (frame := await self.next()).get("event") != name:
            pass
        return frame

    async def end(self):
        while True:
            frame = await self.next()
            if frame.get("event") == "done" or "event" not in frame:
                return self

    def data(self, name):
        return [frame["data"] for frame in self.frames if frame.get("event") == name]

    @property
    def text(self):
        return "".join(self.data("text"))

    @property
    def error(self):
        """The error, however it came."""
        answers = [frame["error"] for frame in self.frames if "error" in frame]
        return next(iter(answers + self.data("error")), None)

    @property
    def tokens(self):
        return sum(sum(usage.values()) for usage in self.data("usage"))


class Talk:
    """A client of the gateway. Frames are sorted by id."""

    def __init__(self, socket):
        self.socket = socket
        self.ids = itertools.count(1)
        self.queues = {}
        self.others = asyncio.Queue()
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        try:
            while True:
                frame = json.loads(await self.socket.recv())
                queue = self.queues.get(frame.get("id"), self.others)
                queue.put_nowait(frame)
        except Exception as error:
            for queue in [*self.queues.values(), self.others]:
                queue.put_nowait(Failed(f"the line has ended: {error!r}"))

    async def send(self, data):
        await self.socket.send(data if isinstance(data, (str, bytes)) else json.dumps(data))

    async def begin(self, method, params=None, id=None):
        id = id or f"r{next(self.ids)}"
        queue = self.queues.setdefault(id, asyncio.Queue())
        request = {"id": id, "method": method}
        await self.send(request if params is None else request | {"params": params})
        return Chat(self, id, queue)

    async def start(self, content, id=None, **params):
        """Starts a chat."""
        where = {"channel": "websocket", "account": "acc", "content": content}
        return await self.begin("chat.send", where | params, id)

    async def chat(self, content, **params):
        """A whole chat."""
        return await (await self.start(content, **params)).end()

    async def call(self, method, params=None):
        """The one answer of a call."""
        return await (await self.begin(method, params)).next()

    async def result(self, method, params=None):
        answer = await self.call(method, params)
        expect("result" in answer and "error" not in answer, f"{method}: {answer}")
        return answer["result"]

    async def other(self):
        """The next frame of an id that nobody waits for."""
        frame = await self.others.get()
        if isinstance(frame, Exception):
            raise frame
        return frame


class Raw:
    """A connection without a library: it can break every rule."""

    @classmethod
    async def open(cls, gateway, path="/ws", **headers):
        raw = cls()
        raw.closing = False
        raw.reader, raw.writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        fields = {
            "host": f"127.0.0.1:{gateway.port}", "connection": "Upgrade", "upgrade": "websocket",
            "sec-websocket-version": "13", "sec-websocket-key": key,
        } | headers
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items() if value)]
        raw.writer.write("\r\n".join([*lines, "", ""]).encode())
        head = await raw.reader.readuntil(b"\r\n\r\n")
        raw.status = int(head.split()[1])
        return raw

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.writer.transport.abort()

    def frame(self, opcode, payload=b"", fin=True, mask=True):
        """Bytes of a frame."""
        payload = payload.encode() if isinstance(payload, str) else payload
        size = len(payload)
        head = bytes([opcode | (0x80 if fin else 0)])
        bit = 0x80 if mask else 0
        if size < 126:
            head += bytes([bit | size])
        elif size < 1 << 16:
            head += bytes([bit | 126]) + struct.pack(">H", size)
        else:
            head += bytes([bit | 127]) + struct.pack(">Q", size)
        # A mask of zeros is a mask, and shows the payload as it is.
        return head + (b"\0\0\0\0" if mask else b"") + payload

    async def send(self, opcode, payload=b"", **how):
        self.closing |= opcode == 8
        self.writer.write(self.frame(opcode, payload, **how))
        # The gateway may have hung up before it has read everything.
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    async def text(self, value):
        await self.send(1, value if isinstance(value, str) else json.dumps(value))

    async def receive(self):
        """The next frame as (opcode, payload). `None` at the end of the stream."""
        try:
            first, second = await self.reader.readexactly(2)
            expect(first & 0x70 == 0 and second & 0x80 == 0, f"a strange frame: {first:x} {second:x}")
            expect(first & 0x80, "the gateway sends fragments")
            size = second
            if size == 126:
                (size,) = struct.unpack(">H", await self.reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", await self.reader.readexactly(8))
            return first & 15, await self.reader.readexactly(size)
        except asyncio.IncompleteReadError as error:
            expect(not error.partial, "the stream ends inside of a frame")
            return None

    async def json(self):
        """The next text."""
        frame = await self.receive()
        expect(frame and frame[0] == 1, f"{frame} instead of a text")
        return json.loads(frame[1])

    async def hello(self):
        expect(await self.json() == HELLO, "no hello")

    async def closed(self):
        """Reads to the close frame and to the end; returns the code, `None` without one."""
        while (frame := await self.receive()) and frame[0] != 8:
            pass
        expect(frame, "the connection ends without a close frame")
        code = struct.unpack(">H", frame[1][:2])[0] if frame[1] else None
        if not self.closing:
            await self.send(8, frame[1])
        # What the gateway has not read may reset the connection; the code has come before.
        with contextlib.suppress(ConnectionResetError):
            expect(await self.receive() is None, "more after the close frame")
        return code


def close_code(code):
    return struct.pack(">H", code)


async def run(*args, **env):
    """Runs the gateway to its end, which must come by itself. Returns the code and all it says."""
    with tempfile.TemporaryDirectory() as home:
        async with program(SWITCHBOARD, "gateway", *args, **({"HOME": home} | env)) as running:
            code = await asyncio.wait_for(running.end(), 10)
            return code, "\n".join(running.lines)


def echo():
    """Tools that need no module."""
    return [{"name": "echo", "path": "builtin:echo"}]


# --- what chats come to --------------------------------------------------------------------


def events(chat):
    """The names of a chat's events. OpenAI begins each answer with an empty piece of text."""
    return [frame.get("event") for frame in chat.frames if frame.get("data") != ""]


def replied(chat, text="Hello world", **usage):
    """A whole answer: text, one usage, done, and nothing else."""
    expect(chat.text == text, f"{chat.text!r} instead of {text!r} in {chat.frames}")
    names = events(chat)
    expect(names == ["text"] * (len(names) - 2) + ["usage", "done"], names)
    expect(chat.data("usage") == [USAGE | usage], chat.data("usage"))
    return chat


def failed(chat, start, text=""):
    """A chat that ends in an error of the stream, and `done`."""
    expect(chat.text == text, f"{chat.text!r} instead of {text!r}")
    (error,) = chat.data("error")
    expect(error.startswith(start), f"{error!r} does not start with {start!r}")
    expect(events(chat)[-2:] == ["error", "done"], events(chat))
    for secret in (KEY, "127.0.0.1", "localhost", "http:"):
        expect(secret not in error, f"{error!r} tells too much")
    return error


def refused(frame, start):
    """An answer that is an error and nothing else."""
    expect(set(frame) == {"id", "error"}, frame)
    expect(isinstance(frame["error"], str) and frame["error"].startswith(start), frame)


async def used(talk, scope, limit, **params):
    """What is used of a budget, asked by a chat that cannot be paid for."""
    frame = (await talk.chat("x" * (5 * limit), **params)).frames[0]
    refused(frame, f"token budget exceeded ({scope}: ")
    have, _, of = frame["error"].rstrip(")").rpartition(" ")[2].partition("/")
    expect(int(of) == limit, frame)
    return int(have)


async def history(talk, **params):
    """The conversation as the model is told it, as (role, text)."""
    chat = await talk.chat("!context", **params)
    return [(message["role"], message["content"]) for message in json.loads(chat.text)]
