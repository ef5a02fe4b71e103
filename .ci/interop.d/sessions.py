"""What the gateway remembers: sessions, budgets, and who leaves in mid reply."""

import asyncio
import json
import signal
import tempfile
from pathlib import Path

from common import expect
from exoclaw import (
    HELLO, Raw, Talk, agent, close_code, config_text, events, gateway, history, refused, replied, run, used,
)
from provider import Provider
from websockets.asyncio.client import connect

# --- sessions ----------------------------------------------------------------------------------


async def chats_of_one_connection_run_side_by_side(running, _):
    async with running.talk() as talk:
        slow = await talk.start("!slow 8", peer="x1")
        await slow.event("text")
        replied(await talk.chat("hi", peer="x2"))
        expect(await talk.result("ping") == "pong", "no pong")
        refused(await talk.call("nope"), "unknown method: ")
        expect("done" not in events(slow), "the slow one is over")
        expect(slow.queue.qsize() < 8, "the others have waited for the slow one")
        replied(await slow.end(), "".join(f"c{n} " for n in range(8)), output_tokens=8)


async def messages_of_one_session_are_told_in_order(running, _):
    async with running.talk() as talk:
        first, second = await talk.start("!slow 3", peer="o"), await talk.start("hi", peer="o")
        third = await talk.start("!context", peer="o")
        for chat in (first, second, third):
            await chat.end()
        turns = [message["content"] for message in json.loads(third.text)]
        expect(turns == ["!slow 3", "c0 c1 c2 ", "hi", "Hello world", "!context"], turns)


async def a_second_connection_sees_the_turn_of_the_first(running, provider):
    async with running.talk() as one, running.talk() as two:
        slow = await one.start("!slow 5", peer="s")
        await slow.event("text")
        asked = await two.start("!context", peer="s")
        await asked.end()
        turns = [message["content"] for message in json.loads(asked.text)]
        expect(turns == ["!slow 5", "c0 c1 c2 c3 c4 ", "!context"], turns)
        await slow.end()


async def who_leaves_stops_the_answer(running, provider):
    for number, how in enumerate(("politely", "without a word")):
        text, peer = f"!long 2{number}", f"leave{number}"
        async with await Raw.open(running) as raw:
            await raw.hello()
            params = {"channel": "websocket", "account": "acc", "content": text, "peer": peer}
            await raw.text({"id": "1", "method": "chat.send", "params": params})
            for _ in range(3):
                expect((await raw.json())["event"] == "text", "no text")
            if how == "politely":
                await raw.send(8, close_code(1000))
                expect(await raw.closed() == 1000, "another code")
        request = await provider.request(text)
        await asyncio.wait_for(request.ended.wait(), 5)
        expect(request.end == "hung up", request)
        # The session is free at once, and knows what was said so far.
        turns = await asyncio.wait_for(running_history(running, peer), 5)
        expect(turns[-1] == ("user", "!context"), turns)


async def running_history(running, peer):
    async with running.talk() as talk:
        return await history(talk, peer=peer)


async def who_waits_and_leaves_frees_the_place(running, provider):
    async with running.talk() as one:
        slow = await one.start("!slow 4", peer="w")
        await slow.event("text")
        async with running.talk() as two:
            await two.start("never asked", peer="w")
            expect(await two.result("ping") == "pong", "no pong")
        last = await one.start("hi", peer="w")
        await slow.end()
        replied(await last.end())
    expect(not [one for one in provider.requests if one.text == "never asked"], "it was asked")


async def who_does_not_read_hurts_nobody(running, _):
    async with await Raw.open(running) as raw:
        await raw.hello()
        params = {"channel": "websocket", "account": "acc", "content": "!burst 300000", "peer": "deaf"}
        await raw.text({"id": "1", "method": "chat.send", "params": params})
        async with running.talk() as talk:
            for number in range(20):
                replied(await talk.chat("hi", peer=f"hears{number}"))


async def requests_may_come_in_bulk(running, _):
    async with running.talk() as talk:
        pings = [await talk.begin("ping") for _ in range(1000)]
        chats = [await talk.start("hi", peer=f"bulk{number}") for number in range(200)]
        for ping in pings:
            expect((await ping.next())["result"] == "pong", "no pong")
        for chat in chats:
            replied(await chat.end())


