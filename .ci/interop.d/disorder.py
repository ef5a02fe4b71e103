"""Clients of the daemon that hurry, misbehave or leave, and commands that would outlive their chat."""

import asyncio
import contextlib
import json
import random
import socket
from pathlib import Path

from acolyte import INVALID, KEY, Order, frames, request
from common import expect
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed


def commands(text):
    """The processes with this in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text.encode() in path.read_bytes().replace(b"\0", b" "):
                found.append(int(path.parent.name))
    return found


async def gone(text):
    """Waits until no process has this in its command line."""
    while commands(text):
        await asyncio.sleep(0.02)


async def there(text):
    while not commands(text):
        await asyncio.sleep(0.02)


# --- commands -------------------------------------------------------------------------------------


async def nothing_outlives_its_chat(served):
    """But for what takes a session of its own: the daemon says that it cannot keep that."""
    async with served.talk() as talk:
        for number, line in enumerate((
            "sleep MARK", "sleep MARK & wait", "sh -c 'sleep MARK; true'", "nohup sleep MARK",
            "(trap '' TERM INT HUP; sleep MARK; sleep MARK)", "sleep MARK | cat",
        )):
            mark = f"3672.{number}"
            chat = await talk.start("run " + line.replace("MARK", mark))
            await there(mark)
            expect(await talk.abort(chat.id), line)
            await chat.end()
            await asyncio.wait_for(gone(mark), 5)
        # Nor does what a command has left behind.
        for number, line in enumerate(("sleep MARK &", "(sleep MARK &) ; echo hi")):
            mark = f"3673.{number}"
            await asyncio.wait_for(talk.chat("run " + line.replace("MARK", mark)), 10)
            await asyncio.wait_for(gone(mark), 5)


async def commands_see_no_secrets(served):
    _, found = await served.stream(request("run env; cat /proc/$PPID/environ /proc/self/environ"), Authorization=f"Bearer {KEY}")
    expect(KEY not in json.dumps(found), "a command sees the key")


async def a_flood_of_output_is_cut(served):
    async with served.talk() as talk:
        chat = await asyncio.wait_for(talk.chat("run yes | head -c 30000000"), 20)
        size = sum(len(json.dumps(frame)) for frame in chat.frames)
        expect(size < 4_000_000, f"{size} bytes are told")
        mark = "yes 3674.1"
        chat = await talk.start(f"run {mark}")
        await there(mark)
        expect(await talk.abort(chat.id), "the abort")
        await asyncio.wait_for(gone(mark), 5)
        expect((await talk.chat("hi")).reply["output"] == "hi", "the next one")


# --- hurry ----------------------------------------------------------------------------------------


async def aborts_may_come_at_once(served):
    async with served.talk() as talk:
        for number in range(20):
            id = f"rpc_hurry{number}"
            await talk.send({"id": f"rpc_early{number}", "type": "chat.abort", "payload": {"requestId": id}})
            chat = await talk.start("!slow 50 20", id=id)
            aborts = [f"rpc_abort{number}x{it}" for it in range(5)]
            for abort in aborts:
                await talk.send({"id": abort, "type": "chat.abort", "payload": {"requestId": id}})
            expect((await talk.next(f"rpc_early{number}"))["aborted"] is False, "an abort before the start")
            expect((await talk.next(aborts[0]))["aborted"] is True, "an abort")
            expect((await chat.end()).code == "E_ABORTED", chat.last)
            for abort in aborts[1:]:
                await talk.next(abort)
        expect((await talk.status())["tasks_running"] == 0, "something runs")


async def any_schedule_keeps_the_order(served):
    async def one(seed):
        rng = random.Random(seed)
        async with served.talk() as talk:
            chats = []
            for _ in range(60):
                what = rng.random()
                if what < 0.5:
                    words = rng.choice(("!slow 5 10", "read a.txt", "hi", "run sleep 0.05", "plan: read a.txt; read nope", "!fail"))
                    chats.append(await talk.start(words))
                elif what < 0.8 and chats:
                    chat = rng.choice(chats[-8:])
                    await talk.send({"id": f"rpc_r{rng.getrandbits(40):x}", "type": "chat.abort", "payload": {"requestId": chat.id}})
                elif what < 0.9:
                    await talk.status()
                else:
                    await asyncio.sleep(rng.random() * 0.1)
            for chat in reversed(chats):
                await talk.send({"id": f"rpc_r{rng.getrandbits(40):x}", "type": "chat.abort", "payload": {"requestId": chat.id}})
            for chat in chats:
                await chat.end()
            expect((await talk.chat("hi")).reply["output"] == "hi", "the last one")

    await asyncio.gather(*(one(seed) for seed in range(12)))
    async with served.talk() as talk:
        status = await talk.status()
        expect((status["tasks_running"], status["rpc_queue_length"]) == (0, 0), status)


async def questions_are_answered_in_order(served):
    async with connect(served.rpc, max_size=None, proxy=None) as line:
        ids = [f"rpc_f{number}" for number in range(500)]
        for id in ids:
            await line.send(json.dumps({"id": id, "type": "status.get"}))
        answers = [json.loads(await line.recv())["id"] for _ in ids]
        expect(answers == ids, "another order")


# --- odd texts ------------------------------------------------------------------------------------


async def json_is_read_as_others_do(served):
    async with served.talk() as talk:
        for text, answer in (
            ('{"id":"rpc_1","type":"nope","type":"status.get"}', "status.result"),
            ('{"id":"rpc_0","id":"rpc_1","type":"status.get"}', "status.result"),
            ('{"\\u0069d":"rpc_1","\\u0074ype":"status\\u002eget"}', "status.result"),
            (' \n\t{ "type" : "status.get" , "id" : "rpc_1" } \r\n', "status.result"),
            ('{"payload":{"requestId":"rpc_9","requestId":"rpc_8"},"type":"chat.abort","id":"rpc_1"}', "chat.abort.result"),
            ('\ufeff{"id":"rpc_1","type":"status.get"}', None),
        ):
            talk.order.sent({"id": "rpc_1", "type": answer and answer.removesuffix(".result").replace("status", "status.get"),
                             "payload": {"requestId": "rpc_8"}})
            await talk.socket.send(text)
            found = await (talk.next("rpc_1") if answer else next_of(talk, "rpc_1", "rpc_unknown"))
            expect(answer is None or found["type"] == answer, f"{text}: {found}")
        # Half of a character, which JSON can say and UTF-8 cannot.
        for message in ('"\\ud800"', '"\\u0000"', '"\\udc00\\ud800 x"'):
            chat = {"id": "rpc_2", "type": "chat.start", "payload": {"request": request("")}}
            talk.order.sent(chat)
            await talk.socket.send(json.dumps(chat).replace('"message": ""', f'"message": {message}'))
            while (frame := await next_of(talk, "rpc_2", "rpc_unknown"))["type"] not in ("chat.done", "error"):
                pass
            talk.order.asked.pop("rpc_2")


async def next_of(talk, *ids):
    """The next message of any of these."""
    waits = [asyncio.create_task(talk.next(id)) for id in ids]
    done, late = await asyncio.wait(waits, return_when="FIRST_COMPLETED")
    for task in late:
        task.cancel()
    return done.pop().result()


async def much_may_wait_but_not_everything(served):
    """Chats of 15 MiB: the server holds some of them, and says so when it has enough."""
    item = {"id": "msg_a", "role": "user", "content": "x" * 30_000, "timestamp": "2026-01-01T00:00:00.000Z"}
    async with served.talk() as talk:
        first = await talk.start("!slow 500 20")
        await first.until("chat.started")
        chats = [await talk.start("hi", history=[item] * 480) for _ in range(12)]
        ends = []
        expect(await talk.abort(first.id), "the abort")
        for chat in chats:
            await asyncio.wait_for(chat.end(), 20)
            ends.append(chat.last["type"])
        expect(ends[0] == "chat.done" and set(ends) <= {"chat.done", "error"}, ends)
        expect((await talk.chat("hi")).reply["output"] == "hi", "the next one")


# --- lines ----------------------------------------------------------------------------------------


async def a_slow_reader_of_a_stream_gets_its_end(served):
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    line.setblocking(False)
    await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", served.port))
    reader, writer = await asyncio.open_connection(sock=line, limit=4096)
    body = json.dumps(request("a " * 49_999))
    head = f"POST /v1/chat/stream HTTP/1.0\r\nhost: 127.0.0.1:{served.port}\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write((head + body).encode())
    await asyncio.sleep(1)
    text = (await reader.read(-1)).decode()
    head, _, text = text.partition("\r\n\r\n")
    expect(" 200 " in head and "chunked" not in head.lower(), head)
    found = frames(text)
    expect(found[-1]["type"] == "done" and len(found) > 49_000, f"{len(found)} frames to {found[-1]}")


async def bodies_may_come_in_any_way(served):
    body = json.dumps(request("hi")).encode()
    for parts in (
        [b"transfer-encoding: chunked\r\n\r\n", *(b"1\r\n%c\r\n" % byte for byte in body), b"0\r\n\r\n"],
        [b"content-length: %d\r\nexpect: 100-continue\r\n\r\n" % len(body), body],
        [b"content-length: %d\r\n\r\n" % len(body), *(body[at:at + 9] for at in range(0, len(body), 9))],
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(b"POST /v1/chat/stream HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n")
        for part in parts:
            writer.write(part)
            await writer.drain()
        text = await asyncio.wait_for(reader.read(), 10)
        expect(b'"type":"done"' in text and b"HTTP/1.1 200" in text, text[:200])
        writer.close()


async def text_that_is_none_ends_only_its_line(served):
    async with served.talk() as other:
        async with connect(served.rpc, proxy=None) as line:
            await line.send(b"\xff\xfe", text=True)
            with contextlib.suppress(ConnectionClosed):
                await asyncio.wait_for(line.recv(), 5)
            expect(line.close_code in (1006, 1007), f"closed with {line.close_code}")
        async with connect(served.rpc, proxy=None) as line:
            # As bytes it is no reason to leave.
            await line.send(b"\xff\xfe")
            expect(json.loads(await line.recv())["error"] == INVALID, "no refusal")
        expect((await other.chat("hi")).reply["output"] == "hi", "another line")


CHECKS = [
    nothing_outlives_its_chat, a_flood_of_output_is_cut, aborts_may_come_at_once, any_schedule_keeps_the_order,
    questions_are_answered_in_order, json_is_read_as_others_do, much_may_wait_but_not_everything,
    a_slow_reader_of_a_stream_gets_its_end, bodies_may_come_in_any_way, text_that_is_none_ends_only_its_line,
]
