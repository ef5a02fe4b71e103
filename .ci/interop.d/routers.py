"""Python's websockets against our router, and our client against it."""

import asyncio
import contextlib
import json
import sys
import tempfile

import aiohttp
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

from common import Checks, expect, program, title

SWITCHBOARD = sys.argv[1]


@contextlib.asynccontextmanager
async def router(*args):
    async with program(SWITCHBOARD, "router", "--listen", "127.0.0.1:0", "--json", *args) as running:
        listening = json.loads(await running.line_with('"listening"'))
        yield running, listening["url"], listening["input"]


async def register(url, name, **options):
    socket = await connect(url, **options)
    payload = {"name": name, "description": f"Does {name}."}
    await socket.send(json.dumps({"type": "registration", "payload": payload}))
    answer = json.loads(await socket.recv())
    expect(answer["payload"].get("success") is True, f"a registration: {answer}")
    return socket


async def respond(socket, message_id, kind, **payload):
    body = {"messageId": message_id, "type": kind, "payload": payload}
    await socket.send(json.dumps({"type": "response", "payload": body}))


async def say(where, text):
    async with aiohttp.ClientSession() as session:
        async with session.post(where, json={"text": text, "wait": True}) as answer:
            return answer.status, await answer.json()


async def a_conversation():
    async with router() as (_, url, where):
        # It offers to compress, which we do not take.
        socket = await register(url, "python")
        expect(not socket.protocol.extensions, "no extension")
        asked = asyncio.create_task(say(where, "PYTHON, buy milk"))
        message = json.loads(await socket.recv())["payload"]
        expect(message["text"] == "buy milk", f"the text: {message}")
        expect(message["metadata"] == {"inputMethod": "text", "directRouted": True}, f"{message}")
        await respond(socket, message["id"], "ack")
        status, answer = await asked
        expect(status == 200 and answer["id"] == message["id"], f"{status} {answer}")
        expect(answer["outcomes"] == [{"client": "python", "outcome": "acked"}], f"{answer}")
        await socket.close()


async def fragments_and_pings():
    async with router() as (_, url, where):
        socket = await register(url, "python")
        await asyncio.wait_for(await socket.ping("are you there"), 5)
        asked = asyncio.create_task(say(where, "python: x"))
        message_id = json.loads(await socket.recv())["payload"]["id"]
        frame = json.dumps({"type": "response", "payload": {"messageId": message_id, "type": "ack"}})
        await socket.send(letter for letter in frame)
        expect((await asked)[0] == 200, "the answer")
        await socket.close()


async def the_megabyte():
    async with router() as (_, url, _):
        socket = await register(url, "python")
        await socket.send("x" * 1_048_576)
        await asyncio.wait_for(await socket.ping(), 5)
        await socket.send("x" * 1_048_577)
        try:
            await asyncio.wait_for(socket.recv(), 5)
        except ConnectionClosed as closed:
            expect(closed.rcvd and closed.rcvd.code == 1009, f"the close: {closed}")
        else:
            expect(False, "an answer")


async def web_pages_stay_outside():
    async with router() as (_, url, _):
        for origin, may in [("https://evil.example", False), ("app://obsidian.md", True)]:
            try:
                socket = await connect(url, origin=origin)
            except InvalidStatus as refused:
                expect(not may and refused.response.status_code == 403, f"{origin}: {refused}")
            else:
                expect(may, origin)
                await socket.close()


async def a_shutdown():
    async with router() as (running, url, _):
        socket = await register(url, "python")
        running.process.terminate()
        try:
            await asyncio.wait_for(socket.recv(), 5)
        except ConnectionClosed as closed:
            code, reason = closed.rcvd.code, closed.rcvd.reason
            expect((code, reason) == (1001, "Server shutting down"), f"{code} {reason}")
        expect(await running.end() == 0, "the exit code")


async def our_client():
    frames = asyncio.Queue()

    async def host(socket):
        await frames.put(json.loads(await socket.recv()))
        await socket.send(json.dumps({"type": "registration_response", "payload": {"success": True}}))
        message = {"id": "m", "text": "buy milk", "timestamp": "2024-01-15T10:30:00.000Z"}
        await socket.send(json.dumps({"type": "message", "payload": message}))
        async for frame in socket:
            await frames.put(json.loads(frame))
        await frames.put((socket.close_code, socket.close_reason))

    async with serve(host, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with tempfile.TemporaryDirectory() as folder:
            args = ("client", "--url", f"ws://127.0.0.1:{port}", "--file", f"{folder}/notes.txt")
            async with program(SWITCHBOARD, "router", *args) as running:
                expect((await frames.get())["type"] == "registration", "the first frame")
                kinds = [(await frames.get())["payload"]["type"] for _ in range(2)]
                expect(kinds == ["ack", "notification"], f"the answers: {kinds}")
                running.process.terminate()
                expect(await frames.get() == (1000, "Client disconnect"), "the close")
                expect(await running.end() == 0, "the exit code")


async def main():
    checks = Checks()
    for check in [
        a_conversation,
        fragments_and_pings,
        the_megabyte,
        web_pages_stay_outside,
        a_shutdown,
        our_client,
    ]:
        await checks.run(title(check), check())
    checks.finish()


asyncio.run(main())
