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
CODES = {"done": 0, "failed": 1, "refused": 3, "closed": 1, "timed-out": 1}
USAGE = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
SAID = {"output": "fine", "model": "m"}
CALL = event("tool-call", toolCallId="c", toolName="t", args={})
TEXT = {"kind": "text", "text": "x"}
ITEMS = [{"id": "1", "label": "l", "status": "done", "order": 0}]
LISTS = [event(kind, groupId="g", groupTitle="t", items=ITEMS) for kind in ("checklist", "tasklist")]
FULL = "RPC queue is full (25 queued). Try again shortly."


def reply(value):
    return {"type": "chat.done", "reply": value}


def error(**members):
    return {"type": "chat.error"} | members


def refusal(**members):
    return {"type": "error"} | members


def queued(place):
    return {"type": "chat.queued", "position": place}


def output(content, id="c"):
    return event("tool-output", toolCallId=id, toolName="t", content=content)


def result(id="c"):
    return event("tool-result", toolCallId=id, toolName="t")


UNKNOWN = '{"id":"rpc_unknown","type":"error","error":"Invalid RPC message"}'
OTHER = '{"id":"rpc_zzzz","type":"chat.done","reply":{"output":"no","model":"m"}}'
DEEP = '{"id":"ID","type":"chat.event","event":' + "[" * 5000 + "]" * 5000 + "}"
# By how they end: what a server says to a chat after its start.
ENDS = {
    "done": {
        # Answers of all eras, and what has made other clients hang.
        "done alone": [DONE],
        "a reply of 0.18 to 0.21": [*BEGUN, reply(SAID | {"state": "done"})],
        "a reply that awaits input": [*BEGUN, reply(SAID | {"state": "awaiting-input"})],
        "a reply of 0.22": [*BEGUN, done(usage=USAGE, toolCalls=["t"], modelCalls=2, activeSkills=[])],
        "no outputStreamed": [*BEGUN, reply(SAID)],
        "no model": [*BEGUN, done(model="")],
        "usage without a sum": [*BEGUN, done(usage={"inputTokens": 1, "outputTokens": 2})],
        "nulls in a reply": [*BEGUN, done(error=None, usage=None, toolCalls=None, activeSkills=None)],
        "unknown members": [*BEGUN, done(more={"x": [1]})],
        "bytes": [json.dumps({"id": "ID"} | reply(SAID)).encode()],
        "slow": [wait(0.2), ACCEPTED, wait(0.2), STARTED, wait(0.2), event("text-delta", text="x"), wait(0.2), DONE],
        "twice the end": [*BEGUN, DONE, done(output="other"), error(errorMessage="x")],
        # What goes on.
        "an unknown id later": [*BEGUN, UNKNOWN, DONE],
        "an unknown type": [ACCEPTED, {"type": "chat.later", "x": 1}, STARTED, DONE],
        "an unknown event": [*BEGUN, event("later", x=1), DONE],
        "an unknown part": [*BEGUN, CALL, output({"kind": "later"}), DONE],
        "garbage": [*BEGUN, "not json", "", "[]", "7", "{}", '{"id":7,"type":"chat.done"}', DONE],
        "other ids": [*BEGUN, OTHER, DONE],
        "a status that waits": [*BEGUN, event("status", state={"kind": "awaiting-input"}), DONE],
        "no arguments": [*BEGUN, event("tool-call", toolCallId="c", toolName="t"), result(), DONE],
        "an error that is no end": [*BEGUN, event("error", errorMessage="in stream"), DONE],
        "both lists": [*BEGUN, *LISTS, DONE],
        "notices and skills": [
            *BEGUN, event("notice", level="warn", message="n"),
            event("skill-activated", skill={"name": "s", "instructions": "i"}),
            event("skill-deactivated", name="s"), DONE,
        ],
    },
    "failed": {
        "the model has failed": [*BEGUN, done(output="", error="it went wrong")],
        "an error": [*BEGUN, error(errorMessage="boom", errorId="err_a", errorCode="E_X", error={"code": "E_X"})],
        "an error of few words": [*BEGUN, error(errorMessage="boom")],
        "an error with a null id": [*BEGUN, error(errorMessage="boom", errorId=None)],
        "an error with a bad id": [*BEGUN, error(errorMessage="boom", errorId="ERR-1")],
        "an error in error": [*BEGUN, error(error="boom")],
        "an error without words": [*BEGUN, error()],
        "a wrapped error": [*BEGUN, error(payload={"errorMessage": "boom"})],
        "an error and its end": [*BEGUN, event("error", errorMessage="in stream"), error(errorMessage="end")],
        "refused after it began": [*BEGUN, refusal(error="no")],
        # Ends that nobody can read are ends.
        "a wrapped reply": [*BEGUN, {"type": "chat.done", "payload": {"reply": REPLY}}],
        "no reply": [*BEGUN, {"type": "chat.done"}],
        "a reply of null": [*BEGUN, reply(None)],
        "a text as reply": [*BEGUN, reply("fine")],
    },
    "refused": {
        "refused": [refusal(error=FULL)],
        "refused with an object": [refusal(error={"message": "no"})],
        "refused without a word": [refusal()],
        "refused by an unknown id": [UNKNOWN],
    },
    "closed": {
        "closed at once": [close(1000)],
        "closed when accepted": [ACCEPTED, close(1011)],
        "closed while waiting": [ACCEPTED, queued(2), close(1001)],
        "closed while running": [*BEGUN, close(1000)],
        "dropped at once": [drop],
        "dropped in a tool": [*BEGUN, CALL, drop],
    },
    "timed-out": {
        "silence at once": [],
        "silence when accepted": [ACCEPTED],
        "silence while waiting": [ACCEPTED, queued(2)],
        "silence in a tool": [*BEGUN, CALL],
    },
}
# What goes on with so many warnings; `None` where it may be read or not.
WARNED = {
    "a stray answer to an abort": ([{"type": "chat.abort.result", "requestId": "rpc_a", "aborted": True}], 1),
    "another answer": ([{"type": "status.result", "status": STATUS}], 1),
    "no id of a task": ([{"type": "chat.accepted", "taskId": "nope"}], 1),
    "place 0": ([queued(0)], 1),
    "no place": ([{"type": "chat.queued"}, queued(-1)], 2),
    "a result without its call": ([STARTED, result("nope")], 1),
    "an output without its call": ([STARTED, output(TEXT, "nope")], 1),
    "no event": ([STARTED, {"type": "chat.event"}, *({"type": "chat.event", "event": it} for it in (None, "x"))], 3),
    "a text as output": ([STARTED, CALL, output("s")], None),
    "an odd usage": ([STARTED, event("usage", inputTokens=1.5, outputTokens=-2)], None),
    "a status of texts": ([STARTED, event("status", state="running"), event("status", message="x")], None),
    "far too deep": ([STARTED, DEEP], None),
}


