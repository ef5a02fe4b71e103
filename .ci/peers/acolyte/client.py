"""Our Acolyte command line against servers of Python's `websockets` and Node's `ws`, and streams of aiohttp."""
# Needs: node.

import asyncio
import contextlib
import json
import re
import signal
from operator import methodcaller
from pathlib import Path
from types import SimpleNamespace

from aiohttp import web
from harness import expect, json_lines, main, output, same, switchboard
from sockets import Node, Python, http_server

VECTORS = Path(__file__).parents[3] / "acolyte-proto/tests/vectors"
CODES = {"done": 0, "failed": 1, "refused": 3, "closed": 1, "timed-out": 1, "aborted": 130}
STATUS = {
    "ok": True, "providers": ["openai"], "provider_auth": ["openai (api key)"], "model": "gpt-5-mini",
    "protocol_version": "1", "capabilities": "error.structured, stream.sse, workspace.path",
    "service": "http://localhost:6767", "tasks_total": 3, "tasks_running": 0, "rpc_queue_length": 0,
}
REQUIRED = {"message", "history", "model"}
MEMBERS = REQUIRED | {"sessionId", "resourceId", "activeSkills", "suggestions", "workspace"}
ACCEPTED = {"type": "chat.accepted", "taskId": "task_fake0001"}
BEGUN = [ACCEPTED, {"type": "chat.started"}]
REPLY = {"output": "fine", "outputStreamed": False, "model": "m"}
DONE = {"type": "chat.done", "reply": REPLY}
ABORTED = {"type": "chat.error", "errorMessage": "aborted", "errorCode": "E_ABORTED"}
UNKNOWN = '{"id":"rpc_unknown","type":"error","error":"Invalid RPC message"}'
OTHER = '{"id":"rpc_zzzz","type":"chat.done","reply":{"output":"no","model":"m"}}'

def event(kind, **members):
    return {"type": "chat.event", "event": {"type": kind} | members}

def done(**members):
    return {"type": "chat.done", "reply": REPLY | members}

CUT = methodcaller("cut")
CALL = event("tool-call", toolCallId="c", toolName="t", args={})
# How a chat ends, and what a server says to it: servers of all eras, what has made other clients hang, and disorder.
ENDS = (
    ("done", [*BEGUN, {"type": "chat.done", "reply": {"output": "fine", "model": "m", "state": "done"}}]),
    ("done", [*BEGUN, done(usage={"inputTokens": 1, "outputTokens": 2}, error=None, toolCalls=None, more={"x": [1]})]),
    ("done", [json.dumps({"id": "ID"} | DONE).encode()]),
    ("done", [*BEGUN, UNKNOWN, OTHER, "not json", "", "[]", "{}", '{"id":7,"type":"chat.done"}', event("later"), DONE]),
    ("done", [*BEGUN, event("error", errorMessage="in stream"), DONE]),
    ("failed", [*BEGUN, done(output="", error="it went wrong")]),
    ("failed", [*BEGUN, {"type": "chat.error", "errorMessage": "boom", "errorId": None}]),
    ("failed", [*BEGUN, {"type": "error", "error": "no"}]),
    ("failed", [*BEGUN, {"type": "chat.done", "payload": {"reply": REPLY}}]),
    ("refused", [{"type": "error", "error": "RPC queue is full (25 queued). Try again shortly."}]),
    ("refused", [UNKNOWN]),
    ("closed", [methodcaller("close", 1000)]),
    ("closed", [ACCEPTED, {"type": "chat.queued", "position": 2}, methodcaller("close", 1001)]),
    ("closed", [*BEGUN, CALL, CUT]),
    ("timed-out", []),
    ("timed-out", [*BEGUN, CALL]),
)

class Ran:
    """What our program has said, and with which code it has ended."""

    def __init__(self, code, out, err):
        self.code, self.text = code, f"{out}\n{err}"
        expect("panicked" not in self.text, self.text)
        self.updates = [json.loads(line) for line in self.text.split("\n") if line.startswith("{")]

    def of(self, kind):
        return [update for update in self.updates if update.get("event") == kind]

    @property
    def ended(self):
        last = [update["event"] for update in self.updates if update["event"] != "error"][-1:]
        expect(len(self.of("ended")) == 1 and last == ["ended"], f"not one end: {self.text}")
        return self.of("ended")[0]

    def ends(self, outcome, code=None):
        code = CODES[outcome] if code is None else code
        same((self.ended["outcome"], self.code), (outcome, code), f"the end of {self.text[-2000:]}")
        same(self.ended["mayHaveRun"], outcome != "refused", "whether it may have run")
        expect("reply" in self.ended or outcome != "done", "no reply")

