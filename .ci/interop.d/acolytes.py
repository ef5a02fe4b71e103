"""Our `daemon run`, `chat` and `status` against an Acolyte server in Python, of every era and in every
disorder that is known. Whatever it answers, our program ends, with the right exit code."""

import asyncio
import json
import sys
from pathlib import Path

from aiohttp import web
from common import Checks, expect, title
from fakeacolyte import (
    ACCEPTED, BEGUN, DONE, REPLY, STARTED, STATUS, Fake, close, done, drop, event, run, talking, wait,
)

VECTORS = Path(sys.argv[2])
IDLE = ("--idle-timeout", "300ms")
USAGE = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
CALL = event("tool-call", toolCallId="c", toolName="t", args={})
# Name: frames after the start of a chat; how it ends, the exit code, and how many warnings come before.
SCRIPTS = {
    # Answers of all eras.
    "done alone": ([DONE], "done", 0, 0),
    "a reply of 0.18 to 0.21": ([*BEGUN, {"type": "chat.done", "reply": {"output": "fine", "state": "done", "model": "m"}}], "done", 0, 0),
    "a reply that awaits input": ([*BEGUN, {"type": "chat.done", "reply": {"output": "what?", "state": "awaiting-input", "model": "m"}}], "done", 0, 0),
    "a reply of 0.22": ([*BEGUN, done(usage=USAGE, toolCalls=["t"], modelCalls=2, activeSkills=[])], "done", 0, 0),
    "no outputStreamed": ([*BEGUN, {"type": "chat.done", "reply": {"output": "fine", "model": "m"}}], "done", 0, 0),
    "no model": ([*BEGUN, done(model="")], "done", 0, 0),
    "usage without a sum": ([*BEGUN, done(usage={"inputTokens": 1, "outputTokens": 2})], "done", 0, 0),
    "nulls in a reply": ([*BEGUN, done(error=None, usage=None, toolCalls=None, activeSkills=None)], "done", 0, 0),
    "unknown members": ([*BEGUN, done(more={"x": [1]})], "done", 0, 0),
    "bytes": ([b'{"id":"ID","type":"chat.done","reply":{"output":"fine","model":"m"}}'], "done", 0, 0),
    "the model has failed": ([*BEGUN, done(output="", error="it went wrong")], "failed", 1, 0),
    # Ends that nobody can read are ends.
    "a wrapped reply": ([*BEGUN, {"type": "chat.done", "payload": {"reply": REPLY}}], "failed", 1, 0),
    "no reply": ([*BEGUN, {"type": "chat.done"}], "failed", 1, 0),
    "a reply of null": ([*BEGUN, {"type": "chat.done", "reply": None}], "failed", 1, 0),
    "a text as reply": ([*BEGUN, {"type": "chat.done", "reply": "fine"}], "failed", 1, 0),
    "an error": ([*BEGUN, {"type": "chat.error", "errorMessage": "boom", "errorId": "err_a", "errorCode": "E_X", "error": {"code": "E_X"}}], "failed", 1, 0),
    "an error of few words": ([*BEGUN, {"type": "chat.error", "errorMessage": "boom"}], "failed", 1, 0),
    "an error with a null id": ([*BEGUN, {"type": "chat.error", "errorMessage": "boom", "errorId": None}], "failed", 1, 0),
    "an error with a bad id": ([*BEGUN, {"type": "chat.error", "errorMessage": "boom", "errorId": "ERR-1"}], "failed", 1, 0),
    "an error in error": ([*BEGUN, {"type": "chat.error", "error": "boom"}], "failed", 1, 0),
    "an error without words": ([*BEGUN, {"type": "chat.error"}], "failed", 1, 0),
    "a wrapped error": ([*BEGUN, {"type": "chat.error", "payload": {"errorMessage": "boom"}}], "failed", 1, 0),
    # Refusals.
    "refused": ([{"type": "error", "error": "RPC queue is full (25 queued). Try again shortly."}], "refused", 3, 0),
    "refused with an object": ([{"type": "error", "error": {"message": "no"}}], "refused", 3, 0),
    "refused without a word": ([{"type": "error"}], "refused", 3, 0),
    "refused by an unknown id": (['{"id":"rpc_unknown","type":"error","error":"Invalid RPC message"}'], "refused", 3, 0),
    "refused after it began": ([*BEGUN, {"type": "error", "error": "no"}], "failed", 1, 0),
    # What goes on.
    "an unknown id later": ([*BEGUN, '{"id":"rpc_unknown","type":"error","error":"x"}', DONE], "done", 0, 0),
    "an unknown type": ([ACCEPTED, {"type": "chat.later", "x": 1}, STARTED, DONE], "done", 0, 0),
    "an unknown event": ([*BEGUN, event("later", x=1), DONE], "done", 0, 0),
    "garbage": ([*BEGUN, "not json", "", "[]", "7", "{}", '{"id":7,"type":"chat.done"}', DONE], "done", 0, 0),
    "what is not valid text": ([*BEGUN, b"\xff\xfe", DONE], None, None, None),
    "other ids": ([*BEGUN, '{"id":"rpc_zzzz","type":"chat.done","reply":{"output":"no","model":"m"}}', DONE], "done", 0, 0),
    "a stray answer to an abort": ([ACCEPTED, {"type": "chat.abort.result", "requestId": "rpc_a", "aborted": True}, DONE], "done", 0, 1),
    "another answer": ([ACCEPTED, {"type": "status.result", "status": STATUS}, DONE], "done", 0, 1),
    "no id of a task": ([{"type": "chat.accepted", "taskId": "nope"}, STARTED, DONE], "done", 0, 1),
    "place 0": ([ACCEPTED, {"type": "chat.queued", "position": 0}, STARTED, DONE], "done", 0, 1),
    "no place": ([ACCEPTED, {"type": "chat.queued"}, {"type": "chat.queued", "position": -1}, STARTED, DONE], "done", 0, 2),
    "an odd usage": ([*BEGUN, event("usage", inputTokens=1.5, outputTokens=-2), DONE], "done", 0, None),
    "a status of texts": ([*BEGUN, event("status", state="running"), event("status", message="x"), DONE], "done", 0, None),
    "a status that waits": ([*BEGUN, event("status", state={"kind": "awaiting-input"}), DONE], "done", 0, 0),
    "a text as output": ([*BEGUN, CALL, event("tool-output", toolCallId="c", toolName="t", content="s"), DONE], "done", 0, None),
    "no arguments": ([*BEGUN, event("tool-call", toolCallId="c", toolName="t"), event("tool-result", toolCallId="c", toolName="t"), DONE], "done", 0, 0),
    "a result without its call": ([*BEGUN, event("tool-result", toolCallId="nope", toolName="t"), DONE], "done", 0, 1),
    "an output without its call": ([*BEGUN, event("tool-output", toolCallId="nope", toolName="t", content={"kind": "text", "text": "x"}), DONE], "done", 0, 1),
    "an unknown part": ([*BEGUN, CALL, event("tool-output", toolCallId="c", toolName="t", content={"kind": "later"}), DONE], "done", 0, 0),
    "an error that is no end": ([*BEGUN, event("error", errorMessage="in stream"), DONE], "done", 0, 0),
    "an error and its end": ([*BEGUN, event("error", errorMessage="in stream"), {"type": "chat.error", "errorMessage": "end"}], "failed", 1, 0),
    "no event": ([*BEGUN, {"type": "chat.event"}, {"type": "chat.event", "event": None}, {"type": "chat.event", "event": "x"}, DONE], "done", 0, 3),
    "both lists": ([*BEGUN, *(event(it, groupId="g", groupTitle="t", items=[{"id": "1", "label": "l", "status": "done", "order": 0}]) for it in ("checklist", "tasklist")), DONE], "done", 0, 0),
    "notices and skills": ([*BEGUN, event("notice", level="warn", message="n"), event("skill-activated", skill={"name": "s", "instructions": "i"}), event("skill-deactivated", name="s"), DONE], "done", 0, 0),
    "twice the end": ([*BEGUN, DONE, done(output="other"), {"type": "chat.error", "errorMessage": "x"}], "done", 0, 0),
    "slow": ([wait(0.2), ACCEPTED, wait(0.2), STARTED, wait(0.2), event("text-delta", text="x"), wait(0.2), DONE], "done", 0, 0),
    "far too deep": ([*BEGUN, '{"id":"ID","type":"chat.event","event":' + "[" * 5000 + "]" * 5000 + "}", DONE], "done", 0, None),
    # No end at all.
    "closed at once": ([close(1000)], "closed", 1, 0),
    "closed when accepted": ([ACCEPTED, close(1011)], "closed", 1, 0),
    "closed while waiting": ([ACCEPTED, {"type": "chat.queued", "position": 2}, close(1001)], "closed", 1, 0),
    "closed while running": ([*BEGUN, close(1000)], "closed", 1, 0),
    "dropped at once": ([drop], "closed", 1, 0),
    "dropped in a tool": ([*BEGUN, CALL, drop], "closed", 1, 0),
    "silence at once": ([], "timed-out", 1, 0),
    "silence when accepted": ([ACCEPTED], "timed-out", 1, 0),
    "silence in a tool": ([*BEGUN, CALL], "timed-out", 1, 0),
    "only what is wrapped": ([{"payload": ACCEPTED}, {"payload": DONE}], "timed-out", 1, None),
}