async def script(frames, outcome, warnings=0):
    async with Fake(talking(*frames)).serve() as fake:
        ran = await run(fake, *IDLE)
    ended = ran.ended
    expect((ended["outcome"], ran.code) == (outcome, CODES[outcome]), f"{ran.code} {ran.lines}")
    expect(("reply" in ended) == (outcome == "done" or "error" in ended.get("reply", {})), ended)
    expect(ended["mayHaveRun"] == (outcome != "refused"), ended)
    expect(warnings is None or len(ran.of("warning")) == warnings, ran.lines)


async def what_is_no_text_at_all():
    """It may be survived or not, but it ends."""
    for frames in ([*BEGUN, b"\xff\xfe", DONE], [{"payload": ACCEPTED}, {"payload": DONE}]):
        async with Fake(talking(*frames)).serve() as fake:
            ran = await run(fake, *IDLE)
        expect(ran.code == CODES[ran.ended["outcome"]], ran.lines)


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
        filled = {"activeSkills": [], "outputStreamed": False} | frames[-1]["reply"]
        expect(ran.ended["reply"] == filled, f"{name}: another reply")


async def places_are_told():
    async with Fake(talking(ACCEPTED, *(queued(place) for place in (3, 3, 1)), STARTED, DONE)).serve() as fake:
        ran = await run(fake)
    expect([it["position"] for it in ran.of("queued")] == [3, 3, 1], ran.lines)
    expect(ran.ended["taskId"] == "task_fake0001", ran.ended)


