"""Our gateway, as programs of others run it and talk to it.

    async with Provider() as provider, gateway(provider) as running, running.talk(peer) as talk:
        replied(await talk.chat("hi"))

`peer` is a library of sockets.py."""

import contextlib
import itertools
import json
import tempfile
from pathlib import Path

from harness import expect, same, switchboard
from provider import KEY

TOKEN = "correct-horse-battery-staple"
HELLO = {"ok": True, "version": "0.1.0"}
ECHO = {"name": "echo", "path": "builtin:echo"}

def agent(provider="anthropic", **more):
    return {"provider": provider, "model": "stub"} | more

def toml(tables):
    """A configuration file. A list of tables becomes one `[[name]]` for each."""
    lines = []
    for name, table in tables.items():
        several = isinstance(table, list)
        for one in table if several else [table]:
            lines.append(f"[[{name}]]" if several else f"[{name}]")
            # Strings, numbers, booleans and lists look the same in JSON.
            lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in one.items()]
    return "\n".join(lines) + "\n"

@contextlib.asynccontextmanager
async def gateway(provider=None, *args, folder=None, config=None, port=0, **env):
    """Runs the gateway with this configuration and provider. The folder keeps what must survive it."""
    with tempfile.TemporaryDirectory() as fresh:
        folder = Path(folder or fresh)
        path = folder / "config.toml"
        path.write_text(config if isinstance(config, str) else toml(config or {"agent": agent(), "plugins": [ECHO]}))
        env = {"HOME": str(folder)} | (provider.env if provider else {}) | env
        async with switchboard("gateway", "--config", path, "--listen", f"127.0.0.1:{port}", *args, **env) as program:
            line = await program.line("http://")
            yield (running := Gateway(program, line.split("http://")[1].split()[0].rstrip("/.,")))
            bad = [line for line in program.lines if KEY in line or TOKEN in line or "panicked" in line]
            expect(not bad, f"the gateway has said {bad}")
        if provider:
            provider.check()

class Gateway:
    """A gateway that runs."""

    def __init__(self, program, address):
        self.program, self.address, self.port = program, address, int(address.rsplit(":", 1)[1])
        self.http, self.url = f"http://{address}", f"ws://{address}/ws"

    @contextlib.asynccontextmanager
    async def talk(self, peer, token=None, **options):
        """A client that has been greeted."""
        socket = await peer.connect(self.url, **options)
        if token is not None:
            await socket.send({"token": token})
        same(await socket.next(), HELLO, "hello")
        yield Talk(socket)
        await socket.cut()

class Chat:
    """A chat, or another request: the frames that have come, and what they say."""

    def __init__(self, socket, own_id):
        self.socket, self.id, self.frames = socket, own_id, []

    async def next(self):
        own = await self.socket.next(lambda frame: isinstance(frame, dict) and frame.get("id") == self.id, self.id)
        self.frames.append(own)
        return own

    async def event(self, name):
        """Reads on to an event of this name."""
        while (frame := await self.next()).get("event") != name:
            expect("event" in frame and frame["event"] != "done", f"no {name} in {self.frames}")
        return frame.get("data")

    async def end(self):
        while True:
            frame = await self.next()
            if frame.get("event") == "done" or "event" not in frame:
                return self

    def data(self, name):
        return [frame["data"] for frame in self.frames if frame.get("event") == name]

    @property
    def events(self):
        """Their names. Some providers begin each answer with an empty piece of text."""
        return [frame.get("event") for frame in self.frames if frame.get("data") != ""]

    @property
    def text(self):
        return "".join(self.data("text"))

    @property
    def error(self):
        """The error, however it came."""
        return next((frame["error"] for frame in self.frames if "error" in frame), None) or "".join(self.data("error"))

class Talk:
    """A client of the gateway."""

    def __init__(self, socket):
        self.socket = socket
        self.ids = itertools.count(1)

    async def begin(self, method, params=None):
        request = {"id": f"r{next(self.ids)}", "method": method}
        await self.socket.send(request if params is None else request | {"params": params})
        return Chat(self.socket, request["id"])

    async def start(self, content, **params):
        """Starts a chat."""
        return await self.begin("chat.send", {"channel": "ws", "account": "ann", "content": content} | params)

    async def chat(self, content, **params):
        """A whole chat."""
        return await (await self.start(content, **params)).end()

    async def call(self, method, params=None):
        """The one answer to a request."""
        return await (await self.begin(method, params)).next()

    async def result(self, method, params=None):
        answer = await self.call(method, params)
        same(set(answer), {"id", "result"}, f"the answer to {method}")
        return answer["result"]

    async def history(self, **params):
        """The conversation before this message as the model is told it: (role, text) for each."""
        chat = await self.chat("!context", **params)
        return [(message["role"], message["content"]) for message in json.loads(chat.text)[:-1]]

def replied(chat, text="Hello world", tokens=2):
    """A whole answer: text, one usage, done, and nothing else."""
    same(chat.error, "", "the error")
    same(chat.text, text, "the answer")
    names = chat.events
    same(names, ["text"] * (len(names) - 2) + ["usage", "done"], "the events")
    same(chat.data("usage"), [{"input_tokens": 11, "output_tokens": tokens}], "the usage")
    return chat

def failed(chat, start, text=""):
    """A chat that ends in an error of the stream, which tells no secret, and `done`."""
    same(chat.text, text, "the answer so far")
    (error,) = chat.data("error")
    expect(error.startswith(start), f"{error!r} does not start with {start!r}")
    same(chat.events[-2:], ["error", "done"], "the last events")
    told = [secret for secret in (KEY, "127.0.0.1", "localhost", "http:", "{") if secret in error]
    expect(not told, f"{error!r} tells too much")
    return error

def refused(frame, start):
    """An answer that is an error and nothing else."""
    same(set(frame), {"id", "error"}, "members")
    expect(frame["error"].startswith(start), frame)