COMMANDS = {"run": ("run", "do it", "--yes"), "chat": ("chat", "--yes"), "status": ("status",)}

async def run(server, *args, command="run", **more):
    return Ran(*await output("daemon", *COMMANDS[command], "--url", server.http, "--json", *args, **more))

@contextlib.asynccontextmanager
async def interrupted(server):
    """Our program, which gets a Ctrl-C when its chat has started."""
    async with switchboard("daemon", *COMMANDS["run"], "--url", server.http, "--json") as program:
        await program.line('"started"')
        program.signal(signal.SIGINT)
        yield program

async def ran(program):
    code = await program.end()
    return Ran(code, *("\n".join(program.said[number]) for number in (1, 2)))

@contextlib.asynccontextmanager
async def acolyte(library, status=STATUS, protocol="acolyte.v1", **options):
    """A server below a path. `status` is what it tells of itself, or (status, text, type)."""
    page = status if isinstance(status, tuple) else (200, json.dumps(status), "application/json")
    async with library.serve(protocol, pages={"/base/v1/status": page}, **options) as server:
        server.http = f"http://127.0.0.1:{server.port}/base"
        yield server

def check_request(request):
    """What strict servers of any era take."""
    expect(REQUIRED <= set(request) <= MEMBERS and "null" not in json.dumps(request), request)
    expect(re.fullmatch(r"sess_[a-z0-9]+", request.get("sessionId", "sess_a")), request)
    expect(re.fullmatch(r"(user|proj)_[a-z0-9]+", request.get("resourceId", "user_a")), request)
    for item in request["history"]:
        expect({"id", "role", "content", "timestamp"} <= set(item) and re.fullmatch(r"msg_[a-z0-9]+", item["id"]), item)
        expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", item["timestamp"]), item)

async def asked(socket, kind):
    """The next request on a connection."""
    frame = await socket.next()
    expect(set(frame) <= {"id", "type", "payload"} and re.fullmatch(r"rpc_[a-z0-9]+", frame["id"]), f"{frame}")
    same(frame["type"], kind, "the request")
    if kind == "chat.start":
        check_request(frame["payload"]["request"])
    return frame

async def play(socket, own_id, frames):
    """An object gets the id, a text or bytes are sent as they are but for `ID`, and functions do something else."""
    for frame in frames:
        if callable(frame):
            await frame(socket)
        elif isinstance(frame, bytes):
            await socket.send(frame.replace(b"ID", own_id.encode()))
        else:
            await socket.send(frame if isinstance(frame, str) else {"id": own_id} | frame)

async def answered(server, kind, frames):
    """Answers the first request of a connection with these frames."""
    socket = await server.accepted()
    same(socket.path, "/base/v1/rpc", "the path")
    request = await asked(socket, kind)
    await play(socket, request["id"], frames)
    return socket, request

async def talked(server, frames, *args, **more):
    """Our program against a server that answers a chat with these frames."""
    found, _ = await asyncio.gather(run(server, *args, **more), answered(server, "chat.start", frames))
    return found

async def each_end_of_a_chat_has_its_exit_code(library):
    async with acolyte(library) as server:
        for outcome, frames in ENDS:
            idle = ("--idle-timeout", "300ms") if outcome == "timed-out" else ()
            found = await talked(server, frames, *idle)
            found.ends(outcome)
            is_read = "not json" not in frames
            same(not found.of("warning"), is_read, f"the warnings after {frames}: {found.text}")
        odd = [{"type": "chat.queued", "position": 0}, {"type": "chat.accepted", "taskId": "nope"}]
        places = [{"type": "chat.queued", "position": place} for place in (3, 3, 1)]
        found = await talked(server, [ACCEPTED, *odd, *places, BEGUN[1], DONE])
        found.ends("done")
        same(len(found.of("warning")), 2, "the warnings")
        same([update["position"] for update in found.of("queued")][-3:], [3, 3, 1], "the places")
        same(found.ended["taskId"], "task_fake0001", "the task")