async def script(frames, outcome, code, warnings):
    async with Fake(talking(*frames)).serve() as fake:
        ran = await run(fake, *IDLE)
    ended = ran.ended
    if outcome:
        expect((ended["outcome"], ran.code) == (outcome, code), f"{ran.code} {ran.lines}")
        expect(("reply" in ended) == (outcome == "done" or "error" in ended.get("reply", {})), ended)
        expect(ended["mayHaveRun"] == (outcome != "refused"), ended)
    if warnings is not None:
        expect(len(ran.of("warning")) == warnings, ran.lines)


async def recordings():
    """What known servers have really said, with the ids of our requests."""
    for name in ("noauth-chat-happy", "noauth-chat-tool-call", "noauth-chat-tasklist", "v0210-noauth-chat-happy",
                 "v0210-noauth-chat-tasklist"):
        lines = [json.loads(line) for line in (VECTORS / f"{name}.jsonl").read_text().splitlines()]
        frames = [it["msg"] for it in lines if (it["dir"], it["kind"]) == ("s2c", "text")]
        frames = [{key: value for key, value in frame.items() if key != "id"} for frame in frames]
        # Some ask more behind the chat.
        frames = frames[:next(at for at, frame in enumerate(frames, 1) if frame["type"] == "chat.done")]
        async with Fake(talking(*frames)).serve() as fake:
            ran = await run(fake, *IDLE)
        # In one of them the model has failed.
        expected = (1, "failed") if "error" in frames[-1]["reply"] else (0, "done")
        expect((ran.code, ran.ended["outcome"]) == expected and not ran.of("warning"), f"{name}: {ran.lines}")
        told = [frame["event"] for frame in frames if frame["type"] == "chat.event"]
        expect([it["event"] for it in ran.of("event")] == told, f"{name}: another event")
        # What replies of old do not hold is filled in.
        reply = {"activeSkills": [], "outputStreamed": False} | frames[-1]["reply"]
        expect(ran.ended["reply"] == reply, f"{name}: another reply")


