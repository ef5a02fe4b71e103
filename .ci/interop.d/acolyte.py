"""The daemon under test, a client of it, and the order that its messages must have."""

import asyncio
import contextlib
import itertools
import json
import re
import sys
import tempfile
from pathlib import Path

import aiohttp
from common import Failed, expect, program
from websockets.asyncio.client import connect

SWITCHBOARD = sys.argv[1]
KEY = "test-key-123"
RPC_ID = re.compile(r"rpc_[a-z0-9]+")
TASK_ID = re.compile(r"task_[a-z0-9]{8}")
ERROR_ID = re.compile(r"err_[a-z0-9]+")
INVALID = "Invalid RPC message"
MODEL = "scripted"


# --- the order of messages ----------------------------------------------------------------------


class Order:
    """Follows one connection in both directions and fails where the protocol is broken: one chat runs
    at a time, those that wait do so in order, each of their places is told, and each chat ends once."""

    def __init__(self, silent_aborts=False):
        self.silent = silent_aborts
        # What was asked, by id: the types that were sent and not answered yet.
        self.asked = {}
        self.chats = {}
        self.running = None
        # The one that ran was aborted, and its work may go on for a moment.
        self.winding = False
        self.waiting = []
        # Places that have to be told now, before anything else about the queue.
        self.owed = []
        self.frames = []

    def sent(self, frame):
        self.frames.append(("sent", frame))
        if isinstance(frame, dict) and isinstance(frame.get("id"), str):
            self.asked.setdefault(frame["id"], []).append(frame)

    def taken(self, frame):
        self.frames.append(("taken", frame))
        try:
            self.check(frame)
        except Failed as failed:
            told = "\n".join(f"      {way:5} {json.dumps(it)[:160]}" for way, it in self.frames[-12:])
            raise Failed(f"{failed}\n{told}") from None

    def check(self, frame):
        expect(isinstance(frame, dict), "a message that is no object")
        expect(isinstance(frame.get("type"), str) and RPC_ID.fullmatch(frame.get("id", "")), "no envelope")
        expect("payload" not in frame, "a wrapped answer")
        kind, id = frame["type"], frame["id"]
        no_nulls({name: value for name, value in frame.items() if (kind, name) != ("task.status.result", "task")})
        if self.owed and kind != "chat.queued":
            raise Failed(f"{kind} while places are owed: {self.owed}")
        if id == "rpc_unknown":
            return expect(frame == {"id": id, "type": "error", "error": INVALID}, "another error")
        expect(id in self.asked, f"{kind} for an id that was never sent")
        match kind:
            case "error":
                expect(set(frame) == {"id", "type", "error"} and frame["error"], "members of an error")
            case "status.result":
                self.answered(id, "status.get")
            case "task.status.result":
                self.answered(id, "task.status")
            case "chat.abort.result":
                asked = self.answered(id, "chat.abort")
                expect(frame["requestId"] == asked["payload"]["requestId"], "another chat")
                expect(isinstance(frame["aborted"], bool), "no answer")
                chat = self.chats.get(frame["requestId"])
                if frame["aborted"] and chat:
                    self.aborted(frame["requestId"], chat)
            case "chat.accepted":
                self.answered(id, "chat.start")
                expect(TASK_ID.fullmatch(frame["taskId"]), "no id of a task")
                expect(id not in self.chats or self.chats[id].ended, "an id that is in use")
                self.chats[id] = Course(frame["taskId"])
                self.waiting.append(id)
                if len(self.waiting) > 1 or self.running:
                    self.owed = [(id, len(self.waiting))]
            case "chat.queued":
                if not self.owed:
                    self.owed = self.moved(id)
                expect(self.owed, "a place that is owed to nobody")
                expect((id, frame["position"]) == self.owed.pop(0), "another place")
            case "chat.started":
                expect(self.running is None, f"{self.running} runs")
                first = self.waiting.pop(0) if self.waiting else None
                expect(id == first, f"it is the turn of {first}")
                expect(not self.winding or not self.waiting, "the places behind it were not told")
                self.running, self.winding = id, False
                self.chats[id].started = True
            case "chat.event" | "chat.done" | "chat.error":
                chat = self.chats.get(id)
                expect(chat and not chat.ended, f"{kind} of a chat that has ended or never began")
                if kind == "chat.event":
                    return chat.event(frame["event"])
                if kind == "chat.done":
                    chat.done(frame["reply"])
                else:
                    problem(frame)
                self.ended(id, chat, is_aborted=frame.get("errorCode") == "E_ABORTED")
            case _:
                raise Failed(f"an unknown type {kind}")

    def answered(self, id, kind):
        asked = next((it for it in self.asked[id] if it.get("type") == kind), None)
        expect(asked, f"nothing like {kind} was asked")
        self.asked[id].remove(asked)
        return asked

    def aborted(self, id, chat):
        if not self.silent:
            expect(chat.ended, "an abort is answered before its chat has ended")
        elif not chat.ended:
            self.ended(id, chat, is_aborted=True)
            expect(not self.owed, f"places are owed: {self.owed}")

    def ended(self, id, chat, is_aborted=False):
        chat.ended = True
        if id == self.running:
            self.running, self.winding = None, is_aborted
            self.owed = [] if is_aborted else places(self.waiting[1:])
        else:
            # It never ran.
            self.waiting.remove(id)
            self.owed = places(self.waiting)

    def moved(self, id):
        """What has moved the queue, if no message said so."""
        if self.winding and len(self.waiting) == 1:
            # It came while the work before it went on.
            return places(self.waiting)
        if self.winding and id == self.waiting[1]:
            self.winding = False
            return places(self.waiting[1:])
        aborts = (it["payload"]["requestId"] for asked in self.asked.values() for it in asked
                  if it.get("type") == "chat.abort")
        gone = next((it for it in aborts if self.silent and it in self.waiting), None)
        if gone:
            self.chats[gone].ended = True
            self.waiting.remove(gone)
            return places(self.waiting)
        return []