async def recordings_of_real_servers_are_had_again(library):
    async with acolyte(library) as server:
        files = list(VECTORS.glob("*noauth-chat-*.jsonl"))
        same(len(files), 5, "the recordings")
        for file in files:
            frames = [line["msg"] for line in json_lines(file.read_text()) if (line["dir"], line["kind"]) == ("s2c", "text")]
            # Some ask more behind the chat.
            frames = frames[: next(at for at, frame in enumerate(frames, 1) if frame["type"] == "chat.done")]
            for frame in frames:
                del frame["id"]
            found = await talked(server, frames)
            # In one of them the model has failed.
            found.ends("failed" if "error" in frames[-1]["reply"] else "done")
            said = [frame["event"] for frame in frames if frame["type"] == "chat.event"]
            same([update["frame"] for update in found.of("step")], said, f"the events of {file.name}")
            # What old replies do not hold is filled in.
            same(found.ended["reply"], {"activeSkills": [], "outputStreamed": False} | frames[-1]["reply"], "the reply")
            same(found.of("warning"), [], "the warnings")

async def an_interrupt_aborts_the_chat_and_says_what_came_of_it(library):
    granted, denied = ({"type": "chat.abort.result", "aborted": is_so} for is_so in (True, False))
    async with acolyte(library) as server:
        for answers, outcome in (
            ([granted], "aborted"), ([ABORTED, granted], "aborted"), ([granted, DONE], "aborted"),
            ([DONE, denied], "done"), ([denied, DONE], "done"), ([DONE, granted], "done"), ([CUT], "closed"),
        ):
            starts = asyncio.create_task(answered(server, "chat.start", BEGUN))
            async with interrupted(server) as program:
                socket, chat = await starts
                abort = await asked(socket, "chat.abort")
                same(abort["payload"], {"requestId": chat["id"]}, "what is aborted")
                for answer in answers:
                    is_result = answer in (granted, denied)
                    frame = answer | {"requestId": chat["id"]} if is_result else answer
                    await play(socket, (abort if is_result else chat)["id"], [frame])
                found = await ran(program)
            # Whatever has come: the user has interrupted it.
            found.ends(outcome, 130)
            same(found.of("error"), [], "another outcome")
        starts = asyncio.create_task(answered(server, "chat.start", BEGUN))
        async with interrupted(server) as program:
            await starts
            await program.line("aborting")
            same(await program.stop(), 130, "the exit code")

async def what_is_no_server_is_refused_before_any_chat(library):
    for status in (
        STATUS | {"protocol_version": "2"}, {}, [], None, (401, "Unauthorized", "text/plain"),
        (500, "no", "text/plain"), (200, "<html>", "text/html"), (302, "", "text/plain"),
    ):
        async with acolyte(library, status) as server:
            found = await run(server)
            same((found.code, server.sockets.items), (3, []), f"the exit code for {status}: {found.text}")
            expect("401" not in str(status) or "ACOLYTE_API_KEY" in found.text, f"no word of a key: {found.text}")
    for refusal in (401, 404, 200):
        async with acolyte(library, refuse=(refusal, "no")) as server:
            same((await run(server)).code, 3, f"the exit code for {refusal}")

async def a_status_of_any_era_is_shown(library):
    old = {name: value for name, value in STATUS.items() if name != "provider_auth"} | {"tasks_detached": 0}
    for status in (old, STATUS | {"providers": ["another"], "capabilities": "", "odd": None, "more": {}}):
        async with acolyte(library, status) as server:
            (await talked(server, [DONE])).ends("done")
            found = await run(server, command="status")
            same((found.code, found.updates[0]["model"]), (0, "gpt-5-mini"), "the status")
            same((await run(server, "task_a", "--sse", command="status")).code, 2, "no task is asked for over HTTP")

