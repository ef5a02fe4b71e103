"""A scripted Acolyte server, and runs of our command line against it."""

import asyncio
import contextlib
import json
import logging
import re
import sys

from aiohttp import WSMsgType, web
from common import Failed, expect, program

# It warns of what it is told to do.
logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
SWITCHBOARD = sys.argv[1]
STATUS = {
    "ok": True, "providers": ["openai"], "provider_auth": ["openai (api key)"], "model": "gpt-5-mini",
    "protocol_version": "1", "capabilities": "error.structured, stream.sse, workspace.path",
    "service": "http://localhost:6767", "tasks_total": 3, "tasks_running": 0, "rpc_queue_length": 0,
}
ACCEPTED = {"type": "chat.accepted", "taskId": "task_fake0001"}
STARTED = {"type": "chat.started"}
REPLY = {"output": "fine", "outputStreamed": False, "model": "m"}
DONE = {"type": "chat.done", "reply": REPLY}
BEGUN = [ACCEPTED, STARTED]
# What a request may hold, and what of it must be there.
MEMBERS = {"message", "history", "model", "sessionId", "resourceId", "activeSkills", "suggestions", "workspace"}
IDS = {"sessionId": r"sess_[a-z0-9]+", "resourceId": r"(user|proj)_[a-z0-9]+"}


def event(kind, **members):
    return {"type": "chat.event", "event": {"type": kind} | members}


def done(**members):
    return {"type": "chat.done", "reply": REPLY | members}


def check_request(request):
    """What a strict server of any era takes."""
    expect({"message", "history", "model"} <= set(request) <= MEMBERS, f"members {set(request)}")
    expect("null" not in json.dumps(request), "a null")
    for name, pattern in IDS.items():
        expect(re.fullmatch(pattern, request.get(name, "sess_a" if name == "sessionId" else "user_a")), name)
    for item in request["history"]:
        expect({"id", "role", "content", "timestamp"} <= set(item), item)
        expect(re.fullmatch(r"msg_[a-z0-9]+", item["id"]), item)
        expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", item["timestamp"]), item)


class Line:
    """One connection of our program."""

    def __init__(self, socket, transport):
        self.socket, self.transport = socket, transport
        self.id = None
        self.request = None
        self.code = None
        self.seen = set()

    async def next(self):
        """The next request; `None` at the end."""
        message = await self.socket.receive()
        if message.type in (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR):
            self.code = self.socket.close_code
            return None
        expect(message.type == WSMsgType.TEXT, f"a message of type {message.type}")
        frame = json.loads(message.data)
        expect(set(frame) <= {"id", "type", "payload"}, f"members {set(frame)}")
        expect(re.fullmatch(r"rpc_[a-z0-9]+", frame["id"]) and frame["id"] not in self.seen, f"the id {frame['id']}")
        self.seen.add(frame["id"])
        match frame["type"]:
            case "chat.start":
                check_request(frame["payload"]["request"])
                self.id, self.request = frame["id"], frame["payload"]["request"]
            case "chat.abort":
                expect(frame["payload"] == {"requestId": self.id}, frame)
            case "task.status":
                expect(re.fullmatch(r"task_[a-z0-9]+", frame["payload"]["taskId"]), frame)
            case other:
                expect(other == "status.get", f"a request {other}")
        return frame

    async def expect(self, kind):
        frame = await self.next()
        expect(frame and frame["type"] == kind, f"{frame} instead of {kind}")
        return frame

    async def send(self, frame, id=None):
        """An object gets the id of the chat; a text is sent as it is, but for `ID`."""
        if isinstance(frame, bytes):
            await self.socket.send_bytes(frame.replace(b"ID", self.id.encode()))
        elif isinstance(frame, str):
            await self.socket.send_str(frame.replace("ID", self.id))
        else:
            await self.socket.send_str(json.dumps({"id": id or self.id} | frame))

    async def play(self, frames):
        for frame in frames:
            if callable(frame):
                await frame(self)
            else:
                await self.send(frame)

    def drop(self):
        self.transport.abort()


