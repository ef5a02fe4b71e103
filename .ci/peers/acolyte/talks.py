"""Our Acolyte daemon on a folder, clients of it, and what holds for the order of all that it says."""

import asyncio
import contextlib
import itertools
import json
import tempfile
from pathlib import Path

import eras
from harness import Failed, Inbox, expect, same, served

ENDS = ("chat.done", "chat.error", "error")

def request(message, **more):
    return {"message": message, "history": [], "model": "scripted"} | more

class Course:
    """The events of one chat, over either transport."""

    def __init__(self):
        self.count, self.names, self.text = 0, [], ""
        # Calls without a result, in their order.
        self.open = {}

    def event(self, event):
        kind, call = event["type"], event.get("toolCallId")
        self.count += 1
        if self.count == 1:
            return same(event, {"type": "status", "state": {"kind": "running"}}, "the first event")
        expect(kind not in ("status", "error"), f"an event {kind}")
        if kind == "text-delta":
            self.text += event["text"]
        elif kind == "tool-call":
            expect(call not in self.open, "a call that goes on")
            self.open[call] = event["toolName"]
            self.names.append(event["toolName"])
        elif kind in ("tool-output", "tool-result"):
            same(self.open.get(call), event["toolName"], f"the call of a {kind}")
            if kind == "tool-result":
                same(next(iter(self.open)), call, "whose turn it is to end")
                del self.open[call]

    def end(self, frame):
        if "reply" not in frame:
            # Servers send all four members, though clients ask for no more than the words.
            return expect({"errorMessage", "errorId", "errorCode", "error"} <= set(frame), f"an error {frame}")
        reply, usage = frame["reply"], frame["reply"]["usage"]
        same(self.open, {}, "calls without a result")
        same(reply["toolCalls"], self.names, "the tools of the reply")
        expect(not reply["outputStreamed"] or reply["output"] in self.text, "the output was not streamed")
        same(usage["totalTokens"], usage["inputTokens"] + usage["outputTokens"], "the sum")

def frames_of(text):
    """The frames of a whole stream, which may hold nothing but data and comments."""
    expect(text.endswith("\n\n") and "\r" not in text, "the end of a stream")
    blocks = [block for block in text.split("\n\n") if block and block != ":"]
    expect(all(block.startswith("data: ") and "\n" not in block for block in blocks), f"the blocks: {blocks}")
    frames = [json.loads(block.removeprefix("data: ")) for block in blocks]
    course = Course()
    for frame in frames:
        eras.accepted("frame", frame)
    for frame in frames[:-1]:
        course.event(frame)
    expect(frames[-1]["type"] in ("done", "error"), f"the end: {frames[-1]}")
    course.end(frames[-1])
    return frames

class Order:
    """Follows what is said on one connection. Each chat is accepted, waits, starts and ends once; one runs at a time,
    in their order; and whenever the queue has moved, all that wait know their places."""

    def __init__(self):
        self.courses, self.places = {}, {}
        self.waiting = []
        self.running = None

    def taken(self, frame):
        own_id, kind = frame["id"], frame["type"]
        if kind == "chat.accepted":
            expect(own_id not in self.courses, "an id that is in use")
            self.courses[own_id] = Course()
        elif kind == "chat.queued":
            expect(own_id in self.courses and own_id != self.running, "a place of a chat that does not wait")
            if own_id not in self.waiting:
                self.waiting.append(own_id)
            self.places[own_id] = frame["position"]
        elif kind == "chat.started":
            same(self.running, None, "what runs")
            self.running = own_id
            same(self.waiting.pop(0) if self.waiting else own_id, own_id, "whose turn it is")
            self.places_are_known()
        elif kind == "chat.event":
            same(self.running, own_id, "the chat that says something")
            self.courses[own_id].event(frame["event"])
        elif kind in ("chat.done", "chat.error"):
            self.ended(own_id).end(frame)
        elif kind == "chat.abort.result" and frame["aborted"]:
            expect(frame["requestId"] not in self.courses, "an aborted chat goes on")
            self.places_are_known()

    def ended(self, own_id):
        expect(own_id in self.courses, "a chat that has ended or never began")
        self.waiting = [it for it in self.waiting if it != own_id]
        self.running = None if self.running == own_id else self.running
        return self.courses.pop(own_id)

    def places_are_known(self):
        same([self.places[it] for it in self.waiting], list(range(1, len(self.waiting) + 1)), "the places")