async def a_task_is_shown(library):
    known = {"id": "task_a", "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00.123456Z"}
    answer = {"type": "task.status.result"}
    async with acolyte(library) as server:
        for frame, code in (
            (answer | {"task": known | {"state": "completed"}}, 0), (answer | {"task": None}, 1), (answer, 1),
            (answer | {"task": known | {"state": "later"}}, 3), (answer | {"task": 7}, 3),
            ({"type": "error", "error": {}}, 3), (CUT, 3),
        ):
            answering = answered(server, "task.status", [frame])
            found, (_, question) = await asyncio.gather(run(server, "task_a", command="status"), answering)
            same(question["payload"], {"taskId": "task_a"}, "the question")
            same(found.code, code, f"the exit code for {frame}: {found.text}")

async def keys_go_where_they_can_and_are_never_shown(library):
    for key, is_token in (("secret-1", True), ("a/b==", False), ("a b", False)):
        # Known servers select a name that was offered, and others select none.
        for protocol in ("acolyte.v1", None):
            async with acolyte(library, protocol=protocol) as server:
                running = run(server, "-vv", ACOLYTE_API_KEY=key)
                found, (socket, _) = await asyncio.gather(running, answered(server, "chat.start", [DONE]))
                found.ends("done")
                expect(key not in found.text, "the key is shown")
                same(server.asked[0][1]["authorization"], f"Bearer {key}", "the key of the status")
                offered = socket.headers.get("sec-websocket-protocol")
                same(offered, f"acolyte.v1, bearer.{key}" if is_token else None, "the subprotocols")
                expect(is_token or socket.headers["authorization"] == f"Bearer {key}", "no key")
    # What cannot be a header is told before anything is sent.
    async with acolyte(library) as server:
        found = await run(server, ACOLYTE_API_KEY="schlüssel")
        same((found.code, server.asked), (2, []), "the exit code, and what was asked")

async def a_conversation_goes_along(library):
    async with acolyte(library) as server:
        running = asyncio.create_task(run(server, command="chat", feed="one\ntwo\n/new\nthree\n"))
        socket = await server.accepted()
        said = []
        for number in range(3):
            frame = await asked(socket, "chat.start")
            said.append(frame["payload"]["request"])
            await play(socket, frame["id"], [*BEGUN, done(output=f"answer {number}")])
        found = await running
        same((found.code, len(found.of("ended"))), (0, 3), "the ends")
        same([it["message"] for it in said], ["one", "two", "three"], "what was asked")
        told = [[(item["role"], item["content"]) for item in it["history"]] for it in said]
        same(told, [[], [("user", "one"), ("assistant", "answer 0")], []], "the histories")
        expect(said[0]["sessionId"] == said[1]["sessionId"] != said[2]["sessionId"], "the sessions")
        same((await talked(server, [*BEGUN, done(error="x")], command="chat", feed="one\n")).code, 1, "the exit code")

@contextlib.asynccontextmanager
async def streaming(frames):
    """A server that answers a chat over HTTP with these frames, and hangs up."""

    async def serve(request):
        if request.path == "/base/v1/status":
            return web.json_response(STATUS)
        same((request.method, request.path), ("POST", "/base/v1/chat/stream"), "the request")
        check_request(await request.json())
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        for frame in frames:
            await answer.write(f"data: {json.dumps(frame)}\n\n".encode())
        return answer

    async with http_server(serve) as port:
        yield SimpleNamespace(http=f"http://127.0.0.1:{port}/base")

async def a_recorded_stream_is_had_again():
    file = VECTORS / "noauth-sse-happy.jsonl"
    frames = [line["data"] for line in json_lines(file.read_text()) if line["kind"] == "sse"]
    async with streaming(frames) as server:
        found = await run(server, "--sse")
        found.ends("done")
        same([update["frame"] for update in found.of("step")], frames[:-1], "the events")
        same(found.ended["reply"], frames[-1]["reply"], "the reply")

async def body(checks):
    await checks.run(a_recorded_stream_is_had_again)
    async with Python() as python, Node() as node:
        for check in (
            each_end_of_a_chat_has_its_exit_code, recordings_of_real_servers_are_had_again, a_status_of_any_era_is_shown,
            an_interrupt_aborts_the_chat_and_says_what_came_of_it, what_is_no_server_is_refused_before_any_chat,
            a_task_is_shown, keys_go_where_they_can_and_are_never_shown, a_conversation_goes_along,
        ):
            for library in (python, node):
                await checks.run(check, library)

main(body)
