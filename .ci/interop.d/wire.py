"""The gateway on the wire: frames, requests, HTTP and tokens."""

import asyncio
import json

import aiohttp
from common import Failed, expect
from exoclaw import TOKEN, Raw, close_code, history, refused, replied
from websockets.exceptions import ConnectionClosed

# The specification's methods of the future, and what is no method at all.
NO_METHODS = [
    "nope.method", "", "PING", "chat.send ", "chat.history", "session.list", "session.clear",
    "plugin.load", "plugin.unload", "budget.status", "memory.search", "chat.cancel", "auth",
]


# --- frames and requests -----------------------------------------------------------------------


async def ids_come_back_as_texts(running, _):
    async with running.talk() as talk:
        for sent, back in (
            ("7", "7"), ("-7", "-7"), ("1.0", "1.0"), ("1e3", "1000.0"), ('"a\\u0062"', "ab"),
            ('""', ""), ('"0"', "0"), ('"' + "i" * 1000 + '"', "i" * 1000),
            ("18446744073709551616", "1.8446744073709552e+19"), ('"grüße 🦀"', "grüße 🦀"),
        ):
            await talk.send(f'{{"id":{sent},"method":"ping"}}')
            answer = await talk.other()
            expect(answer == {"id": back, "result": "pong"}, f"{sent} is answered {answer}")
        for odd in ("null", "true", "[]", "{}"):
            await talk.send(f'{{"id":{odd},"method":"ping"}}')
            answer = await talk.other()
            expect(answer["id"] == "0", answer)
            refused(answer, "parse error: ")


async def an_id_may_be_used_twice(running, _):
    async with running.talk() as talk:
        for _ in range(2):
            await talk.send({"id": "same", "method": "ping"})
        for _ in range(2):
            expect(await talk.other() == {"id": "same", "result": "pong"}, "a wrong answer")


async def members_beyond_the_protocol_are_ignored(running, _):
    async with running.talk() as talk:
        await talk.send({"jsonrpc": "2.0", "id": "1", "method": "ping", "params": [1], "x": None})
        expect(await talk.other() == {"id": "1", "result": "pong"}, "a wrong answer")
        status = await talk.result("status", "anything")
        expect(set(status) == {"version", "plugins", "sessions"}, status)
        expect(status["version"] == "0.1.0" and status["plugins"] == 1, status)
        expect(await talk.result("plugin.list", []) == [{"name": "echo"}], "wrong plugins")


async def what_is_no_request_is_a_parse_error(running, _):
    async with running.talk() as talk:
        for text, id in (
            ("not json", "0"), ("{", "0"), ("", "0"), (" ", "0"), ('{"id":"1","method":"ping"', "0"),
            ("42", "0"), ('"str"', "0"), ("null", "0"), ("true", "0"), ("[]", "0"),
            ('[{"id":"1","method":"ping"}]', "0"), ('{"method":"ping"}', "0"),
            ('{"id":"1","method":"ping"} {"id":"2","method":"ping"}', "0"),
            ('{"id":"5"}', "5"), ('{"id":5,"method":5}', "5"), ('{"id":"5","method":null}', "5"),
            ('{"id":"5","method":"ping","method":"status"}', "5"), ("[" * 100_000, "0"),
            ('{"id":"1","method":"ping","params":' + "[" * 500 + "]" * 500 + "}", "1"),
        ):
            await talk.send(text)
            answer = await talk.other()
            # A ping does not look at its parameters.
            if answer == {"id": "1", "result": "pong"} and len(text) > 1000:
                continue
            expect(answer["id"] == id, f"{text[:60]} is answered {answer}")
            refused(answer, "parse error: ")
        expect(await talk.result("ping") == "pong", "no pong")


async def wrong_parameters_are_refused(running, provider):
    before = len(provider.requests)
    good = {"channel": "c", "account": "a", "content": "hi"}
    async with running.talk() as talk:
        wrong = [None, [], "x", 7, True, {}]
        wrong += [{name: good[name] for name in good if name != gone} for gone in good]
        wrong += [good | {name: 5} for name in [*good, "peer", "guild", "team"]]
        wrong += [good | {"content": None}]
        for params in wrong:
            await talk.send({"id": "w", "method": "chat.send", "params": params})
            answer = await talk.other()
            expect(answer["id"] == "w", answer)
            refused(answer, "invalid chat.send params: ")
        await talk.send({"id": "w", "method": "chat.send"})
        refused(await talk.other(), "invalid chat.send params: ")
    expect(len(provider.requests) == before, "the provider was asked")


async def optional_parameters_are_optional(running, provider):
    async with running.talk() as talk:
        replied(await talk.chat("hi", peer=None, guild=None, team=None, more=1))
        replied(await talk.chat("hi", peer="ok", guild="g", team="t"))
        # No peer, none named, and the default are the same session.
        turns = await history(talk)
        expect(turns[:2] == [("user", "hi"), ("assistant", "Hello world")], turns)
        expect(await history(talk, peer="main") == [*turns, ("assistant", json.dumps([
            {"content": text, "role": role} for role, text in turns
        ])), ("user", "!context")], "another session")
        said = "grüße\n\t\"🦀\" \\ </script> \u2028 e\u0301"
        replied(await talk.chat(said, peer="ok2"))
        expect((await provider.request(said)).text == said, "the content is another")