async def the_queue_of_a_session_is_bounded(running, provider):
    before = len(provider.requests)
    async with running.talk() as talk:
        chats = [await talk.start("hi", peer="busy") for _ in range(300)]
        answered = 0
        for chat in chats:
            await chat.end()
            if chat.error:
                refused(chat.frames[0], "session busy: ")
            else:
                answered += bool(replied(chat))
        expect(0 < answered == len(provider.requests) - before, f"{answered} answers")
        replied(await talk.chat("hi", peer="busy"))


async def sessions_do_not_mix(running, provider):
    async with running.talk() as talk:
        # Joined with colons, these two would be one.
        await talk.chat("hi", channel="a:b", account="c", peer="p")
        expect(await history(talk, channel="a", account="b:c", peer="p") == [("user", "!context")],
               "two sessions are one")
        await talk.chat("my name is Ann. I live in Oslo.", peer="ann")
        await talk.chat("!system", peer="bob")
        request = await provider.request("!system")
        expect("Ann" not in json.dumps(request.body), "a stranger is told a name")
        await talk.chat("hi", peer="ann")
        body = json.dumps(provider.requests[-1].body)
        expect("Known facts:" in body and "Ann" in provider.requests[-1].system, body)


async def sessions_are_counted():
    async with Provider() as provider, gateway(provider) as running, running.talk() as talk:
        for peer, count in ((None, 0), ("a", 1), ("a", 1), ("b", 2)):
            if peer:
                await talk.chat("hi", peer=peer)
            status = await talk.result("status")
            expect(status == {"version": "0.1.0", "plugins": 0, "sessions": count}, status)


async def budgets_are_kept():
    # Thirteen tokens a chat.
    tables = {"agent": agent(), "budgets": {"session": 40, "daily": 90, "monthly": 1000}}
    async with Provider() as provider, gateway(provider, config=tables) as running:
        async with running.talk() as talk:
            for _ in range(3):
                replied(await talk.chat("hi", peer="a"))
            chat = await talk.chat("hi", peer="a")
            expect(chat.frames == [{"id": chat.id, "error": "token budget exceeded (session: 39/40)"}], chat.frames)
            # Another session has its own.
            replied(await talk.chat("hi", peer="b"))
            expect(await used(talk, "session", 40, peer="b") == 13, "not thirteen")
            asked = len(provider.requests)
            expect(await used(talk, "session", 40, peer="c") == 0, "not nothing")
            expect(len(provider.requests) == asked, "the provider was asked")
            # The day is everybody's.
            for peer in ("d", "e", "f"):
                replied(await talk.chat("hi", peer=peer))
            chat = await talk.chat("hi", peer="g")
            expect(chat.error == "token budget exceeded (daily: 91/90)", chat.frames)
    tables["budgets"] = {"monthly": 10}
    async with Provider() as provider, gateway(provider, config=tables) as running:
        async with running.talk() as talk:
            replied(await talk.chat("hi"))
            chat = await talk.chat("hi")
            expect(chat.error == "token budget exceeded (monthly: 13/10)", chat.frames)


async def who_leaves_has_paid():
    tables = {"agent": agent(), "budgets": {"daily": 1000}}
    async with Provider() as provider, gateway(provider, config=tables) as running:
        async with running.talk() as talk:
            chat = await talk.start("!long 20")
            for _ in range(5):
                await chat.event("text")
        request = await provider.request("!long 20")
        await asyncio.wait_for(request.ended.wait(), 5)
        async with running.talk() as talk:
            # The session is free once the run before it is over.
            await talk.chat("hi")
            have = await used(talk, "daily", 1000)
            expect(have >= 13 + 12, f"only {have} tokens are counted")
            chat = await talk.chat("!cut", peer="p")
            expect(chat.error, chat.frames)
            again = await used(talk, "daily", 1000)
            expect(again >= have + 11, f"a broken answer costs {again - have} tokens")


