"""Clients of Python's websockets and aiohttp, and of Node's ws, against our Snek server.

Each check runs with each library; whoever else takes part uses another one."""
# Needs: node.

import asyncio
import contextlib
import itertools
import signal

from harness import expect, main, same, served
from sockets import Aiohttp, Node, Python, closes

PASSWORDS = {"alice": "wonderland", "bob": "builder"}
SERVER = ("bot", "serve", "--user", "alice:Alice", "--user", "bob:Bob")
TOO_LARGE = 16 * 1024 * 1024

class User:
    """A user on a socket. What answers no call is an event."""

    def __init__(self, socket):
        self.socket = socket
        self.ids = itertools.count(1)

    async def call(self, method, *args):
        """Returns whether it succeeded, and the data."""
        call_id = f"{next(self.ids):016x}"
        await self.socket.send({"method": method, "args": args, "kwargs": {}, "callId": call_id})
        answer = await self.socket.next(lambda frame: frame.get("callId") == call_id, f"an answer to {method}")
        same(set(answer), {"callId", "success", "data"}, f"the members of an answer to {method}")
        return answer["success"], answer["data"]

    async def value(self, method, *args):
        is_good, data = await self.call(method, *args)
        expect(is_good is True, f"{method} failed: {data}")
        return data

    async def error(self, method, *args):
        is_good, data = await self.call(method, *args)
        expect(is_good is False and data["error"], f"{method} succeeded: {data}")

    async def event(self, name):
        return await self.socket.next(lambda frame: frame.get("event") == name, f"an event {name}")

async def stranger(library, server):
    """Compression is offered, as clients do by themselves, and has to be declined."""
    return User(await library.connect(server.url, compression="deflate"))

async def logged_in(library, server, name="alice"):
    user = await stranger(library, server)
    await user.value("login", name, PASSWORDS[name])
    return user

async def nobody_is_served_before_the_right_password(server, library, other):
    user = await stranger(library, server)
    await user.error("get_channels")
    await user.error("login", "alice", "wrong")
    await user.error("get_channels")
    record = await user.value("login", "alice", "wonderland")
    same((record["username"], record["nick"]), ("alice", "Alice"), "the user")
    await user.value("get_channels")

async def each_method_is_answered(server, library, other):
    user = await logged_in(library, server)
    for args in ((), (None,)):
        record = await user.value("get_user", *args)
        same((record["username"], record["nick"]), ("alice", "Alice"), "the user")
    same((await user.value("get_user", "bob"))["nick"], "Bob", "another user")
    same(await user.value("get_channels"), [{"uid": "general", "name": "General", "tag": "public"}], "the channels")
    same(await user.value("ping"), {"pong": []}, "the pong")
    await user.error("make_coffee", 1)
    await user.error("send_message", "general")

async def a_message_in_parts_reaches_everybody(server, library, other):
    sender, reader = await logged_in(library, server), await logged_in(other, server, "bob")
    for text, is_final in (("one", False), ("one, twö ✓ 𝄞", True)):
        await sender.value("send_message", "general", text, is_final)
        expected = {
            "event": "message", "message": text, "username": "alice", "user_nick": "Alice",
            "channel_uid": "general", "is_final": is_final,
        }
        for user in (sender, reader):
            same(await user.event("message"), expected, "the message")

async def typing_is_seen_by_others(server, library, other):
    typist, watcher = await logged_in(library, server), await logged_in(other, server, "bob")
    await typist.value("set_typing", "general", "#FF6B35")
    shown = (await watcher.event("set_typing"))["data"].values()
    expect("alice" in shown and "#FF6B35" in shown, shown)

async def pings_of_a_library_are_answered(server, library, other):
    user = await logged_in(library, server)
    await user.socket.ping("before")
    await asyncio.gather(user.value("ping"), user.socket.ping("meanwhile"))
    await user.value("ping")

async def a_frame_that_is_too_large_ends_only_its_sender(server, library, other):
    sender, witness = await stranger(library, server), await logged_in(other, server, "bob")
    # A library may notice while it sends that this is too much.
    with contextlib.suppress(Exception):
        await sender.socket.send("x" * TOO_LARGE)
    await closes(sender.socket, 1009)
    await witness.value("ping")

async def a_user_may_leave(server, library, other):
    user = await logged_in(library, server)
    same((await user.socket.close(1000, "bye"))[0], 1000, "the answer to a close")

async def the_end_of_the_server_is_told(server, libraries):
    users = [await logged_in(library, server) for library in libraries]
    server.signal(signal.SIGTERM)
    for user in users:
        await closes(user.socket, 1001)
    same(await server.end(), 0, "the exit code")

CHECKS = (
    nobody_is_served_before_the_right_password, each_method_is_answered, a_message_in_parts_reaches_everybody,
    typing_is_seen_by_others, pings_of_a_library_are_answered, a_frame_that_is_too_large_ends_only_its_sender,
    a_user_may_leave,
)

async def body(checks):
    env = {f"SNEK_PASSWORD_{name.upper()}": password for name, password in PASSWORDS.items()}
    async with served(*SERVER, **env) as server, Python() as python, Aiohttp() as aio, Node() as node:
        server.url = f"ws://{server.address}/rpc.ws"
        for library, other in ((python, aio), (aio, node), (node, python)):
            await checks.each(CHECKS, server, library, other)
        await checks.run(the_end_of_the_server_is_told, server, (python, aio, node))

main(body)