async def unknown_methods_are_refused(running, _):
    async with running.talk() as talk:
        for method in NO_METHODS:
            answer = await talk.call(method, {})
            expect(answer["error"] == f"unknown method: {method}", answer)
            refused(answer, "unknown method: ")


async def frames_may_come_in_parts(running, _):
    async with await Raw.open(running) as raw:
        await raw.hello()
        await raw.send(1, b'{"id":"1",', fin=False)
        await raw.send(9, b"between")
        await raw.send(0, '"method":"ping","x":"ü'.encode()[:-1], fin=False)
        await raw.send(0, "ü".encode()[1:] + b'"}')
        expect(await raw.receive() == (10, b"between"), "no pong between the parts")
        expect(await raw.json() == {"id": "1", "result": "pong"}, "no answer")
        await raw.send(2, b'{"id":"2","method":"ping"}')
        await raw.text({"id": "3", "method": "ping"})
        expect(await raw.json() == {"id": "3", "result": "pong"}, "a binary frame was answered")
        await raw.send(8, close_code(4321) + b"bye")
        expect(await raw.closed() == 4321, "the close frame is not echoed")


async def broken_frames_close(running, _):
    for name, code, frames in (
        ("text that is not UTF-8", 1007, [(1, b"\xff\xfe", {})]),
        ("no mask", 1002, [(1, b"{}", {"mask": False})]),
        ("an unknown opcode", 1002, [(3, b"", {})]),
        ("a continuation of nothing", 1002, [(0, b"", {})]),
        ("a ping of 126 bytes", 1002, [(9, b"x" * 126, {})]),
    ):
        async with await Raw.open(running) as raw:
            await raw.hello()
            for opcode, payload, how in frames:
                await raw.send(opcode, payload, **how)
            closed = await raw.closed()
            expect(closed == code, f"{name} closes with {closed}")


async def large_messages_close_only_their_sender(running, _):
    async with running.talk() as other:
        replied(await other.chat("x" * 3_000_000, peer="large"))
        async with await Raw.open(running) as raw:
            await raw.hello()
            # The length alone is too much.
            raw.writer.write(raw.frame(1, b"x" * (5 * 1024 * 1024))[:1000])
            expect(await raw.closed() == 1009, "another code")
        async with await Raw.open(running) as raw:
            await raw.hello()
            await raw.send(1, b"[", fin=False)
            for _ in range(4):
                await raw.send(0, b" " * (1024 * 1024 - 1), fin=False)
            await raw.send(0, b" " * 10, fin=True)
            expect(await raw.closed() == 1009, "another code for parts")
        async with running.talk() as talk:
            # A library may give up sending once it is told that this is too much.
            try:
                await talk.send("x" * (16 * 1024 * 1024))
            except ConnectionClosed:
                pass
            await asyncio.wait_for(talk.socket.wait_closed(), 10)
            expect(talk.socket.close_code == 1009, f"closed with {talk.socket.close_code}")
        expect(await other.result("ping") == "pong", "no pong")


# --- HTTP --------------------------------------------------------------------------------------


async def http_is_served_beside(running, _):
    async with aiohttp.ClientSession() as session:
        async def ask(method, path, **headers):
            async with session.request(method, running.http + path, headers=headers) as response:
                text = await response.text()
                return response.status, response.content_type, text

        expect(await ask("GET", "/health") == (200, "text/plain", "ok"), "no health")
        status, kind, text = await ask("HEAD", "/health")
        expect((status, kind, text) == (200, "text/plain", ""), "no health without a body")
        for path in ("/", "/anything/else", "/ws/"):
            status, kind, text = await ask("GET", path)
            expect(status == 200 and kind == "text/html" and "<html" in text, f"{path}: {status} {kind}")
        for method, path in (("POST", "/"), ("PUT", "/health"), ("DELETE", "/x")):
            status, _, text = await ask(method, path)
            expect((status, text) == (405, ""), f"{method} {path}: {status} {text}")
        status, _, text = await ask("POST", "/webhook/nope")
        expect((status, text) == (404, "no channel adapter for 'nope'"), f"{status} {text}")
        status, _, _ = await ask("GET", "/ws")
        expect(status == 400, f"a plain GET of the socket: {status}")


async def bad_upgrades_are_refused(running, _):
    for headers in (
        {"sec-websocket-version": "8"}, {"sec-websocket-key": None}, {"sec-websocket-key": "short"},
    ):
        async with await Raw.open(running, **headers) as raw:
            expect(raw.status in (400, 426), f"{headers}: {raw.status}")
    # A wrong path has the page, which is no upgrade.
    async with await Raw.open(running, "/other") as raw:
        expect(raw.status != 101, "an upgrade at another path")


