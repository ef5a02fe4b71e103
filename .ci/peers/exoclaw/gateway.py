"""Clients of Python and Node, and a provider in Python, against our gateway.

It runs before each merge, with a gateway that has no plugins in WebAssembly."""
# Needs: node.

import asyncio
import contextlib
import itertools
import signal
import tempfile

from gateways import HELLO, TOKEN, agent, gateway, refused, replied
from harness import expect, main, same, until
from provider import Provider
from sockets import Node, Python, Refused, closes
from sockets import refused as turned_away
from websockets.exceptions import ConnectionClosed

REFUSAL = {"error": "auth_failed", "code": 4001}
PONG = {"id": "p", "result": "pong"}
PING = {"id": "p", "method": "ping"}
# What clients ask for by default.
COMPRESSION = {"Python": {"compression": "deflate"}, "Node": {"perMessageDeflate": True}}
NUMBERS = itertools.count()

def fresh(text):
    """What nobody has said yet. As the name of a peer, it is a session of its own."""
    return f"{text} {next(NUMBERS)}"

async def requests_are_answered(running, provider, peer):
    async with running.talk(peer, **COMPRESSION[peer.name]) as talk:
        status = await talk.result("status", "anything")
        same((status["version"], status["plugins"]), ("0.1.0", 1), "the status")
        same(await talk.result("plugin.list", []), [{"name": "echo"}], "plugins")
        refused(await talk.call("nope", {}), "unknown method: nope")
        refused(await talk.call("chat.send", {"channel": "c", "account": "a"}), "invalid chat.send params: ")
        await talk.socket.send(b'{"id":"b","method":"ping"}')
        same(await talk.socket.next(), {"id": "b", "result": "pong"}, "the answer to bytes")
        # A token is not a request where none is wanted.
        for text in ("not json", {"token": "x"}):
            await talk.socket.send(text)
            answer = await talk.socket.next()
            same(answer["id"], "0", "the id of what is not a request")
            refused(answer, "parse error: ")
        await talk.socket.send({"jsonrpc": "2.0", "id": 7, "method": "ping", "x": None})
        same(await talk.socket.next(), {"id": "7", "result": "pong"}, "the answer to a number")
        await talk.socket.send_pieces('{"id":"p",', '"method":"ping","x":"ü', '"}')
        # An id may be used again.
        await talk.socket.send(PING)
        same([await talk.socket.next(), await talk.socket.next()], [PONG, PONG], "the answers")
        same(await talk.socket.close(4321, "bye"), (4321, "bye"), "the close")

async def a_reply_streams_while_others_are_answered(running, provider, peer):
    text = fresh("!stall")
    async with running.talk(peer) as talk:
        chat = await talk.start(text, peer=text)
        # The provider has not said more yet.
        same(await chat.event("text"), "half", "the first piece")
        for number in range(5):
            await talk.socket.ping(f"still there {number}")
            same(await talk.result("ping"), "pong", "a ping")
            replied(await talk.chat("hi", peer=fresh("beside")))
        same(talk.socket.frames.items, [], "more of the reply")
        (await provider.request(text)).go()
        replied(await chat.end(), "half done")

async def who_leaves_stops_the_reply(running, provider, peer):
    for leaves in (lambda talk: talk.socket.close(1000), lambda talk: talk.socket.cut()):
        text = fresh("!stall")
        async with running.talk(peer) as talk:
            await (await talk.start(text, peer=text)).event("text")
            await leaves(talk)
        await (await provider.request(text)).was_hung_up()
        # The session is free, and knows what was said so far.
        async with running.talk(peer) as talk:
            (asked, (role, said)) = await talk.history(peer=text)
            same((asked, role, said[:4]), (("user", text), "assistant", "half"), "the history")

async def a_large_message_closes_only_its_sender(running, _, peer):
    async with running.talk(peer) as other:
        told = "*this message alone has about 1000004 tokens, more than the 120000 of context_tokens (--context-tokens): "
        told += "the model may get only a part of it*\n\nHello world"
        replied(await other.chat("x" * 3_000_000, peer=fresh("large")), told)
        async with running.talk(peer) as talk:
            # A library may give up sending once it is told that this is too much.
            with contextlib.suppress(ConnectionClosed):
                await talk.socket.send("x" * (5 * 1024 * 1024))
            await closes(talk.socket, 1009)
        same(await other.result("ping"), "pong", "a ping")

