"""Clients of Python's `websockets` and aiohttp, and of Node's `ws` and `fetch`, against our Acolyte daemon."""
# Needs: node.

import asyncio
import contextlib
import json
import os
import random
import signal
from pathlib import Path

import aiohttp
import eras
from harness import Failed, call, expect, json_lines, main, same, until
from sockets import Node, Python, Refused, closes
from talks import daemon, frames_of, request

VECTORS = Path(__file__).parents[3] / "acolyte-proto/tests/vectors"
SEED = int(os.environ.get("SEED", "1"))
KEY = "test-key-123"
READ = call("file-read", path="a.txt")
LIST = call("checklist", title="Plan", items="[~] read a.txt")
LATER = call("file-create", path="later.txt", content="no")
WORK = (
    READ, call("file-search", query="two"), "!call file-find", call("file-find", glob="*.txt"),
    call("file-create", path="b/c", content="hello"), call("file-edit", path="b/c", find="hello", replace="bye"),
    *(call("shell-run", command=line) for line in ("echo out; echo err >&2", "true", "exit 3", "seq 2000")),
    call("file-read", path="nope"), call("file-read", path="../x"), "!call nope {}", "!call file-read {oops",
    "!call file-read {}", f"{READ}\n!call nope {{}}", "!think hard", "!fail told so", "!break",
    f"{LIST}\n{READ}", "hi", "", "grüße 🦀 \u2028 \" \\ \0",
)
KINDS = {
    "chat.accepted", "chat.started", "chat.done", "chat.error", "status", "reasoning", "text-delta", "tool-call",
    "tool-result", "usage", "checklist", "skill-activated", "file-header", "scope-header", "edit-header", "diff",
    "shell-output",
}

def said(kind, **members):
    return {"id": "rpc_a", "type": kind} | members

def done(**reply):
    return said("chat.done", reply={"output": "x", "outputStreamed": True, "model": "m"} | reply)

def task(date):
    known = {"id": "task_a", "state": "running", "createdAt": date, "updatedAt": date}
    return said("task.status.result", task=known)

async def the_judge_knows_what_clients_refuse():
    """What clients are known to hang on or to drop. Or else everything else here proves nothing."""
    usage = {"inputTokens": 1, "outputTokens": 2}
    whole = usage | {"totalTokens": 3}
    for good in (done(), done(usage=whole), said("chat.error", errorMessage="x"), task("2026-01-01T00:00:00.123Z")):
        eras.accepted("message", good)
    for bad in (
        done(outputStreamed=None), done(model=""), done(usage=usage), done(error=None), done(state="done"),
        said("chat.error", errorMessage="x", errorId=None), said("chat.error", errorMessage="x", errorId="err_A"),
        said("chat.error", error="x"), task("2026-01-01T00:00:00.123+00:00"), task("2026-01-01T00:00:00"),
        said("task.status.result"), said("chat.queued", position=0), {"id": "rpc_A", "type": "chat.started"},
        {"type": "chat.started"}, said("chat.accepted", taskId="rpc_a"), said("chat.done", payload=done()),
        *(said("chat.event", event=event) for event in (
            {"type": "tasklist"}, {"type": "later"}, {"type": "usage", "inputTokens": 1.5, "outputTokens": 0},
            {"type": "status", "state": "running"},
            {"type": "tool-output", "toolCallId": "c", "toolName": "t", "content": "text"},
        )),
    ):
        with contextlib.suppress(Failed):
            eras.accepted("message", bad)
            raise AssertionError(f"it accepts {bad}")
    for file in VECTORS.glob("*auth-chat*.jsonl"):
        # What a server said suits the clients of its time, but for what it lacks that others want.
        judge = eras.era(eras.ERAS[0 if file.name.startswith("v0210") else 2])["message"]
        for line in json_lines(file.read_text()):
            if (line["dir"], line["kind"]) == ("s2c", "text"):
                line["msg"].get("reply", {}).setdefault("outputStreamed", True)
                judge(line["msg"], file.name)