async def other_origins_and_hosts_are_refused(running, _):
    for origin, status in (
        ("https://evil.example", 403), ("null", 403), ("http://127.0.0.1.evil.example", 403),
        (running.http, 101), ("http://localhost:3000", 101),
    ):
        async with await Raw.open(running, origin=origin) as raw:
            expect(raw.status == status, f"{origin}: {raw.status}")
    async with await Raw.open(running, host="evil.example") as raw:
        expect(raw.status in (403, 421), f"a foreign host: {raw.status}")


# --- tokens ------------------------------------------------------------------------------------


async def the_right_token_opens(running):
    async with running.talk(TOKEN) as talk:
        replied(await talk.chat("hi"))
        # A second token is a bad request, and no more.
        await talk.send({"token": TOKEN})
        answer = await talk.other()
        expect(answer["id"] == "0", answer)
        refused(answer, "parse error: ")
        expect(await talk.result("ping") == "pong", "no pong")
    async with await Raw.open(running) as raw:
        # What is said right behind the token is answered after the hello.
        await raw.text({"client": "x", "token": TOKEN, "id": "0"})
        await raw.text({"id": "1", "method": "ping"})
        await raw.hello()
        expect(await raw.json() == {"id": "1", "result": "pong"}, "no answer behind the token")


async def anything_else_is_refused(running):
    frames = [json.dumps(frame) for frame in (
        {"token": "wrong"}, {"token": ""}, {"token": TOKEN + " "}, {"token": TOKEN.upper()},
        {"token": TOKEN[:-1]}, {"token": 7}, {"token": None}, {"token": [TOKEN]}, {}, TOKEN,
        {"id": "1", "method": "ping"}, {"id": "1", "method": "auth", "params": {"token": TOKEN}},
        {"Token": TOKEN},
    )]
    for text in [*frames, "not json", "", f'{{"token":"{TOKEN}"', f'{{"token":"x","token":"{TOKEN}"}}']:
        async with await Raw.open(running) as raw:
            await raw.text(text)
            answer = await raw.receive()
            expect(answer == (1, b'{"error":"auth_failed","code":4001}'), f"{text}: {answer}")
            expect(await raw.closed() == 4001, f"{text}: another code")
    async with await Raw.open(running) as raw:
        await raw.send(2, json.dumps({"token": TOKEN}).encode())
        expect(await raw.json() == {"error": "auth_failed", "code": 4001}, "a token in bytes")
        expect(await raw.closed() == 4001, "another code")


async def a_refusal_is_not_lost(running):
    for _ in range(5):
        async with await Raw.open(running) as raw:
            await raw.text({"token": "wrong"})
            ping = json.dumps({"id": "1", "method": "ping", "params": "x" * 10_000})
            for _ in range(100):
                await raw.text(ping)
            expect(await raw.json() == {"error": "auth_failed", "code": 4001}, "no refusal")
            expect(await raw.closed() == 4001, "another code")


async def pings_may_come_before_the_token(running):
    async with await Raw.open(running) as raw:
        await raw.send(9, b"early")
        await raw.send(10, b"unasked")
        expect(await raw.receive() == (10, b"early"), "no pong")
        await raw.text({"token": TOKEN})
        await raw.hello()


async def nobody_waits_for_a_token_for_ever(running):
    async with await Raw.open(running) as raw:
        expect(await raw.json() == {"error": "auth_failed", "code": 4001}, "no refusal")
        expect(await raw.closed() == 4001, "another code")


async def a_token_says_nothing_before_it_is_known(running):
    async with await Raw.open(running) as raw:
        try:
            frame = await asyncio.wait_for(raw.receive(), 1)
        except asyncio.TimeoutError:
            return
        raise Failed(f"{frame} before the token")


async def a_token_where_none_is_wanted_does_not_hurt(running, _):
    async with await Raw.open(running) as raw:
        await raw.text({"token": "x"})
        await raw.hello()
        answer = await raw.json()
        expect(answer["id"] == "0", answer)
        refused(answer, "parse error: ")
        await raw.text({"id": "1", "method": "ping"})
        expect(await raw.json() == {"id": "1", "result": "pong"}, "no answer")


PLAIN = [
    ids_come_back_as_texts,
    an_id_may_be_used_twice,
    members_beyond_the_protocol_are_ignored,
    what_is_no_request_is_a_parse_error,
    wrong_parameters_are_refused,
    optional_parameters_are_optional,
    unknown_methods_are_refused,
    frames_may_come_in_parts,
    broken_frames_close,
    large_messages_close_only_their_sender,
    http_is_served_beside,
    bad_upgrades_are_refused,
    other_origins_and_hosts_are_refused,
    a_token_where_none_is_wanted_does_not_hurt,
]
WITH_TOKEN = [
    the_right_token_opens,
    anything_else_is_refused,
    a_refusal_is_not_lost,
    pings_may_come_before_the_token,
    a_token_says_nothing_before_it_is_known,
]