async def the_right_token_opens(running, peer):
    async with running.talk(peer, TOKEN) as talk:
        replied(await talk.chat("hi"))
        # A second token is a bad request, and no more.
        await talk.socket.send({"token": TOKEN})
        refused(await talk.socket.next(), "parse error: ")
        same(await talk.result("ping"), "pong", "a ping")
    socket = await peer.connect(running.url)
    # Nothing is said before the token, and what comes right behind it is answered after the hello.
    await socket.ping("early")
    same(socket.frames.items, [], "frames before the token")
    await socket.send({"client": "x", "token": TOKEN, "id": "0"})
    await socket.send(PING)
    same([await socket.next(), await socket.next()], [HELLO, PONG], "the answers")

async def anything_else_is_refused(running, peer):
    in_bytes = b'{"token":"%s"}' % TOKEN.encode()
    for frame in ({"token": "wrong"}, {"token": [TOKEN]}, {"Token": TOKEN}, PING, TOKEN, "", in_bytes):
        socket = await peer.connect(running.url)
        await socket.send(frame)
        # What is said behind it does not take the refusal away.
        with contextlib.suppress(ConnectionClosed):
            for _ in range(20):
                await socket.send(PING | {"params": "x" * 10_000})
        same(await socket.next(), REFUSAL, f"the answer to {frame}")
        await closes(socket, 4001)

async def a_restart_forgets_nothing(provider, peer):
    config = {"agent": agent(), "budgets": {"session": 100}}
    said = []
    with tempfile.TemporaryDirectory() as folder:
        for end in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
            async with gateway(provider, folder=folder, config=config) as running, running.talk(peer) as talk:
                text = f"ended by {end.name}"
                replied(await talk.chat(text))
                same([told for _, told in provider.asked(text)[0].messages], [*said, text], "what the model is told")
                said += [text, "Hello world"]
                if end == signal.SIGKILL:
                    # What a reply has said so far is lost, but not its question.
                    await (await talk.start("!stall killed")).event("text")
                code = await running.program.stop(end)
                same(code, -9 if end == signal.SIGKILL else 0, f"the exit code after {end.name}")
        async with gateway(provider, folder=folder, config=config) as running, running.talk(peer) as talk:
            # Thirteen tokens for each chat, and what is estimated for the one that was killed.
            error = (await talk.chat("x" * 400)).error
            expect(error.startswith("token budget exceeded (session: 56/100); estimates count"), error)
            replied(await talk.chat("hi", peer="another"))

async def the_last_replies_are_finished_after(provider, peer, end):
    text = f"!stall {end}"
    async with gateway(provider) as running, running.talk(peer) as busy, running.talk(peer) as idle:
        chat = await busy.start(text)
        await chat.event("text")
        running.program.signal(signal.Signals[end])
        await running.program.line("finishing the work in progress")
        await closes(idle.socket, 1001)
        (await provider.request(text)).go()
        replied(await chat.end(), "half done")
        await closes(busy.socket, 1001)
        same(await running.program.end(), 0, "the exit code")

async def connections_are_bounded(provider, peer):
    async with gateway(provider, config={"gateway": {"max_connections": 3}}) as running:
        first, *others = [await peer.connect(running.url) for _ in range(3)]
        # Who has asked nothing yet would make room.
        for socket in (first, *others):
            await socket.send(PING)
            while "result" not in await socket.next():
                pass
        same((await turned_away(peer.connect(running.url))).status, 503, "the answer to the fourth")
        await first.close()

        async def is_let_in():
            with contextlib.suppress(Refused):
                return await peer.connect(running.url)

        await until(is_let_in, "a place that is free again")

async def without_a_token(checks, provider, peers):
    async with gateway(provider) as running:
        for peer in peers:
            await checks.each((
                requests_are_answered, a_reply_streams_while_others_are_answered, who_leaves_stops_the_reply,
                a_large_message_closes_only_its_sender,
            ), running, provider, peer)

async def with_a_token(checks, provider, peers):
    every = (the_right_token_opens, anything_else_is_refused)
    async with gateway(provider, "--token", TOKEN) as running:
        await asyncio.gather(*(checks.run(check, running, peer) for peer in peers for check in every))

async def body(checks):
    async with Provider() as provider, Python() as python, Node() as node:
        for check in (a_restart_forgets_nothing, connections_are_bounded):
            checks.beside(check, provider, python)
        for end in ("SIGINT", "SIGTERM"):
            checks.beside(the_last_replies_are_finished_after, provider, python, end)
        peers = (python, node)
        await asyncio.gather(without_a_token(checks, provider, peers), with_a_token(checks, provider, peers))
        await checks.finished()

main(body)