class Talk:
    """A client of the daemon. Messages are sorted by id, and judged as they come."""

    def __init__(self, socket):
        self.socket, self.order = socket, Order()
        self.ids = itertools.count(1)
        self.inboxes = {}
        self.fault = None
        self.is_over = False
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        while not self.fault:
            try:
                frame = await self.socket.next()
            except Failed:
                break
            try:
                eras.accepted("message", frame)
                self.order.taken(frame)
            except Failed as fault:
                self.fault = Failed(f"{fault}, at {frame}")
            await self.inbox(frame["id"]).put(frame)
        self.is_over = True
        for inbox in self.inboxes.values():
            await inbox.end()

    def inbox(self, own_id):
        inbox = self.inboxes.setdefault(own_id, Inbox())
        inbox.is_over = inbox.is_over or self.is_over
        return inbox

    async def next(self, own_id):
        try:
            return await self.inbox(own_id).next(what=f"a message for {own_id}")
        except Failed as failed:
            raise self.fault or failed from None

    async def ask(self, kind, **payload):
        """A request with one answer."""
        own_id = f"rpc_q{next(self.ids)}"
        await self.socket.send({"id": own_id, "type": kind} | ({"payload": payload} if payload else {}))
        return await self.next(own_id)

    async def state(self, task):
        return (await self.ask("task.status", taskId=task))["task"]["state"]

    async def abort(self, chat):
        return (await self.ask("chat.abort", requestId=chat.id))["aborted"]

    async def start(self, message, own_id=None, **more):
        chat = Chat(self, own_id or f"rpc_c{next(self.ids)}")
        await self.socket.send({"id": chat.id, "type": "chat.start", "payload": {"request": request(message, **more)}})
        return chat

    async def chat(self, message, **more):
        """A whole chat."""
        return await (await self.start(message, **more)).end()

class Chat:
    """A chat over a WebSocket, and what has come of it."""

    def __init__(self, talk, own_id):
        self.talk, self.id, self.frames = talk, own_id, []

    async def until(self, *kinds):
        """Reads on to a message of one of these types, or to such an event."""
        while True:
            frame = await self.talk.next(self.id)
            self.frames.append(frame)
            if frame["type"] in kinds or frame.get("event", {}).get("type") in kinds:
                return frame
            expect(frame["type"] not in ENDS, f"ended without {kinds}: {self.frames[-8:]}")

    async def end(self):
        await self.until(*ENDS)
        return self

    @property
    def last(self):
        return self.frames[-1]

    @property
    def task(self):
        return next(frame["taskId"] for frame in self.frames if frame["type"] == "chat.accepted")

    @property
    def output(self):
        expect(self.last["type"] == "chat.done", f"the end: {self.last}")
        return self.last["reply"]["output"]

    @property
    def code(self):
        return self.last.get("errorCode")

class Daemon:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.http, self.rpc = f"http://{program.address}", f"ws://{program.address}/v1/rpc"

    @contextlib.asynccontextmanager
    async def talk(self, library, *protocols, **options):
        socket = await library.connect(self.rpc, list(protocols), **options)
        talk = Talk(socket)
        try:
            yield talk
        finally:
            await socket.cut()
            await talk.reader
        if talk.fault:
            raise talk.fault

    async def stream(self, library, message, headers=None, **more):
        """A whole chat over HTTP."""
        body = json.dumps(request(message, **more))
        headers = {"content-type": "application/json"} | (headers or {})
        status, found, text = await library.fetch(f"{self.http}/v1/chat/stream", "POST", headers, body)
        same((status, found["content-type"]), (200, "text/event-stream"), f"the answer {text[:200]}")
        return frames_of(text)

@contextlib.asynccontextmanager
async def daemon(*options, **env):
    """The daemon on a folder with a file. Its commands run unconfined, so that they do the same everywhere."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "work")
        folder.mkdir()
        Path(folder, "a.txt").write_text("one\ntwo\nthree\n")
        options = ("--workspace", folder, "--commands", "open", *options)
        async with served("daemon", "serve", *options, TMPDIR=place, HOME=place, **env) as program:
            yield Daemon(program, folder)
            expect(not program.find("panicked"), program.tail())