async def places_are_told():
    queued = [{"type": "chat.queued", "position": place} for place in (3, 3, 1)]
    async with Fake(talking(ACCEPTED, *queued, STARTED, DONE)).serve() as fake:
        ran = await run(fake)
    expect([it["position"] for it in ran.of("queued")] == [3, 3, 1], ran.lines)
    expect(ran.ended["taskId"] == "task_fake0001", ran.ended)


async def aborts():
    """Ctrl-C: the server says this, and so the chat ends."""
    granted, denied = ({"type": "chat.abort.result", "aborted": it} for it in (True, False))
    error = {"type": "chat.error", "errorMessage": "aborted", "errorCode": "E_ABORTED"}
    for frames, outcome, code in (
        ([granted], "aborted", 130), ([error, granted], "aborted", 130), ([granted, DONE], "aborted", 130),
        ([granted, event("text-delta", text="late"), error], "aborted", 130), ([DONE, denied], "done", 0),
        ([denied, DONE], "done", 0), ([DONE, granted], "done", 0), ([error], "aborted", 130),
        ([{"type": "error", "error": "no"}, DONE], "done", 0), ([drop], "closed", 1),
    ):
        async def answer(line):
            await line.expect("chat.start")
            await line.play(BEGUN)
            abort = await line.expect("chat.abort")
            for frame in frames:
                if frame in (granted, denied):
                    await line.send(frame | {"requestId": line.id}, abort["id"])
                elif frame.__class__ is dict and frame["type"] == "error":
                    await line.send(frame, abort["id"])
                else:
                    await line.play([frame])

        async with Fake(answer).serve() as fake:
            ran = await run(fake, signals=1)
        told = [it if it is drop else it["type"] for it in frames]
        expect((ran.ended["outcome"], ran.code) == (outcome, code), f"{told}: {ran.code} {ran.lines}")
        expect("late" not in ran.text, "more after the end")


async def a_second_interrupt_ends_at_once():
    async with Fake(talking(*BEGUN)).serve() as fake:
        ran = await run(fake, signals=2, within=5)
    expect(ran.code == 130, f"{ran.code} {ran.lines}")