def places(ids):
    return [(id, place) for place, id in enumerate(ids, 1)]


class Course:
    """The events of one chat."""

    def __init__(self, task):
        self.task, self.started, self.ended = task, False, False
        self.count, self.open, self.closed, self.names, self.text = 0, {}, set(), [], ""

    def event(self, event):
        no_nulls(event)
        kind = event["type"]
        expect(self.started, "an event before the start")
        self.count += 1
        if self.count == 1:
            return expect(event == {"type": "status", "state": {"kind": "running"}}, "the first event")
        expect(kind not in ("status", "error"), f"an event {kind}")
        id = event.get("toolCallId")
        match kind:
            case "text-delta":
                self.text += event["text"]
            case "tool-call":
                expect(id not in self.open and id not in self.closed, "a call that was there before")
                expect(isinstance(event["args"], dict), "no arguments")
                self.open[id] = event["toolName"]
                self.names.append(event["toolName"])
            case "tool-output" | "tool-result":
                expect(self.open.get(id) == event["toolName"], f"{kind} without its call")
                if kind == "tool-result":
                    # Calls end in the order in which they were made.
                    expect(next(iter(self.open)) == id, "a result before its turn")
                    del self.open[id]
                    self.closed.add(id)
            case "usage":
                for name in ("inputTokens", "outputTokens"):
                    expect(type(event[name]) is int and event[name] >= 0, "no number of tokens")

    def done(self, reply):
        expect(self.started, "an end before the start")
        no_nulls(reply)
        expect(isinstance(reply["output"], str) and reply["model"], "no reply")
        expect(type(reply["outputStreamed"]) is bool, "outputStreamed")
        expect(not self.open, f"calls without a result: {self.open}")
        expect(reply["toolCalls"] == self.names, "the tools of the reply")
        if reply["outputStreamed"]:
            expect(reply["output"] in self.text, "the output was not streamed")
        usage = reply["usage"]
        expect(usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"], "the sum")


def problem(frame):
    """All four members, as known servers have them."""
    expect(frame["errorMessage"] and isinstance(frame["errorMessage"], str), "no words")
    expect(ERROR_ID.fullmatch(frame["errorId"]), "no id of an error")
    expect(frame["errorCode"] and isinstance(frame["error"], dict), "no code or detail")


def no_nulls(value):
    expect(value is not None, "a null")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        no_nulls(inner)


# --- the daemon and its clients ------------------------------------------------------------------


class Daemon:
    def __init__(self, running, folder):
        line = running.find("listening on ")
        self.program = running
        self.folder = folder
        self.http = line.split("listening on ")[1].split()[0].rstrip("/")
        self.port = int(self.http.rsplit(":", 1)[1])
        self.rpc = self.http.replace("http", "ws", 1) + "/v1/rpc"

    @contextlib.asynccontextmanager
    async def talk(self, silent_aborts=False, **options):
        """A client with the library `websockets`."""
        async with connect(self.rpc, max_size=None, proxy=None, **options) as socket:
            talk = Talk(socket, Order(silent_aborts))
            try:
                yield talk
            finally:
                await talk.close()
        talk.check()

    async def ask(self, method, path, data=None, **headers):
        """One request: status, type, body."""
        async with aiohttp.ClientSession() as session:
            async with session.request(method, self.http + path, data=data, headers=headers) as answer:
                return answer.status, answer.headers.get("content-type"), await answer.text()

    async def stream(self, request, **headers):
        """A whole chat over HTTP: its bytes and its frames."""
        data = request if isinstance(request, (str, bytes)) else json.dumps(request)
        status, kind, text = await self.ask("POST", "/v1/chat/stream", data, **headers)
        expect((status, kind) == (200, "text/event-stream"), f"{status} {kind} {text}")
        return text, frames(text)


def frames(text):
    """The frames of a stream, which may hold nothing but data and comments."""
    expect(text.endswith("\n\n") and "\r" not in text, "the end of a frame")
    found = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        if block.startswith(":"):
            expect("\n" not in block, "more than a comment")
            continue
        expect(block.startswith("data: ") and "\n" not in block, f"a frame {block[:100]!r}")
        found.append(json.loads(block.removeprefix("data: ")))
    course = Course(None)
    course.started = True
    for frame in found[:-1]:
        course.event(frame)
    match found[-1]["type"]:
        case "done":
            course.done(found[-1]["reply"])
        case "error":
            problem(found[-1])
        case other:
            raise Failed(f"the stream ends with {other}")
    return found


@contextlib.asynccontextmanager
async def daemon(*args, files=None, end=True, **env):
    """The daemon on a folder with these files. Nothing of it may be left behind."""
    with tempfile.TemporaryDirectory() as outside:
        folder = Path(outside, "work")
        folder.mkdir()
        for name, text in ({"a.txt": "one\ntwo\nthree\n"} | (files or {})).items():
            Path(folder, name).write_text(text)
        where = ("--listen", "127.0.0.1:0", "--workspace", str(folder))
        async with program(SWITCHBOARD, "daemon", "serve", *where, *args, HOME=outside, **env) as running:
            await asyncio.wait_for(running.line_with("listening on "), 20)
            served = Daemon(running, folder)
            yield served
            expect(not end or running.process.returncode is None, "the daemon has ended")
            expect(not running.find("panicked"), running.lines)
            expect(not running.find(KEY), "a key is shown")


class Talk:
    """A client of the daemon. Messages are sorted by id."""

    def __init__(self, socket, order):
        self.socket, self.order = socket, order
        self.ids = itertools.count(1)
        self.queues = {}
        self.fault = None
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        try:
            while True:
                text = await self.socket.recv()
                expect(isinstance(text, str), "bytes")
                frame = json.loads(text)
                self.order.taken(frame)
                self.queue(frame["id"]).put_nowait(frame)
        except Exception as error:
            self.fault = error if isinstance(error, Failed) else Failed(f"the line has ended: {error!r}")
            for queue in self.queues.values():
                queue.put_nowait(self.fault)

    def queue(self, id):
        if id not in self.queues:
            self.queues[id] = asyncio.Queue()
            if self.fault:
                self.queues[id].put_nowait(self.fault)
        return self.queues[id]

    async def close(self):
        self.reader.cancel()

    def check(self):
        if isinstance(self.fault, Failed) and "the line has ended" not in str(self.fault):
            raise self.fault
        expect(not self.order.owed, f"places are owed: {self.order.owed}")

    async def send(self, frame):
        """Sends an object, or whatever it is."""
        if isinstance(frame, (str, bytes)):
            with contextlib.suppress(ValueError, RecursionError):
                self.order.sent(json.loads(frame))
            await self.socket.send(frame)
        else:
            self.order.sent(frame)
            await self.socket.send(json.dumps(frame))

    async def next(self, id):
        frame = await self.queue(id).get()
        if isinstance(frame, Failed):
            raise frame
        return frame

    async def call(self, kind, **payload):
        """A request with one answer."""
        id = f"rpc_q{next(self.ids)}"
        await self.send({"id": id, "type": kind} | ({"payload": payload} if payload else {}))
        return await self.next(id)

    async def status(self):
        return (await self.call("status.get"))["status"]

    async def task(self, id):
        return (await self.call("task.status", taskId=id))["task"]

    async def abort(self, id):
        return (await self.call("chat.abort", requestId=id))["aborted"]

    async def start(self, message, id=None, **more):
        chat = Chat(self, id or f"rpc_c{next(self.ids)}")
        await self.send({"id": chat.id, "type": "chat.start", "payload": {"request": request(message, **more)}})
        return chat

    async def chat(self, message, **more):
        """A whole chat."""
        return await (await self.start(message, **more)).end()


def request(message, **more):
    return {"message": message, "history": [], "model": MODEL} | more


class Chat:
    """A chat: what has come of it."""

    def __init__(self, talk, id):
        self.talk, self.id, self.frames = talk, id, []

    async def next(self):
        self.frames.append(await self.talk.next(self.id))
        return self.frames[-1]

    async def until(self, kind, event=None):
        """Reads on to a message of this type, or to this event."""
        while True:
            frame = await self.next()
            if frame["type"] == kind and (event is None or frame["event"]["type"] == event):
                return frame
            ended = frame["type"] in ("chat.done", "chat.error", "error")
            expect(not ended, f"no {kind} {event or ''} in {self.frames}")

    async def end(self):
        while (await self.next())["type"] not in ("chat.done", "chat.error", "error"):
            pass
        return self

    @property
    def task(self):
        return next(it["taskId"] for it in self.frames if it["type"] == "chat.accepted")

    @property
    def last(self):
        return self.frames[-1]

    @property
    def reply(self):
        expect(self.last["type"] == "chat.done", self.last)
        return self.last["reply"]

    @property
    def code(self):
        expect(self.last["type"] == "chat.error", self.last)
        return self.last["errorCode"]

    @property
    def refusal(self):
        expect([it["type"] for it in self.frames] == ["error"], self.frames)
        return self.last["error"]

    def events(self, kind):
        events = (it["event"] for it in self.frames if it["type"] == "chat.event")
        return [event for event in events if event["type"] == kind]

    def places(self):
        return [it["position"] for it in self.frames if it["type"] == "chat.queued"]
