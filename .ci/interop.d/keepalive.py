"""Keepalive and load: pings during long replies, tools that hang, and many connections."""

import asyncio
import contextlib
import tempfile
import time
from pathlib import Path

from common import Checks, expect, title
from exoclaw import Raw, agent, echo, gateway
from provider import Provider
from wat import plugins

IDLE, STREAMING = 300, 100


async def a_short_keepalive_survives_a_long_reply(running, _):
    keepalive = {"ping_interval": 0.3, "ping_timeout": 0.3}
    async with running.talk(**keepalive) as talk:
        chat = await (await talk.start("!long 6", peer="short")).end()
        expect(len(chat.data("text")) == 30 and not chat.error, chat.frames[-3:])
        expect(talk.socket.latency > 0, "no ping was answered")


async def the_keepalive_of_the_library_survives_a_long_reply(running, _):
    """With what the library does unasked: a ping each 20 s, to be answered within 20 s."""
    async with running.talk(ping_interval=20, ping_timeout=20) as talk:
        chat = await (await talk.start("!long 46", peer="default")).end()
        expect(len(chat.data("text")) == 230 and not chat.error, chat.frames[-3:])
        expect(talk.socket.latency > 0, "no ping was answered")


async def pings_are_answered_while_a_reply_streams(running, _):
    async with await Raw.open(running) as raw:
        await raw.hello()
        params = {"channel": "websocket", "account": "acc", "content": "!slow 10", "peer": "ping"}
        await raw.text({"id": "1", "method": "chat.send", "params": params})
        for number in range(4):
            expect((await raw.json()).get("event") == "text", "no text")
            await raw.send(9, b"%d" % number)
            await raw.text({"id": f"p{number}", "method": "ping"})
            # At most one piece of text, which was on its way, comes before both answers.
            frames = [await raw.receive() for _ in range(2)]
            if b'"event"' in frames[0][1] or b'"event"' in frames[1][1]:
                frames.append(await raw.receive())
            expect((10, b"%d" % number) in frames, f"no pong in {frames}")
            answer = b'{"id":"p%d","result":"pong"}' % number
            expect((1, answer) in frames, f"no answer in {frames}")
        while (await raw.json()).get("event") != "done":
            pass


async def hung_tools_stall_nobody():
    with tempfile.TemporaryDirectory() as folder:
        made = plugins(Path(folder), ["echo", "spin"], timeout_seconds=20)
        async with Provider() as provider:
            tables = {"agent": agent(), "plugins": made}
            async with gateway(provider, folder=folder, config=tables) as running:
                async with running.talk() as one, running.talk() as two:
                    hung = [await one.start("!tool spin {}", peer="h1"), await two.start("!tool spin {}", peer="h2")]
                    for chat in hung:
                        await chat.event("usage")
                    async with running.talk() as talk:
                        chats = [
                            await talk.start("!tool echo {}" if number % 5 == 0 else "hi", peer=f"n{number}")
                            for number in range(100)
                        ]
                        for chat in chats:
                            await chat.end()
                            expect(not chat.error and chat.text in ("Hello world", "after tool"), chat.frames)
                        expect(await talk.result("ping") == "pong", "no pong")
                    for talk, chat in zip((one, two), hung):
                        expect(chat.queue.empty(), "a hung tool has ended")
                        expect(await talk.result("ping") == "pong", "no pong beside a hung tool")


async def many_connections_are_served():
    tables = {"agent": agent(), "plugins": echo()}
    async with Provider() as provider, gateway(provider, config=tables) as running:
        async with contextlib.AsyncExitStack() as stack:
            talks = []
            for _ in range(IDLE + STREAMING):
                talks.append(await stack.enter_async_context(running.talk(ping_interval=None)))
            began = time.monotonic()
            chats = [
                await talk.start("!slow 10", peer=f"s{number}")
                for number, talk in enumerate(talks[IDLE:])
            ]
            whole = "".join(f"c{n} " for n in range(10))
            for chat in chats:
                await chat.end()
                expect(chat.text == whole and not chat.error, chat.frames)
            took = time.monotonic() - began
            for talk in talks[:IDLE]:
                expect(await talk.result("ping") == "pong", "an idle one is not served")
            status = await talks[0].result("status")
            expect(status["sessions"] == STREAMING, status)
            print(f"      {STREAMING} replies of 2 s took {took:.1f} s beside {IDLE} idle connections", flush=True)


async def main():
    checks = Checks()
    async with Provider() as provider:
        tables = {"agent": agent(), "plugins": echo()}
        async with gateway(provider, config=tables) as running:
            # This one mostly waits; the others run meanwhile.
            long = the_keepalive_of_the_library_survives_a_long_reply
            checks.beside(title(long), long(running, provider), 70)
            for check in (a_short_keepalive_survives_a_long_reply, pings_are_answered_while_a_reply_streams):
                await checks.run(title(check), check(running, provider))
            for check in (hung_tools_stall_nobody, many_connections_are_served):
                await checks.run(title(check), check())
            await checks.others()
    checks.finish()


asyncio.run(main())