async def servers_of_another_kind():
    """What is no server for us is refused before any chat: exit code 3."""
    def text(status, words, kind="text/plain"):
        return web.Response(status=status, text=words, content_type=kind)

    for status in (
        STATUS | {"protocol_version": "2"}, STATUS | {"protocol_version": 1}, {}, [], "x", None,
        {name: value for name, value in STATUS.items() if name != "protocol_version"},
        text(401, "Unauthorized"), text(404, "Not Found"), text(500, "oops"), text(200, "<html>", "text/html"),
        text(200, "{"), text(302, ""), text(204, ""),
    ):
        async with Fake(talking(DONE), status=status).serve() as fake:
            ran = await run(fake)
            expect(ran.code == 3 and not fake.lines, f"{status}: {ran.code} {ran.lines}")
            expect("401" not in str(status) or "key" in ran.words, ran.words)
    for upgrade in (text(401, "Unauthorized"), text(404, "Not Found"), text(200, "fine"), text(400, "x")):
        async with Fake(upgrade=upgrade).serve() as fake:
            ran = await run(fake)
            expect(ran.code == 3, f"{upgrade}: {ran.code} {ran.lines}")
    fake.url = "http://127.0.0.1:1"
    expect((await run(fake)).code == 3, "nobody is there")


async def a_status_of_any_era():
    old = {name: value for name, value in STATUS.items() if name != "provider_auth"} | {"tasks_detached": 0}
    for status in (STATUS, old, STATUS | {"cloud_user": "x", "resources.skills.invalid": 2, "odd": None, "more": {}},
                   STATUS | {"providers": ["another"], "capabilities": ""}):
        async with Fake(talking(DONE), status=status).serve() as fake:
            ran = await run(fake)
            expect(ran.code == 0, f"{status}: {ran.code} {ran.lines}")
            ran = await run(fake, command="status")
            expect(ran.code == 0 and ran.updates[0]["model"] == "gpt-5-mini", ran.lines)
            ran = await run(fake, "task_a", "--sse", command="status")
            expect(ran.code == 2, "a task is asked for over HTTP")


async def tasks():
    task = {"id": "task_a", "state": "completed", "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00.123456Z"}
    answer = {"type": "task.status.result"}
    for frame, code in (
        (answer | {"task": task}, 0), (answer | {"task": None}, 0), (answer | {"task": task | {"state": "later"}}, 3),
        (answer, 0), (answer | {"task": 7}, 3), (answer | {"task": {"id": "x"}}, 3),
        ({"type": "error", "error": "no"}, 3), ({"type": "error", "error": {}}, 3), (drop, 3),
    ):
        async def script(line):
            asked = await line.expect("task.status")
            line.id = asked["id"]
            await line.play([frame])

        async with Fake(script).serve() as fake:
            ran = await run(fake, "task_a", command="status")
        expect(ran.code == code, f"{frame}: {ran.code} {ran.lines}")


async def keys_go_where_they_can():
    for key, is_token in (("secret-1", True), ("a/b==", False), ("a b", False)):
        for protocol in (True, False):
            async def script(line):
                # Who is not told a name that was offered may leave.
                if await line.next():
                    await line.play([DONE])

            async with Fake(script, protocol=protocol).serve() as fake:
                ran = await run(fake, ACOLYTE_API_KEY=key)
                status, rpc = fake.requests
                expect(not any(key in line for line in ran.lines), "the key is shown")
                expect(status.headers["Authorization"] == f"Bearer {key}", status.headers)
                offered = rpc.headers.get("Sec-WebSocket-Protocol")
                expect(offered == (f"acolyte.v1, bearer.{key}" if is_token else None), offered)
                expect(is_token or "Authorization" in rpc.headers, "no key")
                # Known servers answer with a name that was offered; who does not is no server for us.
                expect(ran.code == (0 if protocol or not is_token else 3), f"{ran.code} {ran.lines}")


    # What cannot be a header is told before anything is sent.
    async with Fake(talking(DONE)).serve() as fake:
        ran = await run(fake, ACOLYTE_API_KEY="schlüssel")
        expect(ran.code == 2 and not fake.requests, f"{ran.code} {ran.lines}")


async def a_conversation_goes_along():
    said = []

    async def script(line):
        for number in range(3):
            await line.expect("chat.start")
            said.append(line.request)
            await line.play([ACCEPTED, STARTED, done(output=f"answer {number}")])

    async with Fake(script).serve() as fake:
        ran = await run(fake, command="chat", lines=["one", "two", "/new", "three"])
    expect(ran.code == 0 and len(ran.of("ended")) == 3, ran.lines)
    expect([it["message"] for it in said] == ["one", "two", "three"], said)
    told = [[(item["role"], item["content"]) for item in it["history"]] for it in said]
    expect(told == [[], [("user", "one"), ("assistant", "answer 0")], []], told)
    expect(said[0]["sessionId"] == said[1]["sessionId"] != said[2]["sessionId"], "the session")
    async with Fake(talking(*BEGUN, done(error="x"))).serve() as fake:
        ran = await run(fake, command="chat", lines=["one"])
    expect(ran.code == 1, f"{ran.code} {ran.lines}")