async def all_that_is_said_over_a_websocket_fits_clients_of_all_eras(library):
    async with daemon() as served, served.talk(library) as talk:
        seen = set()
        chats = [await talk.chat(words) for words in WORK]
        for more, code in (
            ({"history": [None, {"role": "user"}, 7]}, None), ({"workspace": "/nowhere"}, "E_SANDBOX_VIOLATION"),
            ({"activeSkills": [{"name": "s", "instructions": "i", "more": 1}]}, None),
            ({"model": ""}, "E_MODEL_NOT_CONFIGURED"), ({"model": "gpt-5-mini"}, "E_MODEL_PROVIDER_UNAVAILABLE"),
        ):
            chats.append(await talk.chat("hi", **more))
            same(chats[-1].code, code, f"the code for {more}")
        for chat in chats:
            for frame in chat.frames:
                inner = frame.get("event", {})
                seen |= {frame["type"], inner.get("type"), inner.get("content", {}).get("kind")}
            state = "completed" if chat.last["type"] == "chat.done" else "failed"
            same(await talk.state(chat.task), state, f"the task of {chat.frames}")
        expect(KINDS <= seen, f"not seen: {KINDS - seen}")
        await talk.socket.send("{")
        refusal = {"id": "rpc_unknown", "type": "error", "error": "Invalid RPC message"}
        same(await talk.next("rpc_unknown"), refusal, "the answer to what is no JSON")
        told = (await talk.ask("status.get"))["status"]
        status, _, text = await library.fetch(f"{served.http}/v1/status?x=1")
        eras.accepted("status", json.loads(text))
        same((status, json.loads(text)), (200, told), "the status over HTTP")
        same(told["capabilities"], "ask-first, error.structured, stream.sse, workspace.path", "the capabilities")
        same(await talk.socket.close(4001, "bye"), (4001, "bye"), "the close")

async def all_that_is_streamed_fits_too(library):
    async with daemon() as served:
        for words in WORK:
            # Bodies may be sloppier than requests over a WebSocket.
            frames = await served.stream(library, words, sessionId="not checked", extra=1)
        same(frames[-1]["reply"]["output"], WORK[-1], "the last answer")
        same((await served.stream(library, "hi", workspace="/nowhere"))[-1]["type"], "error", "another folder")

async def bodies_may_come_in_chunks_and_after_a_hundred():
    async def letters():
        for letter in json.dumps(request("hi")):
            yield letter.encode()

    async with daemon() as served, aiohttp.ClientSession() as session:
        for more in ({"data": letters()}, {"data": letters(), "expect100": True}):
            async with session.post(f"{served.http}/v1/chat/stream", **more) as answer:
                same(frames_of(await answer.text())[-1]["reply"]["output"], "hi", "the answer")