def close(code):
    async def close(line):
        await line.socket.close(code=code)
    return close


async def drop(line):
    line.drop()


def wait(seconds):
    return lambda _: asyncio.sleep(seconds)


def talking(*frames):
    """A script that answers a chat with these frames."""
    async def script(line):
        await line.expect("chat.start")
        await line.play(frames)
    return script


class Fake:
    """A server that does what it was told. What is `None` cannot be reached."""

    def __init__(self, script=None, status=STATUS, upgrade=None, stream=None, protocol=True):
        self.script, self.status, self.upgrade, self.stream = script, status, upgrade, stream
        self.protocol = protocol
        self.requests = []
        self.lines = []
        self.faults = []
        self.app = web.Application(client_max_size=1 << 26)
        self.app.router.add_get("/base/v1/status", self.on_status)
        self.app.router.add_get("/base/v1/rpc", self.on_rpc)
        self.app.router.add_post("/base/v1/chat/stream", self.on_stream)

    @contextlib.asynccontextmanager
    async def serve(self):
        runner = web.AppRunner(self.app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/base"
        try:
            yield self
        finally:
            await runner.cleanup()
        if self.faults:
            raise self.faults[0]

    async def on_status(self, request):
        self.requests.append(request)
        if isinstance(self.status, web.Response):
            return self.status
        return web.json_response(self.status)

    async def on_rpc(self, request):
        self.requests.append(request)
        if self.upgrade:
            return self.upgrade
        offered = request.headers.get("Sec-WebSocket-Protocol", "").split(", ")
        names = [offered[0]] if self.protocol and offered[0] else []
        socket = web.WebSocketResponse(protocols=names, autoclose=True, max_msg_size=0)
        await socket.prepare(request)
        line = Line(socket, request.transport)
        self.lines.append(line)
        await self.guarded(self.script(line))
        while not socket.closed and line.code is None:
            await self.guarded(line.next())
        return socket

    async def on_stream(self, request):
        self.requests.append(request)
        body = json.loads(await request.text())
        check_request(body)
        if isinstance(self.stream, web.Response):
            return self.stream
        answer = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-cache"})
        await answer.prepare(request)
        # Our program may have had enough.
        with contextlib.suppress(ConnectionError):
            for piece in self.stream:
                if piece is drop:
                    request.transport.abort()
                elif callable(piece):
                    await piece(None)
                else:
                    await answer.write(piece.encode())
        return answer

    async def guarded(self, script):
        try:
            await script
        except (Failed, ValueError, KeyError) as error:
            self.faults.append(error)
        except ConnectionError:
            pass


class Ran:
    """What our program has said."""

    def __init__(self, code, lines):
        self.code = code
        self.lines = lines
        self.updates = [json.loads(line) for line in lines if line.startswith("{")]
        self.words = " ".join(line for line in lines if not line.startswith("{"))

    def of(self, kind):
        return [it for it in self.updates if it.get("update") == kind]

    @property
    def ended(self):
        ended = self.of("ended")
        expect(len(ended) == 1 and self.updates[-1] == ended[0], f"not one end: {self.lines}")
        return ended[0]

    @property
    def text(self):
        events = [it["event"] for it in self.of("event")]
        return "".join(it["text"] for it in events if it["type"] == "text-delta")


async def run(fake, *args, command="run", signals=0, after="started", within=15, lines=(), **env):
    """Runs our program, sends it Ctrl-C after this, and gives it these lines."""
    if command == "run":
        args = ("do it", *args)
    if command in ("run", "chat"):
        args = (*args, "--yes")
    async with program(SWITCHBOARD, "daemon", command, *args, "--url", fake.url, "--json", feed=bool(lines), **env) as running:
        if lines:
            running.process.stdin.write(("\n".join(lines) + "\n").encode())
            running.process.stdin.close()
        for _ in range(signals):
            await running.line_with(after)
            running.process.send_signal(2)
            after = "aborting"
        code = await asyncio.wait_for(running.end(), within)
        expect(not running.find("panicked"), running.lines)
        return Ran(code, running.lines)