def data(value):
    return f"data: {json.dumps(value)}\n\n"


END = data({"type": "done", "reply": REPLY})
DELTA = data({"type": "text-delta", "text": "x"})
STREAMS = {
    "a stream": ([DELTA, END], "done", 0, 0),
    "a reply of 0.21": ([data({"type": "done", "reply": {"output": "x", "state": "done", "model": "m"}})], "done", 0, 0),
    "in small pieces": ([*(DELTA + END)], "done", 0, 0),
    "other ends of lines": ([(": hi\n\n" + DELTA + END).replace("\n", "\r\n")], "done", 0, 0),
    "fields that nobody sends": (["\ufeffretry: 1\nid: 7\nevent: message\n" + DELTA + ":\n\n:\n\n" + END], "done", 0, 0),
    "data of two lines": (['data: {"type":"text-delta",\ndata: "text":"x"}\n\n' + END], "done", 0, 0),
    "a bad frame": ([DELTA, "data: {oops\n\n", END], "done", 0, 1),
    "an unknown frame": ([data({"type": "later"}), END], "done", 0, 0),
    "an error": ([DELTA, data({"type": "error", "errorMessage": "boom", "errorId": "err_a", "errorCode": "E_X", "error": {}})], "failed", 1, 0),
    "an error of few words": ([data({"type": "error"})], "failed", 1, 0),
    "a model that failed": ([data({"type": "done", "reply": REPLY | {"error": "x"}})], "failed", 1, 0),
    "an end that is none": ([data({"type": "done"})], "failed", 1, 0),
    "no end": ([DELTA], "closed", 1, 0),
    "an empty stream": ([], "closed", 1, 0),
    "half an end": ([DELTA, END[:-8]], "closed", 1, None),
    "dropped": ([DELTA, drop], "closed", 1, None),
    "silence": ([DELTA, wait(2)], "timed-out", 1, 0),
    "only comments": ([*[":\n\n", wait(0.05)] * 3, END], "done", 0, 0),
    "refused": (400, "refused", 3, 0),
}


async def stream(pieces, outcome, code, warnings):
    if pieces == 400:
        pieces = web.Response(status=400, text="Invalid request shape")
    async with Fake(stream=pieces).serve() as fake:
        ran = await run(fake, "--sse", *IDLE)
    expect((ran.ended["outcome"], ran.code) == (outcome, code), f"{ran.code} {ran.lines}")
    expect(warnings is None or len(ran.of("warning")) == warnings, ran.lines)


async def a_stream_can_be_aborted():
    async with Fake(stream=[DELTA, wait(5)]).serve() as fake:
        ran = await run(fake, "--sse", signals=1, after="text-delta", within=4)
    expect((ran.ended["outcome"], ran.code) == ("aborted", 130), f"{ran.code} {ran.lines}")


async def recorded_streams():
    lines = [json.loads(line) for line in (VECTORS / "noauth-sse-happy.jsonl").read_text().splitlines()]
    found = [it["data"] for it in lines if it["kind"] == "sse"]
    async with Fake(stream=[data(it) for it in found]).serve() as fake:
        ran = await run(fake, "--sse")
    expect(ran.code == 0 and [it["event"] for it in ran.of("event")] == found[:-1], ran.lines)
    expect(ran.ended["reply"] == found[-1]["reply"], ran.ended)


async def main():
    checks = Checks()
    # Mostly they wait for programs to start: several at once.
    room = asyncio.Semaphore(6)
    wanted = sys.argv[3:]

    async def one(name, check):
        async with room:
            await checks.run(name, check)

    found = [(f"a chat: {name}", script(*it)) for name, it in SCRIPTS.items()]
    found += [(f"a stream: {name}", stream(*it)) for name, it in STREAMS.items()]
    found += [(title(check), check()) for check in (
        recordings, places_are_told, aborts, a_second_interrupt_ends_at_once, servers_of_another_kind,
        a_status_of_any_era, tasks, keys_go_where_they_can, a_conversation_goes_along, a_stream_can_be_aborted,
        recorded_streams,
    )]
    if wanted:
        found = [(name, check) if name in wanted else check.close() for name, check in found]
    await asyncio.gather(*(one(*it) for it in found if it))
    checks.finish()


asyncio.run(main())
