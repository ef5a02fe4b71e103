"""Clients of Python's `websockets` and Node's `ws` against our SmartHole router."""
# Needs: node.

import asyncio
import contextlib
import json
import re
from datetime import datetime, timezone

import aiohttp
from harness import expect, main, same, switchboard
from sockets import Node, Python, closes

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
# Bytes in the largest frame of the specification.
LARGEST = 1_048_576

class Router:
    """A router that runs, and users who say something to it."""

    def __init__(self, program, users, listening):
        self.program, self.users, self.event = program, users, program.event
        self.url, self.input = listening["url"], listening["input"]

    def say(self, text, **more):
        """Says a text, and gives a task that waits for what becomes of it."""
        return asyncio.create_task(self.ask({"text": text, "wait": True} | more))

    async def ask(self, body):
        async with self.users.post(self.input, json=body) as answer:
            return answer.status, await answer.json()

@contextlib.asynccontextmanager
async def router(*options):
    args = ("--listen", "127.0.0.1:0", "--json", *options)
    async with switchboard("router", *args) as program, aiohttp.ClientSession() as users:
        yield Router(program, users, await program.event("listening"))
        expect(not program.find("panicked"), program.tail())

async def introduce(socket, **payload):
    """Sends a registration and gives the payload of its answer."""
    await socket.send({"type": "registration", "payload": payload})
    answer = await socket.next()
    same((list(answer), answer["type"]), (["type", "payload"], "registration_response"), "an answer")
    return answer["payload"]

async def register(library, served, name, description=None, **options):
    socket = await library.connect(served.url, **options)
    answer = await introduce(socket, name=name, description=description or f"Does {name}.")
    expect(answer["success"] is True, f"the registration of {name}: {answer}")
    return socket

async def message(socket):
    frame = await socket.next(lambda frame: frame["type"] == "message", "a message")
    return frame["payload"]

def response(message_id, kind, **payload):
    return {"type": "response", "payload": {"messageId": message_id, "type": kind, "payload": payload}}

async def a_registration_is_answered_as_the_specification_shows(library, served):
    # It offers to compress, which a router does not take.
    url = f"{served.url.rstrip('/')}/any/path?x=1"
    client = await library.connect(url, ["smarthole", "other"], compression="deflate")
    same((client.protocol, client.has_extensions), ("smarthole", False), "the first subprotocol, no extension")
    owner = await register(library, served, "taken")
    for name, description, more, code in (
        ("1", "d", {}, "INVALID_NAME"),
        ("a", " ", {}, "INVALID_DESCRIPTION"),
        ("a", "d", {"version": 1}, "VALIDATION_ERROR"),
        ("taken", "d", {}, "DUPLICATE_NAME"),
    ):
        answer = await introduce(client, name=name, description=description, **more)
        same(list(answer), ["success", "code", "message"], "the members of a refusal")
        same((answer["success"], answer["code"]), (False, code), "the refusal")
    same(answer["message"], "A client with name 'taken' is already registered", "the words")
    more = {"version": "1.0.0", "capabilities": ["tasks", "reminders"]}
    answer = await introduce(client, name="my-client", description="I handle to-do lists.", **more)
    same(list(answer), ["success", "clientId", "message"], "the members")
    same((answer["success"], answer["message"]), (True, "Client 'my-client' registered successfully"), "the answer")
    expect(re.fullmatch(UUID, answer["clientId"]), f"a UUID: {answer}")
    await served.event("registered", client="my-client", clientId=answer["clientId"])
    same((await introduce(client, name="x", description="d"))["code"], "ALREADY_REGISTERED", "once is enough")
    same(await client.close(4000, "Registration failed"), (4000, "Registration failed"), "the close")
    await served.event("left", client="my-client")
    # Whoever learns that its owner has left may have the name.
    await owner.cut()
    await served.event("left", client="taken")
    await (await register(library, served, "taken")).close()

async def a_direct_message_has_the_shape_of_the_specification(library, served):
    client = await register(library, served, "notebook")
    asked = served.say("NoteBook:  remember to buy milk \n")
    found = await message(client)
    same(list(found), ["id", "text", "timestamp", "metadata"], "the members")
    expect(re.fullmatch(f"msg-{UUID}", found["id"]), f"an id: {found['id']}")
    same(found["text"], "remember to buy milk", "the text without its prefix")
    expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found["timestamp"]), found["timestamp"])
    age = datetime.now(timezone.utc) - datetime.fromisoformat(found["timestamp"])
    expect(abs(age.total_seconds()) < 600, f"it is of now: {found['timestamp']}")
    same(found["metadata"], {"inputMethod": "text", "directRouted": True}, "the metadata")
    await client.ping()
    await client.send_pieces(*json.dumps(response(found["id"], "ack")))
    status, answer = await asked
    outcome = {"client": "notebook", "outcome": "acked"}
    same((status, answer["id"], answer["outcomes"]), (200, found["id"], [outcome]), "the answer")
    await client.send(response(found["id"], "notification"))
    await client.send(json.dumps(response(found["id"], "notification", body="Saved 🥛.")).encode())
    event = await served.event("notification", id=found["id"])
    same((event["title"], event["body"], event["priority"]), ("notebook", "Saved 🥛.", "normal"), "what is not blank")
    await client.close()

