"""Our SmartHole client against routers of Python's `websockets` and Node's `ws`."""
# Needs: node.

import contextlib
import json
import signal
import tempfile
from pathlib import Path

from harness import expect, main, same, switchboard
from sockets import Node, Python, closes

ACCEPTED = {"type": "registration_response", "payload": {"success": True, "clientId": "c-1", "message": "hi"}}
# Bytes in the largest frame of the specification.
LARGEST = 1_048_576

def message(message_id, text, **more):
    metadata = {"inputMethod": "text", "directRouted": True}
    payload = {"id": message_id, "text": text, "timestamp": "2024-01-15T10:30:00.000Z", "metadata": metadata}
    return {"type": "message", "payload": payload | more}

@contextlib.asynccontextmanager
async def client(server, *options):
    """Our client, which keeps notes in `notes`."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes.txt")
        async with switchboard("router", "client", "--url", server.url, "--file", notes, *options) as program:
            program.notes = notes
            yield program
            expect(not program.find("panicked"), program.tail())

async def introduced(server):
    """The next connection, and the registration on it."""
    socket = await server.accepted()
    frame = await socket.next()
    same((list(frame), frame["type"]), (["type", "payload"], "registration"), "the first frame")
    return socket, frame["payload"]

async def registered(server):
    socket, _ = await introduced(server)
    await socket.send(ACCEPTED)
    return socket

async def answer(socket, message_id):
    fits = lambda frame: frame["type"] == "response" and frame["payload"]["messageId"] == message_id
    return (await socket.next(fits, f"an answer to {message_id}"))["payload"]

async def is_taken(socket, message_id):
    same((await answer(socket, message_id))["type"], "ack", f"the first answer to {message_id!r}")
    return (await answer(socket, message_id))["payload"]

async def ends(program, code):
    same(await program.end(), code, f"the exit code: {program.tail()}")

async def the_registration_and_the_answers_are_those_of_the_specification(library):
    about = ("--name", "my-notes", "--description", "Keeps notes.", "--capability", "lists")
    async with library.serve() as server, client(server, *about) as program:
        socket, registration = await introduced(server)
        expect(isinstance(registration.pop("version"), str), "a version")
        expected = {"name": "my-notes", "description": "Keeps notes.", "capabilities": ["lists"]}
        same(registration, expected, "the registration")
        unwanted = {"origin", "sec-websocket-extensions", "sec-websocket-protocol"}
        expect(not unwanted & socket.headers.keys(), f"the handshake: {socket.headers}")
        await socket.send(ACCEPTED)
        await socket.send(message("m-1", "buy milk"))
        same(await answer(socket, "m-1"), {"messageId": "m-1", "type": "ack", "payload": {}}, "the ack")
        shown = {"messageId": "m-1", "type": "notification", "payload": {"title": "Note saved", "body": "buy milk"}}
        same(await answer(socket, "m-1"), shown, "the notification")
        expect("buy milk" in program.notes.read_text(), "the note is in the file")
        for payload in ("x", "y" * 125):
            await socket.ping(payload)
        program.signal(signal.SIGINT)
        await closes(socket, 1000, "Client disconnect")
        await ends(program, 0)

async def odd_frames_of_a_router_are_taken_or_skipped(library):
    async with library.serve() as server, client(server) as program:
        socket, registration = await introduced(server)
        expect("capabilities" not in registration, "what is not said is left out")
        await socket.send('{"payload":{"success":true},"type":"registration_response","later":[1]}')
        time = "2024-01-15T10:30:00.000Z"
        for payload in (
            {"id": "bare", "text": "x", "timestamp": time},
            {"id": "touch", "text": "x", "timestamp": time, "metadata": {"inputMethod": "touch", "source": 7}},
            {"id": 7, "text": "x", "timestamp": 0},
            {"id": "", "text": "x", "timestamp": "", "metadata": None},
            {"id": "m\0😀", "text": "\0\x1b[2J", "timestamp": time},
            {"id": "more", "text": "x", "timestamp": time, "priority": "high", "attachments": [{}]},
            {"id": "more", "text": "again", "timestamp": time},
        ):
            await socket.send("no JSON")
            await socket.send(b"\xff\xfe")
            await socket.send({"type": "later", "payload": None})
            await socket.send({"type": "message", "payload": {"id": "x", "text": 7, "timestamp": "t"}})
            await socket.send({"type": "message", "payload": payload})
            await is_taken(socket, str(payload["id"]))
        # Routers send texts: bytes are not a frame.
        await socket.send(json.dumps(message("bytes", "x")).encode())
        await socket.send_pieces(*json.dumps(message("pieces", "grüße")))
        same((await is_taken(socket, "pieces"))["body"], "grüße", "a text in fragments")
        same(socket.frames.items, [], "nothing else was said")
        same(await program.stop(), 0, "the exit code")

async def a_rejection_says_why(library):
    async with library.serve() as server, client(server, "--only", "milk") as program:
        socket = await registered(server)
        await socket.send(message("m", "bread"))
        rejection = {"messageId": "m", "type": "reject", "payload": {"reason": "I only take messages about: milk"}}
        same(await answer(socket, "m"), rejection, "the rejection")
        same(await program.stop(), 0, "the exit code")

async def each_refusal_ends_it_with_4000(library):
    async with library.serve() as server:
        for payload, told in (
            ({"code": "INVALID_NAME", "message": "another one"}, "INVALID_NAME"),
            ({"code": "LATER", "message": "a new one"}, "LATER"),
            ({"code": "DUPLICATE_NAME"}, "DUPLICATE_NAME"),
            ({"message": "just no"}, "refuse"),
            ({}, "refuse"),
        ):
            async with client(server) as program:
                socket, _ = await introduced(server)
                await socket.send({"type": "registration_response", "payload": {"success": False} | payload})
                await closes(socket, 4000, "Registration failed")
                await ends(program, 3)
                expect(program.find(told), f"the reason is told: {program.tail()}")

async def a_thousand_messages_are_answered_once_each(library):
    async with library.serve() as server, client(server) as program:
        socket = await registered(server)
        for number in range(1_000):
            await socket.send(message(f"m{number}", f"note {number}"))
        answers = [(await socket.next())["payload"] for _ in range(2_000)]
        acks = [answer["messageId"] for answer in answers if answer["type"] == "ack"]
        same(sorted(acks), sorted(f"m{number}" for number in range(1_000)), "the acks")
        same(len(program.notes.read_text().splitlines()), 1_000, "the notes")
        same(await program.stop(), 0, "the exit code")

async def a_megabyte_passes_and_one_byte_more_closes(library):
    async with library.serve() as server, client(server, "--attempts", "0") as program:
        socket = await registered(server)
        text = "x" * (LARGEST - len(json.dumps(message("big", ""))))
        await socket.send(message("big", text))
        same((await answer(socket, "big"))["type"], "ack", "the answer")
        await socket.send(message("big", f"{text}x"))
        await closes(socket, 1009)
        # A client that was registered before has lost its router.
        await ends(program, 1)

async def body(checks):
    async with Python() as python, Node() as node:
        for library in (python, node):
            await checks.each((
                the_registration_and_the_answers_are_those_of_the_specification, a_rejection_says_why,
                odd_frames_of_a_router_are_taken_or_skipped, each_refusal_ends_it_with_4000,
                a_thousand_messages_are_answered_once_each, a_megabyte_passes_and_one_byte_more_closes,
            ), library)

main(body)
