"""Python clients against `daemon serve`: `websockets`, `aiohttp` and bare sockets."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path

import aiohttp
import disorder
from acolyte import INVALID, KEY, Order, daemon, request
from common import Checks, expect, title
from disorder import commands_see_no_secrets, gone, there
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
PLAIN = "text/plain;charset=utf-8"
FULL = "RPC queue is full (25 queued). Try again shortly."


# --- requests and answers -----------------------------------------------------------------------


async def endpoints_and_their_texts(served):
    good = json.dumps(request("hi"))
    for method, path, data, expected in (
        ("GET", "/healthz", None, (200, None, '{"ok":true}')),
        ("GET", "/v1/rpc", None, (400, PLAIN, "WebSocket upgrade failed")),
        ("POST", "/v1/chat/stream", "{", (400, PLAIN, "Invalid JSON body")),
        ("POST", "/v1/chat/stream", "", (400, PLAIN, "Invalid JSON body")),
        ("POST", "/v1/chat/stream", "{}", (400, PLAIN, "Invalid request shape")),
        ("POST", "/v1/chat/stream", "[]", (400, PLAIN, "Invalid request shape")),
        ("POST", "/v1/chat/stream", json.dumps({"request": request("x")}), (400, PLAIN, "Invalid request shape")),
        *((method, path, data, (404, PLAIN, "Not Found")) for method, path, data in (
            ("GET", "/", None), ("GET", "/v1/rpc/", None), ("GET", "/rpc", None), ("GET", "/v1/nope", None),
            ("POST", "/v1/status", "{}"), ("POST", "/v1/rpc", "{}"), ("POST", "/healthz", ""),
            ("GET", "/v1/chat/stream", None), ("PUT", "/v1/chat/stream", good), ("DELETE", "/v1/status", None),
            ("GET", "/v1/admin/shutdown", None), ("OPTIONS", "/v1/chat/stream", None), ("POST", "/v1/chat", good),
        )),
    ):
        status, kind, text = await served.ask(method, path, data)
        found = (status, kind if expected[1] else None, text)
        expect(found == expected, f"{method} {path} {data}: {found}")
    status, kind, text = await served.ask("GET", "/v1/status?x=1")
    expect(status == 200 and kind.startswith("application/json"), f"{status} {kind}")
    async with served.talk() as talk:
        told = await talk.status()
        for counter in ("tasks_total", "tasks_running", "rpc_queue_length"):
            expect(type(told[counter]) is int, counter)
        expect(told | {"tasks_total": 0} == json.loads(text) | {"tasks_total": 0}, f"{told} is not {text}")
        expect(told["capabilities"] == "ask-first, error.structured, stream.sse, workspace.path", told)
        expect(told["protocol_version"] == "1" and told["service"] == f"http://localhost:{served.port}", told)


async def a_chat_with_tools(served):
    async with served.talk() as talk:
        chat = await talk.chat("read a.txt", sessionId="sess_a1", resourceId="proj_0a")
        expect("three" in chat.reply["output"] and chat.reply["toolCalls"] == ["file-read"], chat.reply)
        (output,) = chat.events("tool-output")
        expect(output["content"]["kind"] == "file-header" and output["content"]["targets"] == ["a.txt"], output)
        chat = await talk.chat("create new/b.txt: hello")
        expect(Path(served.folder, "new/b.txt").read_text() == "hello\n", "the file")
        chat = await talk.chat("edit a.txt: two -> 2")
        kinds = [it["content"]["kind"] for it in chat.events("tool-output")]
        expect(kinds[0] == "edit-header" and set(kinds[1:]) == {"diff"}, kinds)
        chat = await talk.chat("run cat a.txt; echo to err >&2")
        shown = [it["content"] for it in chat.events("tool-output")]
        streams = {it["stream"] for it in shown if it["kind"] == "shell-output"}
        expect(streams == {"stdout", "stderr"}, shown)
        chat = await talk.chat("run exit 3")
        (result,) = chat.events("tool-result")
        expect(result["isError"] is True and result["errorCode"], result)
        expect(result["error"]["tool"] == "shell-run", result)
        # Known clients show no call without a header.
        for words in ("read none.txt", "edit a.txt: nowhere -> x", "create ../x: y"):
            chat = await talk.chat(words)
            (output,), (result,) = chat.events("tool-output"), chat.events("tool-result")
            expect(output["content"]["kind"] in ("file-header", "tool-header") and result["isError"], chat.frames)
        chat = await talk.chat("!tool file-read {\"path\": \"a.txt\"}\n!tool nope {}\n!tool file-read {oops")
        kinds = [it["event"]["type"] for it in chat.frames if it["type"] == "chat.event"]
        calls = [kind for kind in kinds if kind.startswith("tool-call")]
        expect(kinds.index("tool-result") > len(calls) == 3, kinds)
        expect([it.get("isError", False) for it in chat.events("tool-result")] == [False, True, True], chat.frames)
        expect(chat.events("tool-call")[2]["args"] == {}, "arguments that are none")
        chat = await talk.chat("plan: read a.txt; run true; say it")
        lists = chat.events("checklist")
        expect(len(lists) == 4 and len({it["groupId"] for it in lists}) == 1, lists)
        expect({it["status"] for it in lists[-1]["items"]} == {"done"}, lists[-1])


async def a_skill_goes_along(served):
    async with served.talk() as talk:
        skill = {"name": "s", "instructions": "do", "more": 1}
        chat = await talk.chat("hi", activeSkills=[skill], suggestions=["x"])
        del skill["more"]
        expect(chat.reply["activeSkills"] == [skill], chat.reply)
        expect([it["skill"] for it in chat.events("skill-activated")] == [skill], chat.frames)


async def failures_are_told(served):
    async with served.talk() as talk:
        chat = await talk.chat("!fail told so")
        expect("told so" in (chat.last.get("errorMessage") or chat.last["reply"]["error"]), chat.last)
        await talk.chat("!break")
        for model, code in (("", "E_MODEL_NOT_CONFIGURED"), ("gpt-5-mini", "E_MODEL_PROVIDER_UNAVAILABLE")):
            chat = await talk.chat("hi", model=model)
            expect(chat.code == code, f"{model}: {chat.frames}")
            # As before a run at the known server.
            told = [it["type"] for it in chat.frames]
            expect(len(told) <= 4 and not chat.events("text-delta"), told)
        for history in ([None], [{}], [{"role": "user"}], ["x"], [7]):
            # An item may have any shape; a chat with an odd one ends all the same.
            await talk.chat("hi", history=history)


async def the_folder_is_not_left(served):
    outside = served.folder.parent / "secret.txt"
    outside.write_text("a secret")
    os.symlink(outside, served.folder / "link.txt")
    os.symlink(served.folder.parent, served.folder / "up")
    async with served.talk() as talk:
        for words in ("read ../secret.txt", "read link.txt", "read up/secret.txt", f"read {outside}",
                      "create ../x.txt: y", "create up/x.txt: y", "edit link.txt: a -> b"):
            chat = await talk.chat(words)
            (result,) = chat.events("tool-result")
            expect(result.get("isError") and "a secret" not in json.dumps(chat.frames), f"{words}: {chat.frames}")
        chat = await talk.chat("run cat ../secret.txt link.txt; echo x >../x.txt")
        expect("a secret" not in json.dumps(chat.frames), "a command reads")
        expect(not (served.folder.parent / "x.txt").exists(), "something was written")
        expect(outside.read_text() == "a secret", "it was edited")
        for workspace in ("..", "/", str(served.folder.parent), "up", "/nowhere", "a.txt"):
            chat = await talk.chat("list files", workspace=workspace)
            expect(chat.code and len([it for it in chat.frames if it["type"] == "chat.event"]) <= 1, workspace)
        expect((await talk.chat("list files", workspace=str(served.folder))).reply["output"], "its own folder")


async def what_is_no_request_is_refused(served):
    ok = {"id": "rpc_x", "type": "status.get"}
    start, abort, task = ({"id": "rpc_x", "type": kind} for kind in ("chat.start", "chat.abort", "task.status"))
    deep = '{"id":"rpc_x","type":"status.get","x":' + "[" * 100_000
    async with served.talk() as talk:
        for frame, id in (
            ("", "rpc_unknown"), ("{", "rpc_unknown"), ("[]", "rpc_unknown"), ("null", "rpc_unknown"),
            ("7", "rpc_unknown"), ("{}", "rpc_unknown"), (json.dumps([ok]), "rpc_unknown"), (deep, None),
            (json.dumps(ok) + json.dumps(ok), None), (ok | {"id": "x"}, "rpc_unknown"),
            (ok | {"id": "rpc_A"}, "rpc_unknown"), (ok | {"id": "rpc_"}, "rpc_unknown"),
            (ok | {"id": "rpc_a-b"}, "rpc_unknown"), (ok | {"id": "rpc_a_b"}, "rpc_unknown"),
            (ok | {"id": 7}, "rpc_unknown"), (ok | {"id": None}, "rpc_unknown"),
            ({"type": "status.get"}, "rpc_unknown"),
            ({"id": "rpc_x"}, "rpc_x"), (ok | {"type": "nope"}, "rpc_x"), (ok | {"type": None}, "rpc_x"),
            (start, "rpc_x"), (start | {"payload": None}, "rpc_x"), (start | {"payload": {}}, "rpc_x"),
            (start | {"payload": request("flat")}, "rpc_x"),
            (abort, "rpc_x"), (abort | {"payload": {"requestId": "x"}}, "rpc_x"),
            (abort | {"payload": {"requestId": "task_a"}}, "rpc_x"),
            (task | {"payload": {"taskId": "rpc_x"}}, "rpc_x"), (task | {"payload": {"taskId": None}}, "rpc_x"),
        ):
            await talk.send(frame)
            # The known server says nothing about the id of what is no JSON.
            if id is None:
                answers = [asyncio.create_task(talk.next(it)) for it in ("rpc_x", "rpc_unknown")]
                done, late = await asyncio.wait(answers, return_when="FIRST_COMPLETED")
                for task in late:
                    task.cancel()
                answer = done.pop().result()
            else:
                answer = await talk.next(id)
            expect(answer["type"] == "error" and answer["error"] == INVALID, f"{str(frame)[:80]}: {answer}")
        odd = {"payload": None, "more": None}
        await talk.send(ok | odd | {"id": "rpc_y"})
        expect((await talk.next("rpc_y"))["type"] == "status.result", "what nobody knows is ignored")


async def requests_are_strict(served):
    many = {"id": "msg_a", "role": "user", "content": "x", "timestamp": "2026-01-01T00:00:00.000Z"}
    async with served.talk() as talk:
        for more in (
            {"message": None}, {"message": 7}, {"history": None}, {"history": {}}, {"model": None}, {"model": 7},
            {"extra": 1}, {"useMemory": True}, {"modeModels": {}}, {"sessionId": None}, {"sessionId": "sess_a-b"},
            {"sessionId": "a"}, {"resourceId": "sess_a"}, {"resourceId": None}, {"activeSkills": None},
            {"activeSkills": [{"name": "", "instructions": "x"}]}, {"activeSkills": [{"name": "x"}]},
            {"suggestions": None}, {"suggestions": [7]}, {"suggestions": ["x"] * 11}, {"suggestions": ["x" * 1001]},
            {"workspace": None}, {"workspace": "x" * 4097}, {"model": "x" * 201}, {"history": [many] * 501},
            {"message": "x" * 100_001}, {"message": "🦀" * 50_001},
        ):
            told = {name: str(value)[:30] for name, value in more.items()}
            chat = await talk.chat("x", **more) if "message" not in more else None
            if chat is None:
                await talk.send({"id": "rpc_m", "type": "chat.start", "payload": {"request": request("") | more}})
                expect((await talk.next("rpc_m"))["error"] == INVALID, told)
            else:
                expect(chat.refusal == INVALID, told)
        for name in ("message", "history", "model"):
            short = request("x")
            del short[name]
            await talk.send({"id": "rpc_s", "type": "chat.start", "payload": {"request": short}})
            expect((await talk.next("rpc_s"))["error"] == INVALID, f"without {name}")
        for message, more in (
            ("x" * 100_000, {}), ("🦀" * 50_000, {}), ("", {}), ("x", {"history": [many] * 500}),
            ("x", {"model": "m" * 200}), ("x", {"suggestions": ["x" * 1000] * 10}), ("x", {"resourceId": "user_1"}),
        ):
            chat = await talk.chat(message, **more)
            expect(chat.last["type"] in ("chat.done", "chat.error"), f"{message[:10]} {list(more)}: {chat.last}")


async def frames_may_be_bytes_and_parts(served):
    async with served.talk() as talk:
        await talk.send(json.dumps({"id": "rpc_b", "type": "status.get"}).encode())
        expect((await talk.next("rpc_b"))["type"] == "status.result", "bytes")
        start = {"id": "rpc_p", "type": "chat.start", "payload": {"request": request("grüße 🦀")}}
        text = json.dumps(start, ensure_ascii=False)
        talk.order.sent(start)

        async def parts(data, size):
            for at in range(0, len(data), size):
                if at == 5 * size:
                    await asyncio.wait_for(await talk.socket.ping(), 5)
                yield data[at:at + size]

        await talk.socket.send(parts(text.encode(), 3))
        while (frame := await talk.next("rpc_p"))["type"] != "chat.done":
            pass
        expect(frame["reply"]["output"] == "grüße 🦀", frame)
        expect(not talk.socket.protocol.extensions, "an extension was taken")


async def sixteen_megabytes(served):
    async with served.talk() as talk:
        big = {"id": "rpc_big", "type": "status.get", "more": "x" * (15 * 1024 * 1024)}
        await talk.send(big)
        expect((await talk.next("rpc_big"))["type"] == "status.result", "15 MiB")
    async with connect(served.rpc, max_size=None, proxy=None) as line:
        with contextlib.suppress(ConnectionClosed):
            await line.send("x" * (17 * 1024 * 1024))
        await asyncio.wait_for(line.wait_closed(), 10)
        expect(line.close_code == 1009, f"17 MiB: {line.close_code}")
    status, _, _ = await served.ask("POST", "/v1/chat/stream", json.dumps(request("x", more="x" * 17 * 1024 * 1024)))
    expect(status == 413, f"a body of 17 MiB: {status}")


# --- the queue ----------------------------------------------------------------------------------


async def one_runs_and_twenty_five_wait(served):
    async with served.talk() as talk:
        first = await talk.start("!slow 400 20")
        await first.until("chat.started")
        waiting = [await talk.start(f"chat {number}") for number in range(1, 26)]
        for place, chat in enumerate(waiting, 1):
            expect((await chat.until("chat.queued"))["position"] == place, "the place")
        expect((await talk.chat("one too many")).refusal == FULL, "the 27th")
        status = await talk.status()
        expect((status["rpc_queue_length"], status["tasks_running"]) == (25, 1), status)
        # An id in use is refused, and what it is in use for goes on.
        for busy in (first, waiting[3]):
            await talk.send({"id": busy.id, "type": "chat.start", "payload": {"request": request("again")}})
            while (frame := await busy.next())["type"] != "error":
                pass
            expect(frame["error"] == f"Chat request already running for id: {busy.id}", frame)
        gone_one = waiting.pop(4)
        expect(await talk.abort(gone_one.id), "the abort")
        expect((await gone_one.end()).code == "E_ABORTED", gone_one.last)
        expect(not await talk.abort(gone_one.id), "a second abort")
        expect((await talk.task(gone_one.task))["state"] == "cancelled", "its task")
        # There is room again, at the end.
        waiting.append(await talk.start("chat 26"))
        expect((await waiting[-1].until("chat.queued"))["position"] == 25, "the last place")
        expect((await talk.task(waiting[0].task))["state"] == "queued", "the state of one that waits")
        expect(await talk.abort(first.id), "the abort of the first")
        for chat in waiting:
            expect((await chat.end()).reply["output"].startswith("chat "), chat.last)
        expect(waiting[-1].places() == [25, *range(24, 0, -1)], waiting[-1].places())
        states = [(await talk.task(chat.task))["state"] for chat in (first, *waiting)]
        expect(states == ["cancelled"] + ["completed"] * 25, states)


async def an_aborted_chat_does_nothing_more(served):
    async with served.talk() as talk:
        mark = "3671.25"
        chat = await talk.start(f"plan: run sleep {mark}; create after.txt: oh no")
        second = await talk.start("chat two")
        await there(mark)
        await chat.until("chat.event", "tool-call")
        expect((await talk.task(chat.task))["state"] == "running", "its state")
        began = time.monotonic()
        expect(await talk.abort(chat.id), "the abort")
        expect((await chat.end()).code == "E_ABORTED", chat.last)
        expect((await second.end()).reply["output"] == "chat two", second.last)
        expect(time.monotonic() - began < 5, "the next one had to wait")
        await gone(mark)
        expect((await talk.task(chat.task))["state"] == "cancelled", "its task")
        expect(not await talk.abort(chat.id), "a late abort")
        await talk.chat("chat three")
        expect(not Path(served.folder, "after.txt").exists(), "another tool was called")
        # The id is free again.
        expect((await (await talk.start("once more", id=chat.id)).end()).reply["output"] == "once more", "the id")


async def connections_have_nothing_in_common(served):
    async with served.talk() as one, served.talk() as two:
        first = await one.start("!slow 100 20", id="rpc_same")
        await first.until("chat.started")
        other = await two.start("hello", id="rpc_same")
        expect((await other.end()).reply["output"] == "hello", "it had to wait")
        expect(not await two.abort("rpc_same") and not await two.abort("rpc_never"), "an abort of nothing")
        task = await two.task(first.task)
        expect(task and task["state"] == "running", "any task may be asked for")
        expect((await first.end()).reply["output"].endswith("100"), "it was aborted")


async def many_at_once(served):
    async def one(number):
        async with served.talk() as talk:
            chats = [await talk.start(f"chat {number} {it}") for it in range(6)]
            aborted = await talk.abort(chats[3].id)
            for chat in chats:
                await chat.end()
            expect((chats[3].last["type"] == "chat.error") == aborted, chats[3].last)

    await asyncio.gather(*(one(number) for number in range(30)))


async def tasks_are_remembered(served):
    async with served.talk() as talk:
        chat = await talk.chat("hi")
        task = await talk.task(chat.task)
        expect(list(task) == ["id", "state", "createdAt", "updatedAt"] and task["state"] == "completed", task)
        expect(DATE.fullmatch(task["createdAt"]) and DATE.fullmatch(task["updatedAt"]), task)
        expect(task["createdAt"] <= task["updatedAt"], task)
        answer = await talk.call("task.status", taskId="task_nobody")
        expect(answer["task"] is None, answer)
        failed = await talk.chat("hi", model="")
        expect((await talk.task(failed.task))["state"] == "failed", "a failed one")


async def a_lost_connection_ends_its_chats(served):
    mark = "3671.5"
    async with served.talk() as talk:
        chat = await talk.start(f"plan: run sleep {mark}; create late.txt: no")
        second = await talk.start("create later.txt: no")
        await there(mark)
        await chat.until("chat.started")
        await second.until("chat.queued")
        talk.socket.transport.abort()
    await gone(mark)
    async with served.talk() as talk:
        for lost in (chat, second):
            while (task := await talk.task(lost.task))["state"] in ("running", "queued"):
                await asyncio.sleep(0.02)
            expect(task["state"] == "cancelled", task)
    expect(not list(served.folder.glob("late*.txt")), "the work went on")


# --- lines ----------------------------------------------------------------------------------------


async def a_slow_reader_gets_its_end(served):
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    line.setblocking(False)
    await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", served.port))
    order = Order()
    async with connect(served.rpc, sock=line, max_queue=2, max_size=None, proxy=None) as slow:
        start = {"id": "rpc_slow", "type": "chat.start", "payload": {"request": request("a " * 49_999)}}
        order.sent(start)
        await slow.send(json.dumps(start))
        async with served.talk() as talk:
            for _ in range(5):
                await talk.chat("others go on")
        await asyncio.sleep(1)
        count = 0
        while True:
            frame = json.loads(await slow.recv())
            order.taken(frame)
            count += 1
            if frame["type"] in ("chat.done", "chat.error"):
                break
        expect(frame["type"] == "chat.done" and count > 49_000, f"{count} frames to {str(frame)[:200]}")


async def foreign_pages_stay_outside(served):
    for origin, may in (
        ("https://evil.example", False), ("null", False), (served.http, True), ("http://localhost:3000", False),
        (served.http.rsplit(":", 1)[0], False), (f"http://localhost:{served.port}", False),
    ):
        try:
            async with connect(served.rpc, origin=origin, proxy=None):
                expect(may, origin)
        except InvalidStatus as refused:
            expect(not may and refused.response.status_code == 403, f"{origin}: {refused}")
    for headers in (
        {"Origin": "https://evil.example"}, {"Origin": "http://localhost:3000"}, {"Host": "evil.example"},
    ):
        for method, path, data in (
            ("GET", "/v1/status", None), ("POST", "/v1/chat/stream", json.dumps(request("x"))),
            ("OPTIONS", "/v1/chat/stream", None),
            ("POST", "/v1/admin/shutdown", None),
        ):
            status, _, text = await served.ask(method, path, data, **headers)
            expect(status in (403, 421), f"{headers} {path}: {status} {text[:80]}")


async def a_client_of_aiohttp(served):
    async with aiohttp.ClientSession() as session, session.ws_connect(served.rpc, compress=15) as line:
        order = Order()
        start = {"id": "rpc_aio", "type": "chat.start", "payload": {"request": request("read a.txt")}}
        order.sent(start)
        await line.send_str(json.dumps(start))
        while (frame := await line.receive_json())["type"] != "chat.done":
            order.taken(frame)
        order.taken(frame)
        expect(not line.compress, "an extension was taken")


# --- HTTP -----------------------------------------------------------------------------------------


async def a_chat_over_http(served):
    _, found = await served.stream(request("read a.txt"))
    expect(found[0] == {"type": "status", "state": {"kind": "running"}}, found[0])
    expect("three" in found[-1]["reply"]["output"], found[-1])
    # Bodies may be sloppier than requests over a WebSocket.
    for more in ({"extra": 1}, {"sessionId": "x y"}, {"message": "x" * 100_001}, {"suggestions": ["x"] * 11}):
        _, found = await served.stream(request("hi") | more)
        expect(found[-1]["type"] == "done", f"{list(more)}: {found[-1]}")
    _, found = await served.stream(request("hi", workspace="/nowhere"))
    expect(found[-1]["type"] == "error", found)
    _, found = await served.stream(request("plan: say it"))
    expect([it for it in found if it["type"] == "checklist"], found)


async def a_stream_that_is_left_ends_its_work(served):
    mark = "3671.75"
    async with aiohttp.ClientSession() as session:
        body = json.dumps(request(f"run sleep {mark}"))
        async with session.post(served.http + "/v1/chat/stream", data=body) as answer:
            await answer.content.readuntil(b"\n\n")
            await there(mark)
            answer.close()
    await gone(mark)


async def silence_is_kept_alive(served):
    text, _ = await served.stream(request("run sleep 16"))
    expect(text.count(":\n\n") == 1 and "event:" not in text and "\nid:" not in text, text)


async def silence_is_pinged(served):
    async with aiohttp.ClientSession() as session, session.ws_connect(served.rpc, autoping=False) as line:
        message = await asyncio.wait_for(line.receive(), 28)
        expect((message.type, message.data) == (aiohttp.WSMsgType.PING, b""), message)
        await line.pong()
        await line.send_str('{"id":"rpc_a","type":"status.get"}')
        expect((await line.receive_json())["type"] == "status.result", "no answer")


# --- keys, options, ends --------------------------------------------------------------------------


async def keys(served):
    both = f"acolyte.v1, bearer.{KEY}"
    for headers, echo in (
        ({}, None), ({"Sec-WebSocket-Protocol": f"bearer.{KEY}"}, f"bearer.{KEY}"),
        ({"Sec-WebSocket-Protocol": both}, "acolyte.v1"),
        ({"Sec-WebSocket-Protocol": f"bearer.{KEY}, acolyte.v1"}, f"bearer.{KEY}"),
        ({"Sec-WebSocket-Protocol": "acolyte.v1"}, None), ({"Authorization": f"Bearer {KEY}"}, ""),
        ({"Authorization": f"bearer {KEY}"}, None), ({"Authorization": KEY}, None),
        ({"Authorization": "Bearer nope", "Sec-WebSocket-Protocol": f"bearer.{KEY}"}, f"bearer.{KEY}"),
        ({"Sec-WebSocket-Protocol": f"Bearer.{KEY}"}, None), ({"Sec-WebSocket-Protocol": f"bearer.{KEY}x"}, None),
        ({"Authorization": f"Bearer {KEY[:-1]}"}, None), ({"Authorization": "Bearer "}, None),
    ):
        offered = headers.get("Sec-WebSocket-Protocol")
        names = offered.split(", ") if offered else None
        more = {name: value for name, value in headers.items() if name == "Authorization"}
        try:
            async with connect(served.rpc, subprotocols=names, additional_headers=more, proxy=None) as line:
                expect(echo is not None and (line.subprotocol or "") == echo, f"{headers}: {line.subprotocol}")
        except InvalidStatus as refused:
            answer = refused.response
            expect(echo is None, f"{headers} is refused")
            expect((answer.status_code, answer.body) == (401, b"Unauthorized"), answer)
            expect(answer.headers["content-type"] == PLAIN, answer.headers)
        # It is the same for plain requests.
        body = json.dumps(request("hi"))
        for method, path, data in (
            ("GET", "/v1/status", None), ("POST", "/v1/chat/stream", body), ("POST", "/v1/chat/stream", "{"),
        ):
            status, _, text = await served.ask(method, path, data, **headers)
            expected = 401 if echo is None else 400 if data == "{" else 200
            expect(status == expected and (status != 401 or text == "Unauthorized"), f"{headers} {path}: {status}")
    for path in ("/v1/rpc/", "/rpc", "/v1/status"):
        try:
            async with connect(served.http.replace("http", "ws") + path, proxy=None):
                expect(False, f"an upgrade at {path}")
        except InvalidStatus as refused:
            expect(refused.response.status_code in (401, 404), f"{path}: {refused}")
    for path, status in (("/healthz", 200), ("/nope", 404), ("/v1/rpc", 401), (f"/v1/status?apiKey={KEY}", 401)):
        expect((await served.ask("GET", path))[0] == status, path)
    expect((await served.ask("POST", "/v1/admin/shutdown"))[0] == 401, "a shutdown without a key")
    async with served.talk(subprotocols=["acolyte.v1", f"bearer.{KEY}"]) as talk:
        await talk.chat("read a.txt")


async def pages_may_be_listed():
    async with daemon("--allow-origin", "http://localhost:3000") as served:
        for origin, status in (("http://localhost:3000", 200), (served.http, 200), ("http://localhost:3001", 403)):
            answer = await served.ask("GET", "/v1/status", Origin=origin)
            expect(answer[0] == status, f"{origin}: {answer}")
        async with served.talk(origin="http://localhost:3000") as talk:
            await talk.chat("hi")


async def aborts_may_be_silent():
    async with daemon("--silent-aborts", "--list-name", "tasklist") as served:
        async with served.talk(silent_aborts=True) as talk:
            lists = (await talk.chat("plan: read a.txt")).events("tasklist")
            expect(len(lists) == 2, lists)
            chats = [await talk.start("!slow 200 20"), *[await talk.start(f"chat {it}") for it in range(4)]]
            await chats[0].until("chat.event")
            expect(await talk.abort(chats[2].id) and await talk.abort(chats[0].id), "the aborts")
            for chat in (chats[1], *chats[3:]):
                expect((await chat.end()).reply, chat.last)
            kinds = {it["type"] for it in chats[2].frames}
            expect(not kinds & {"chat.done", "chat.error"}, kinds)
            queued = talk.queue(chats[2].id).qsize()
            expect(queued == 2, f"{queued} messages to one that waited")


async def a_shutdown_by_request():
    async with daemon(end=False, ACOLYTE_API_KEY=KEY) as served:
        async with served.talk(subprotocols=[f"bearer.{KEY}"]) as talk:
            chat = await talk.start("!slow 20 20")
            await chat.until("chat.started")
            answer = await served.ask("POST", "/v1/admin/shutdown", Authorization=f"Bearer {KEY}")
            expect((answer[0], answer[2]) == (200, '{"ok":true,"shutdown":true}'), answer)
            # What runs may come to its end.
            expect((await chat.end()).reply["output"].endswith("20"), chat.last)
            await asyncio.wait_for(talk.socket.wait_closed(), 10)
        expect(await asyncio.wait_for(served.program.end(), 10) == 0, "the exit code")


async def a_shutdown_by_signal():
    async with daemon(end=False) as served:
        async with served.talk() as talk:
            chat = await talk.start("!slow 20 20")
            waits = await talk.start("chat two")
            await chat.until("chat.started")
            served.program.process.send_signal(signal.SIGTERM)
            await served.program.line_with("finishing")
            await chat.end()
            await waits.end()
            await asyncio.wait_for(talk.socket.wait_closed(), 10)
            expect(talk.socket.close_code == 1001, f"closed with {talk.socket.close_code}")
        expect(await asyncio.wait_for(served.program.end(), 10) == 0, "the exit code")


PLAIN_CHECKS = [
    endpoints_and_their_texts, a_chat_with_tools, a_skill_goes_along, failures_are_told, the_folder_is_not_left,
    what_is_no_request_is_refused, requests_are_strict, frames_may_be_bytes_and_parts, sixteen_megabytes,
    one_runs_and_twenty_five_wait, an_aborted_chat_does_nothing_more, connections_have_nothing_in_common,
    many_at_once, tasks_are_remembered, a_lost_connection_ends_its_chats, a_slow_reader_gets_its_end,
    foreign_pages_stay_outside, a_client_of_aiohttp, a_chat_over_http, a_stream_that_is_left_ends_its_work,
]


async def main():
    checks = Checks()
    wanted = sys.argv[2:]
    async with daemon() as quiet:
        for check in (silence_is_kept_alive, silence_is_pinged) if not wanted else ():
            checks.beside(title(check), check(quiet), 40)
        for check in PLAIN_CHECKS + disorder.CHECKS:
            if wanted and check.__name__ not in wanted:
                continue
            # Each has a folder of its own.
            async with daemon() as served:
                await checks.run(title(check), check(served))
        if not wanted:
            async with daemon(ACOLYTE_API_KEY=KEY) as served:
                for check in (keys, commands_see_no_secrets):
                    await checks.run(title(check), check(served))
            for check in (pages_may_be_listed, aborts_may_be_silent, a_shutdown_by_request, a_shutdown_by_signal):
                await checks.run(title(check), check())
        await checks.others()
    checks.finish()


asyncio.run(main())