def commands():
    """The command lines of all processes."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes().decode(errors="replace").replace("\0", " ")

class Work:
    """Two calls: the first takes very long, and the second must not be reached."""

    def __init__(self, served, number):
        self.served = served
        self.mark = f"sleep 3671.{os.getpid()}{number}"
        self.plan = f"{call('shell-run', command=self.mark)}\n{LATER}"

    async def has_begun(self):
        await until(lambda: any(self.mark in command for command in commands()), "the command")

    async def has_ended(self, talk):
        await until(lambda: not any(self.mark in command for command in commands()), "the end of the command")
        same((await talk.chat("hi")).output, "hi", "the next chat")
        expect(not list(self.served.folder.glob("late*")), "the work has gone on")

async def an_aborted_chat_does_nothing_more_and_the_next_one_starts(library):
    async with daemon() as served, served.talk(library) as talk:
        work = Work(served, 1)
        chat, second = await talk.start(work.plan), await talk.start("chat two")
        await chat.until("tool-call")
        await work.has_begun()
        same(await talk.state(chat.task), "running", "the state")
        expect(await talk.abort(chat), "the abort")
        same((await chat.end()).code, "E_ABORTED", "the end")
        same((await second.end()).output, "chat two", "the next one")
        await work.has_ended(talk)
        same((await talk.state(chat.task), await talk.abort(chat)), ("cancelled", False), "it has ended")
        same((await (await talk.start("once more", own_id=chat.id)).end()).output, "once more", "its id is free")

async def a_lost_line_ends_its_chats(library):
    async with daemon() as served, served.talk(library) as watch:
        work = Work(served, 2)
        async with served.talk(library) as talk:
            chat, second = await talk.start(work.plan), await talk.start(LATER)
            await chat.until("tool-call")
            await second.until("chat.queued")
            await work.has_begun()
        for task_id in (chat.task, second.task):
            while await watch.state(task_id) != "cancelled":
                pass
        await work.has_ended(watch)

async def a_stream_that_is_left_ends_its_work(library):
    async with daemon() as served, served.talk(library) as watch, aiohttp.ClientSession() as session:
        work = Work(served, 3)
        async with session.post(f"{served.http}/v1/chat/stream", json=request(work.plan)) as answer:
            await work.has_begun()
            answer.close()
        await work.has_ended(watch)

async def keys_come_in_a_header_or_a_subprotocol(library):
    bearer, header = f"bearer.{KEY}", {"authorization": f"Bearer {KEY}"}
    async with daemon(ACOLYTE_API_KEY=KEY) as served:
        for protocols, headers, selected in (
            ([bearer], {}, bearer), (["acolyte.v1", bearer], {}, "acolyte.v1"), ([], header, ""),
            (["acolyte.v1"], header, "acolyte.v1"), ([bearer], {"authorization": "Bearer nope"}, bearer),
            ([], {}, None), (["acolyte.v1"], {}, None), ([f"{bearer}x"], {}, None), ([bearer.title()], {}, None),
            ([], {"authorization": f"bearer {KEY}"}, None), ([], {"authorization": KEY}, None),
        ):
            try:
                async with served.talk(library, *protocols, headers=headers) as talk:
                    same(talk.socket.protocol, selected, f"the subprotocol for {protocols} {headers}")
                    same((await talk.chat("hi")).output, "hi", "the answer")
            except Refused as answer:
                same((answer.status, answer.text, selected), (401, "Unauthorized", None), f"for {protocols} {headers}")
        for headers, status in (({}, 401), (header, 200), ({"sec-websocket-protocol": bearer}, 200)):
            same((await library.fetch(f"{served.http}/v1/status", headers=headers))[0], status, f"with {headers}")
        work = call("shell-run", command="env; cat /proc/$PPID/environ")
        text = json.dumps(await served.stream(library, work, headers=header))
        expect(KEY not in text and not served.program.find(KEY), "the key is shown")

async def requests_come_in_pieces_and_in_bytes(library):
    async with daemon() as served, served.talk(library, "x", "y", compression="deflate") as talk:
        same((talk.socket.protocol, talk.socket.has_extensions), ("x", False), "the first subprotocol, no extension")
        start = {"id": "rpc_pieces", "type": "chat.start", "payload": {"request": request("grüße 🦀")}}
        await talk.socket.send_pieces(*json.dumps(start, ensure_ascii=False))
        await talk.socket.ping()
        while (frame := await talk.next("rpc_pieces"))["type"] != "chat.done":
            pass
        same(frame["reply"]["output"], "grüße 🦀", "the answer")
        await talk.socket.send(b'{"id":"rpc_bytes","type":"status.get"}')
        same((await talk.next("rpc_bytes"))["type"], "status.result", "bytes")
        await talk.socket.send({"id": "rpc_large", "type": "status.get", "more": "x" * (15 << 20)})
        same((await talk.next("rpc_large"))["type"], "status.result", "15 MiB")
        await talk.socket.send("x" * (17 << 20))
        await closes(talk.socket, 1009)

async def aborts_may_be_silent_and_lists_may_have_their_newer_name(library):
    async with daemon("--silent-aborts", "--list-name", "tasklist") as served:
        socket = await library.connect(served.rpc)
        for number, words in enumerate(("!slow 5000 20", "never", LIST)):
            start = {"type": "chat.start", "payload": {"request": request(words)}}
            await socket.send({"id": f"rpc_{number}"} | start)
        await socket.next(lambda frame: frame.get("event", {}).get("type") == "text-delta", "a word")
        for number in (1, 0):
            abort = {"type": "chat.abort", "payload": {"requestId": f"rpc_{number}"}}
            await socket.send({"id": "rpc_abort"} | abort)
        await socket.next(lambda frame: frame.get("event", {}).get("type") == "tasklist", "a list of the third")
        kinds = [{frame["type"] for frame in socket.frames.items if frame["id"] == f"rpc_{at}"} for at in (0, 1)]
        same(kinds[1], {"chat.accepted", "chat.queued"}, "all that is said of the one that waited")
        expect(not kinds[0] & {"chat.done", "chat.error"}, f"the one that ran has an end: {kinds[0]}")

async def a_shutdown_lets_what_runs_come_to_its_end(library, way):
    async with daemon(ACOLYTE_API_KEY=KEY) as served:
        headers = {"authorization": f"Bearer {KEY}"}
        async with served.talk(library, headers=headers) as talk:
            chat, second = await talk.start("!slow 50 20"), await talk.start("chat two")
            await chat.until("chat.started")
            if way == "signal":
                served.program.signal(signal.SIGTERM)
            else:
                answer = await library.fetch(f"{served.http}/v1/admin/shutdown", "POST", headers)
                same((answer[0], answer[2]), (200, '{"ok":true,"shutdown":true}'), "the answer")
            expect((await chat.end()).output.endswith("50"), f"its end: {chat.last}")
            await second.end()
            await closes(talk.socket, 1001)
        same(await served.program.end(), 0, "the exit code")

async def any_schedule_keeps_the_order(python, node):
    async def some(library, seed):
        rng = random.Random(seed)
        async with served.talk(library) as talk:
            chats = []
            for _ in range(60):
                what = rng.random()
                if what < 0.5:
                    work = call("shell-run", command="sleep 0.05")
                    words = ("!slow 5 10", READ, "hi", work, f"{LIST}\n{READ}", "!fail")
                    chats.append(await talk.start(rng.choice(words)))
                elif what < 0.8 and chats:
                    payload = {"requestId": rng.choice(chats[-8:]).id}
                    await talk.socket.send({"id": f"rpc_a{len(chats)}", "type": "chat.abort", "payload": payload})
                else:
                    await talk.ask("status.get")
            for chat in chats:
                await chat.end()
            same((await talk.chat("hi")).output, "hi", "the last one")

    async with daemon() as served:
        await asyncio.gather(*(some((python, node)[at % 2], f"{SEED}-{at}") for at in range(12)))
        status = json.loads((await python.fetch(f"{served.http}/v1/status"))[2])
        same((status["tasks_running"], status["rpc_queue_length"]), (0, 0), "what is left")

async def body(checks):
    print(f"SEED={SEED}")
    await checks.run(the_judge_knows_what_clients_refuse)
    async with Python() as python, Node() as node:
        for library in (python, node):
            await checks.each((
                all_that_is_said_over_a_websocket_fits_clients_of_all_eras, all_that_is_streamed_fits_too,
                an_aborted_chat_does_nothing_more_and_the_next_one_starts, a_lost_line_ends_its_chats,
                keys_come_in_a_header_or_a_subprotocol, requests_come_in_pieces_and_in_bytes,
                aborts_may_be_silent_and_lists_may_have_their_newer_name,
            ), library)
            for way in ("signal", "request"):
                await checks.run(a_shutdown_lets_what_runs_come_to_its_end, library, way)
        await checks.run(a_stream_that_is_left_ends_its_work, python)
        await checks.run(bodies_may_come_in_chunks_and_after_a_hundred)
        await checks.run(any_schedule_keeps_the_order, python, node)

main(body)