async def a_restart_forgets_nothing():
    tables = {"agent": agent(), "budgets": {"daily": 10_000, "session": 100_000}}
    with tempfile.TemporaryDirectory() as folder:
        async with Provider() as provider:
            said, have = [], 0
            for number, end in enumerate((signal.SIGTERM, signal.SIGKILL, signal.SIGINT)):
                async with gateway(provider, folder=folder, config=tables) as running:
                    async with running.talk() as talk:
                        expect(await used(talk, "daily", 10_000, peer="other") == have, "the day is lost")
                        expect(await used(talk, "session", 100_000, peer="p") == have, "the session is lost")
                        replied(await talk.chat(f"turn {number}", peer="p"))
                        have += 13
                        said += [f"turn {number}", "Hello world"]
                        request = provider.requests[-1]
                        told = [text for _, text in request.messages]
                        expect(told == said[:-1], told)
                    running.program.process.send_signal(end)
                    code = await asyncio.wait_for(running.program.end(), 10)
                    expect(code == (-9 if end == signal.SIGKILL else 0), f"exit code {code}")


async def a_kill_in_mid_reply_loses_nothing_else():
    tables = {"agent": agent(), "budgets": {"daily": 10_000}}
    with tempfile.TemporaryDirectory() as folder:
        async with Provider() as provider:
            async with gateway(provider, folder=folder, config=tables) as running:
                async with running.talk() as talk:
                    replied(await talk.chat("hi"))
                    chat = await talk.start("!long 20")
                    await chat.event("text")
                    running.program.process.kill()
                    await running.program.end()
            async with gateway(provider, folder=folder, config=tables) as running:
                async with running.talk() as talk:
                    expect(await used(talk, "daily", 10_000) >= 13, "the first chat is not counted")
                    turns = [text for _, text in await history(talk)]
                    expect(turns == ["hi", "Hello world", "!context"], turns)


async def one_folder_has_one_gateway():
    tables = config_text({"agent": {"provider": "scripted"}})
    with tempfile.TemporaryDirectory() as folder:
        async with gateway(folder=folder, config=tables) as running:
            path = str(Path(folder) / "config.toml")
            code, text = await run("--config", path, "--port", "0")
            expect(code == 1 and "http://" not in text, f"{code} {text}")
            expect(await (await connect(running.url, proxy=None)).recv(), "the first one is hurt")


async def extensions_are_served_on_demand():
    here = {"channel": "c", "account": "a"}
    tables = {"gateway": {"extensions": True}, "agent": agent(), "budgets": {"daily": 1000}}
    async with Provider() as provider, gateway(provider, config=tables) as running:
        async with connect(running.url, proxy=None) as socket:
            hello = json.loads(await socket.recv())
            names = {"chat.history", "session.list", "session.clear", "budget.status", "memory.search"}
            expect(set(hello.pop("extensions")) == names and hello == HELLO, hello)
            talk = Talk(socket)
            replied(await talk.chat("my name is Bo", **here))
            (turn,) = await talk.result("chat.history", here)
            expect((turn["user"], turn["assistant"]) == ("my name is Bo", "Hello world"), turn)
            (session,) = await talk.result("session.list")
            expect(session["turns"] == 1, session)
            status = await talk.result("budget.status", here)
            expect(status["daily"] == {"used": 13, "limit": 1000}, status)
            (fact,) = await talk.result("memory.search", here | {"query": "name"})
            expect("Bo" in fact["text"], fact)
            expect(await talk.result("memory.search", {"channel": "c", "account": "b", "query": "name"}) == [],
                   "the fact of another")
            await talk.result("session.clear", here)
            expect(await talk.result("chat.history", here) == [], "not forgotten")
            refused(await talk.call("chat.history", {}), "invalid chat.history params: ")
            refused(await talk.call("plugin.load", {"name": "x", "path": "y"}), "unknown method: plugin.load")
            talk.reader.cancel()


SESSIONS = [
    chats_of_one_connection_run_side_by_side,
    messages_of_one_session_are_told_in_order,
    a_second_connection_sees_the_turn_of_the_first,
    who_leaves_stops_the_answer,
    who_waits_and_leaves_frees_the_place,
    who_does_not_read_hurts_nobody,
    requests_may_come_in_bulk,
    the_queue_of_a_session_is_bounded,
    sessions_do_not_mix,
]

SESSIONS_ALONE = [
    sessions_are_counted,
    budgets_are_kept,
    who_leaves_has_paid,
    a_restart_forgets_nothing,
    a_kill_in_mid_reply_loses_nothing_else,
    one_folder_has_one_gateway,
    extensions_are_served_on_demand,
]