async def a_chosen_client_is_told_why_and_nobody_else_gets_anything(library, served):
    notes = await register(library, served, "notes", "Keeps notes and shopping lists.")
    lights = await register(library, served, "lights", "Switches lamps on and off.")
    asked = served.say("put milk on the shopping list", inputMethod="voice", confidence=0.95)
    found = await message(notes)
    reason = found["metadata"].pop("routingReason")
    expect(isinstance(reason, str) and reason, "a reason")
    same(found["metadata"], {"inputMethod": "voice", "directRouted": False, "confidence": 0.95}, "the metadata")
    await notes.send(response(found["id"], "ack"))
    await asked
    direct = served.say("lights: on")
    found = await message(lights)
    same(found["text"], "on", "the first thing that the other one gets")
    # The user has chosen: nobody else is asked.
    await lights.send(response(found["id"], "reject"))
    lost = await served.event("unroutable", id=found["id"])
    same(lost["tried"], [{"client": "lights", "reason": "No reason provided"}], "who was asked")
    await direct
    await asyncio.gather(notes.close(), lights.close())

async def what_one_library_rejects_the_other_gets(python, node, served):
    calendar = await register(python, served, "calendar", "Keeps dates and days of shopping.")
    lists = await register(node, served, "lists", "Keeps shopping lists.")
    asked = served.say("dates and days of shopping")
    found = await message(calendar)
    await calendar.send(response(found["id"], "reject", reason="I only handle notes"))
    again = await message(lists)
    same((again["id"], again["text"]), (found["id"], found["text"]), "the same message")
    await lists.send(response(again["id"], "ack"))
    _, answer = await asked
    rejected = {"client": "calendar", "outcome": "rejected", "reason": "I only handle notes"}
    same(answer["outcomes"], [rejected, {"client": "lists", "outcome": "acked"}], "what became of it")
    await asyncio.gather(calendar.close(), lists.close())

async def a_megabyte_passes_and_one_byte_more_closes(library, served):
    client = await register(library, served, "big")
    # The frame around the text takes the rest of the bytes.
    text = "x" * 1_000_000
    asked = served.say(f"big: {text}")
    found = await message(client)
    expect(found["text"] == text, "the whole text")
    empty = json.dumps(response(found["id"], "reject", reason=""))
    reason = "y" * (LARGEST - len(empty))
    await client.send(response(found["id"], "reject", reason=reason))
    told = await served.event("rejected", id=found["id"])
    expect(reason.startswith(told["reason"][:4_000]), "the reason arrives")
    await asked
    await client.send(response(found["id"], "reject", reason=f"{reason}y"))
    await closes(client, 1009)

async def who_answers_pings_stays_and_who_does_not_is_dropped(python, node):
    async with router("--heartbeat", "200ms", "--pong-timeout", "4s") as served:
        alive = [await register(python, served, "alive-1"), await register(node, served, "alive-2")]
        dead = await register(node, served, "dead", autoPong=False)
        same(await dead.pings.next(), "", "a ping is empty")
        await closes(dead, 1001)
        await served.event("left", client="dead")
        for number, client in enumerate(alive, 1):
            asked = served.say(f"alive-{number}: x")
            await client.send(response((await message(client))["id"], "ack"))
            same((await asked)[0], 200, "the others are served")

async def a_shutdown_closes_with_1001(python, node):
    async with router() as served:
        clients = [await register(library, served, f"of-{library.name}") for library in (python, node)]
        clients += [await library.connect(served.url) for library in (python, node)]
        code = asyncio.create_task(served.program.stop())
        for client in clients:
            await closes(client, 1001, "Server shutting down")
        same(await code, 0, "the exit code")

async def body(checks):
    async with Python() as python, Node() as node, router() as served:
        checks.beside(who_answers_pings_stays_and_who_does_not_is_dropped, python, node)
        for library in (python, node):
            await checks.each((
                a_registration_is_answered_as_the_specification_shows, a_megabyte_passes_and_one_byte_more_closes,
                a_direct_message_has_the_shape_of_the_specification,
                a_chosen_client_is_told_why_and_nobody_else_gets_anything,
            ), library, served)
        await checks.run(what_one_library_rejects_the_other_gets, python, node, served)
        await checks.run(a_shutdown_closes_with_1001, python, node)
        await checks.finished()

main(body)