async def aborts():
    """Ctrl-C: the server says this, and so the chat ends."""
    granted, denied = ({"type": "chat.abort.result", "aborted": it} for it in (True, False))
    aborted = error(errorMessage="aborted", errorCode="E_ABORTED")
    for frames, outcome, code in (
        ([granted], "aborted", 130), ([aborted, granted], "aborted", 130), ([granted, DONE], "aborted", 130),
        ([granted, event("text-delta", text="late"), aborted], "aborted", 130), ([DONE, denied], "done", 0),
        ([denied, DONE], "done", 0), ([DONE, granted], "done", 0), ([aborted], "aborted", 130),
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
    dates = {"createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00.123456Z"}
    task = {"id": "task_a", "state": "completed"} | dates
    answer = {"type": "task.status.result"}
    for frame, code in (
        (answer | {"task": task}, 0), (answer | {"task": None}, 0),
        (answer | {"task": task | {"state": "later"}}, 3),
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
                await line.expect("chat.start")
                await line.play([DONE])

            async with Fake(script, protocol=protocol).serve() as fake:
                ran = await run(fake, "--frames", "-vv", ACOLYTE_API_KEY=key)
                status, rpc = fake.requests
                expect(not any(key in line for line in ran.lines), "the key is shown")
                expect(status.headers["Authorization"] == f"Bearer {key}", status.headers)
                offered = rpc.headers.get("Sec-WebSocket-Protocol")
                expect(offered == (f"acolyte.v1, bearer.{key}" if is_token else None), offered)
                expect(is_token or "Authorization" in rpc.headers, "no key")
                # Known servers select a name that was offered, and others may select none.
                expect(ran.code == 0, f"{ran.code} {ran.lines}")

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
FAILED = {"type": "error", "errorMessage": "boom", "errorId": "err_a", "errorCode": "E_X", "error": {}}
FIELDS = "\ufeffretry: 1\nid: 7\nevent: message\n"
STREAMS = {
    "done": {
        "a stream": [DELTA, END],
        "a reply of 0.21": [data({"type": "done", "reply": SAID | {"state": "done"}})],
        "in small pieces": [*(DELTA + END)],
        "other ends of lines": [(": hi\n\n" + DELTA + END).replace("\n", "\r\n")],
        "fields that nobody sends": [FIELDS + DELTA + ":\n\n:\n\n" + END],
        "data of two lines": ['data: {"type":"text-delta",\ndata: "text":"x"}\n\n' + END],
        "an unknown frame": [data({"type": "later"}), END],
        "comments": [*[":\n\n", wait(0.05)] * 3, END],
    },
    "failed": {
        "an error": [DELTA, data(FAILED)],
        "an error of few words": [data({"type": "error"})],
        "a model that failed": [data({"type": "done", "reply": REPLY | {"error": "x"}})],
        "an end that is none": [data({"type": "done"})],
    },
    "closed": {
        "no end": [DELTA],
        "an empty stream": [],
        "half an end": [DELTA, END[:-8]],
        "dropped": [DELTA, drop],
    },
    "timed-out": {"silence": [DELTA, wait(2)]},
    "refused": {"refused": web.Response(status=400, text="Invalid request shape")},
}


async def stream(pieces, outcome):
    async with Fake(stream=pieces).serve() as fake:
        ran = await run(fake, "--sse", *IDLE)
    expect((ran.ended["outcome"], ran.code) == (outcome, CODES[outcome]), f"{ran.code} {ran.lines}")
    expect(not ran.of("warning"), ran.lines)


async def a_bad_frame_of_a_stream_is_skipped():
    async with Fake(stream=[DELTA, "data: {oops\n\n", DELTA, END]).serve() as fake:
        ran = await run(fake, "--sse")
    expect((ran.code, len(ran.of("warning")), ran.text) == (0, 1, "xx"), ran.lines)


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

    found = [(f"a chat: {name}", script(it, end)) for end, all in ENDS.items() for name, it in all.items()]
    found += [
        (f"a warning: {name}", script([ACCEPTED, *frames, DONE], "done", warnings))
        for name, (frames, warnings) in WARNED.items()
    ]
    found += [(f"a stream: {name}", stream(it, end)) for end, all in STREAMS.items() for name, it in all.items()]
    found += [(title(check), check()) for check in (
        what_is_no_text_at_all, recordings, places_are_told, aborts, a_second_interrupt_ends_at_once,
        servers_of_another_kind, a_status_of_any_era, tasks, keys_go_where_they_can, a_conversation_goes_along,
        a_bad_frame_of_a_stream_is_skipped, a_stream_can_be_aborted, recorded_streams,
    )]
    if wanted:
        found = [(name, check) if name in wanted else check.close() for name, check in found]
    await asyncio.gather(*(one(*it) for it in found if it))
    checks.finish()


asyncio.run(main())
