"""Foreign clients and a foreign provider against the gateway: what it says, what it lets happen, and
what it survives."""

import asyncio
import json
import signal
import socket
import tempfile
from pathlib import Path

import aiohttp
from common import Checks, Failed, expect
from exoclaw import (
    HELLO, TOKEN, USAGE, Raw, Talk, agent, close_code, config_text, echo, gateway, run,
)
from provider import KEY, UTF8, Provider
from wat import plugins
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

PROVIDERS = ("anthropic", "openai")
# The specification's methods of the future, and what is no method at all.
NO_METHODS = [
    "nope.method", "", "PING", "chat.send ", "chat.history", "session.list", "session.clear",
    "plugin.load", "plugin.unload", "budget.status", "memory.search", "chat.cancel", "auth",
]


def events(chat):
    """The names of a chat's events. OpenAI begins each answer with an empty piece of text."""
    return [frame.get("event") for frame in chat.frames if frame.get("data") != ""]


def replied(chat, text="Hello world", **usage):
    """A whole answer: text, one usage, done, and nothing else."""
    expect(chat.text == text, f"{chat.text!r} instead of {text!r} in {chat.frames}")
    names = events(chat)
    expect(names == ["text"] * (len(names) - 2) + ["usage", "done"], names)
    expect(chat.data("usage") == [USAGE | usage], chat.data("usage"))
    return chat


def failed(chat, start, text=""):
    """A chat that ends in an error of the stream, and `done`."""
    expect(chat.text == text, f"{chat.text!r} instead of {text!r}")
    (error,) = chat.data("error")
    expect(error.startswith(start), f"{error!r} does not start with {start!r}")
    expect(events(chat)[-2:] == ["error", "done"], events(chat))
    for secret in (KEY, "127.0.0.1", "localhost", "http:"):
        expect(secret not in error, f"{error!r} tells too much")
    return error


def refused(frame, start):
    """An answer that is an error and nothing else."""
    expect(set(frame) == {"id", "error"}, frame)
    expect(isinstance(frame["error"], str) and frame["error"].startswith(start), frame)


async def used(talk, scope, limit, **params):
    """What is used of a budget, asked by a chat that cannot be paid for."""
    frame = (await talk.chat("x" * (5 * limit), **params)).frames[0]
    refused(frame, f"token budget exceeded ({scope}: ")
    have, _, of = frame["error"].rstrip(")").rpartition(" ")[2].partition("/")
    expect(int(of) == limit, frame)
    return int(have)


async def history(talk, **params):
    """The conversation as the model is told it, as (role, text)."""
    chat = await talk.chat("!context", **params)
    return [(message["role"], message["content"]) for message in json.loads(chat.text)]


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
            # A library sends on while it is refused, so it may miss the reason.
            try:
                await talk.send("x" * (16 * 1024 * 1024))
            except ConnectionClosed:
                pass
            await asyncio.wait_for(talk.socket.wait_closed(), 10)
            expect(talk.socket.close_code in (1006, 1009), f"closed with {talk.socket.close_code}")
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
        expect(status in (400, 426), f"a plain GET of the socket: {status}")


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
]


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


PLAIN.append(a_token_where_none_is_wanted_does_not_hurt)
WITH_TOKEN = [
    the_right_token_opens,
    anything_else_is_refused,
    a_refusal_is_not_lost,
    pings_may_come_before_the_token,
    a_token_says_nothing_before_it_is_known,
]


# --- providers ---------------------------------------------------------------------------------


async def answers_are_streamed(kind, running, provider):
    async with running.talk() as talk:
        replied(await talk.chat("hi", peer="s1"))
        chat = replied(await talk.chat("!slow 4", peer="s2"), "c0 c1 c2 c3 ", output_tokens=4)
        expect(events(chat).count("text") == 4, "pieces were put together")
        replied(await talk.chat("!crlf", peer="s3"))
        replied(await talk.chat("!utf8", peer="s4"), UTF8, output_tokens=1)
        replied(await talk.chat("!burst 5000", peer="s5"), "".join(f"c{n} " for n in range(5000)),
                output_tokens=5000)
    request = await provider.request("hi")
    expect(request.kind == kind and request.body["model"] == "stub", request.body)


async def refusals_of_the_provider_are_told(_, running, provider):
    async with running.talk() as talk:
        for code in (400, 401, 403, 404, 413, 500):
            error = failed(await talk.chat(f"!http {code}", peer="h"), f"provider error: {code} ")
            expect(f"stub says {code}" in error, error)
            asked = [one for one in provider.requests if one.text == f"!http {code}"]
            expect(len(asked) == 1, f"{code}: asked {len(asked)} times")
        failed(await talk.chat("!leak 401", peer="h"), "provider error: 401 ")
        failed(await talk.chat("!redirect", peer="h"), "provider error: ")
        # Nothing of it is remembered, and the session goes on.
        expect(await history(talk, peer="h") == [("user", "!context")], "a failed turn is remembered")


async def an_overloaded_provider_is_asked_again(_, running, provider):
    async with running.talk() as talk:
        replied(await talk.chat("!flaky 1", peer="f"))
        expect(len([one for one in provider.requests if one.text == "!flaky 1"]) == 2, "not asked twice")
        failed(await talk.chat("!http 529", peer="f"), "provider error: 529")
        failed(await talk.chat("!http 429", peer="f"), "provider error: 429")
        asked = [one for one in provider.requests if one.text in ("!http 529", "!http 429")]
        expect(len(asked) <= 10, f"asked {len(asked)} times")


async def answers_that_break_off_are_errors(_, running, provider):
    async with running.talk() as talk:
        for how in ("!eof", "!cut", "!midstream"):
            failed(await talk.chat(how, peer=how), "provider error: ", "half")
            asked = [one for one in provider.requests if one.text == how]
            expect(len(asked) == 1, f"{how}: asked {len(asked)} times")
            # What came before the error was said, so it is remembered.
            turns = await history(talk, peer=how)
            expect(turns == [("user", how), ("assistant", "half"), ("user", "!context")], turns)
        for how in ("!garbage", "!huge"):
            failed(await talk.chat(how, peer=how), "provider error: ")
        replied(await talk.chat("hi", peer="whole"))


async def odd_answers_are_understood(_, running, provider):
    async with running.talk() as talk:
        chat = await talk.chat("!json", peer="j")
        expect(chat.text == "at once" and not chat.error, chat.frames)
        # Results are told apart by the ids of their calls, whatever the model says.
        chat = await talk.chat("!twins echo", peer="j2")
        uses = [(use["id"], use["input"]["message"]) for use in chat.data("tool_use")]
        results = [(result["tool_use_id"], result["content"]) for result in chat.data("tool_result")]
        expect(uses == results and [said for _, said in uses] == ["one", "two"], f"{uses} {results}")
        expect(len({id for id, _ in uses}) == 2, uses)
        chat = await talk.chat("!big echo 1000000", peer="j3")
        expect(chat.data("tool_result")[0]["content"] == "x" * 1_000_000, "another content")
        failed(await talk.chat("!big echo 50000000", peer="j4"), "provider error: ")


async def connections_to_the_provider_are_kept(_, running, provider):
    before = provider.connections
    async with running.talk() as talk:
        for number in range(10):
            replied(await talk.chat("hi", peer=f"k{number}"))
    opened = provider.connections - before
    expect(opened <= 1, f"{opened} connections for ten questions")


async def a_provider_that_is_not_there(kind):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        async with Provider() as provider:
            nowhere = {name: url for name in provider.env if "ENDPOINT" in name}
            async with gateway(provider, config={"agent": agent(kind)}, **nowhere) as running:
                async with running.talk() as talk:
                    failed(await talk.chat("hi"), "provider error: ")
                    expect(await talk.result("ping") == "pong", "no pong")
                    failed(await talk.chat("hi"), "provider error: ")


async def a_silent_provider_is_given_up(kind):
    """Takes as long as the gateway is patient."""
    async with Provider() as provider, gateway(provider, config={"agent": agent(kind)}) as running:
        async with running.talk() as talk:
            silent, stalled = await talk.start("!silent", peer="a"), await talk.start("!stall", peer="b")
            failed(await silent.end(), "provider error: request timed out")
            failed(await stalled.end(), "provider error: stream idle timeout after 45s", "half")
            for text in ("!silent", "!stall"):
                request = await provider.request(text)
                await asyncio.wait_for(request.ended.wait(), 5)
                expect(request.end == "hung up", request)
            expect(len(provider.requests) == 2, "it was asked again")


async def without_a_key_nothing_is_asked(kind):
    async with Provider() as provider:
        env = provider.env | {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": ""}
        async with gateway(None, config={"agent": agent(kind)}, **env) as running:
            chat = await running.chat("hi")
            variable = f"{kind.upper()}_API_KEY"
            text = f"provider error: no API key for provider '{kind}'. Set {variable} env var."
            expect(chat.error == text, chat.frames)
            expect(not provider.requests, "the provider was asked")


async def the_key_of_the_file_goes_first(kind):
    async with Provider() as provider:
        env = provider.env | {"ANTHROPIC_API_KEY": "wrong", "OPENAI_API_KEY": "wrong"}
        async with gateway(None, config={"agent": agent(kind, api_key=KEY)}, **env) as running:
            replied(await running.chat("hi"))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "credentials" / f"{kind}.key"
            path.parent.mkdir()
            path.write_text(KEY + "\n")
            env |= {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": ""}
            async with gateway(None, config={"agent": agent(kind)}, folder=folder, **env) as running:
                replied(await running.chat("hi"))
        provider.check()


# --- tools -------------------------------------------------------------------------------------


async def tools_are_used(_, running, provider):
    async with running.talk() as talk:
        chat = await talk.chat('!texttool echo {"message": "hi"}', peer="t")
        expect(events(chat) == ["text", "tool_use", "usage", "tool_result", "text", "usage", "done"], events(chat))
        expect(chat.text == "let me lookafter tool", chat.text)
        use = {"id": "call_1", "name": "echo", "input": {"message": "hi"}}
        expect(chat.data("tool_use") == [use], chat.data("tool_use"))
        result = {"tool_use_id": "call_1", "content": "hi", "is_error": False}
        expect(chat.data("tool_result") == [result], chat.data("tool_result"))
        expect(chat.tokens == 13 + 12, chat.data("usage"))
        # The follow-up has the text before the call.
        follow_up = provider.requests[-1]
        said = [text for role, text in follow_up.messages if role == "assistant"]
        expect(said == ["let me look"], follow_up.messages)
        offered = follow_up.body["tools"]
        names = [tool.get("name") or tool["function"]["name"] for tool in offered]
        expect(names == ["echo"], names)
        # Remembered are the words, not the calls.
        turns = await history(talk, peer="t")
        expect([role for role, _ in turns] == ["user", "assistant", "user"], turns)


async def a_wrong_call_is_an_error_for_the_model(_, running, provider):
    async with running.talk() as talk:
        chat = await talk.chat("!tools echo nope echo", peer="e")
        expect(chat.text == "after tool" and not chat.error, chat.frames)
        results = chat.data("tool_result")
        expect([result["tool_use_id"] for result in results] == ["call_1", "call_2", "call_3"], results)
        expect([result["is_error"] for result in results] == [False, True, False], results)
        expect(results[1]["content"] == "unknown tool: nope", results)
        chat = await talk.chat("!tool echo not json", peer="e2")
        expect(chat.text == "after tool" and chat.data("tool_use")[0]["input"] == {}, chat.frames)


async def tools_for_ever_are_stopped(_, running, provider):
    async with running.talk() as talk:
        chat = await talk.chat("!toolloop", peer="l")
        expect(chat.data("error") == ["tool-use loop exceeded max iterations"], chat.frames[-3:])
        expect(events(chat)[-2:] == ["error", "done"], events(chat))
        asked = [one for one in provider.requests if one.text == "!toolloop"]
        expect(len(asked) == 10, f"asked {len(asked)} times")
        replied(await talk.chat("hi", peer="l2"))


async def modules_may_fail():
    """Tools in WebAssembly that break down, run for ever and want everything."""
    with tempfile.TemporaryDirectory() as folder:
        made = plugins(Path(folder), ["echo", "failing", "trap", "spin", "hog"], timeout_seconds=1)
        missing = {"name": "gone", "path": "gone.wasm"}
        async with Provider() as provider:
            tables = {"agent": agent(), "plugins": [*made, missing]}
            async with gateway(provider, folder=folder, config=tables) as running:
                async with running.talk() as talk:
                    names = [plugin["name"] for plugin in await talk.result("plugin.list")]
                    expect(names == ["echo", "failing", "trap", "spin", "hog"], names)
                    expect(running.program.find("gone"), "no warning of a missing module")
                    chat = await talk.chat("!tools echo failing trap spin hog echo")
                    expect(chat.text == "after tool" and not chat.error, chat.frames)
                    results = chat.data("tool_result")
                    errors = [result["is_error"] for result in results]
                    expect(errors == [False, True, True, True, True, False], results)
                    said = [result["content"] for result in results]
                    expect(json.loads(said[0]) == {"message": "n1"}, said)
                    expect(said[1] == "no such file", said)
                    expect(said[2].startswith("tool execution failed: "), said)
                    expect(said[3] == "tool execution failed: timeout", said)
                    expect(said[4].startswith("tool execution failed: "), said)


FOR_EACH_PROVIDER = [
    answers_are_streamed,
    refusals_of_the_provider_are_told,
    an_overloaded_provider_is_asked_again,
    answers_that_break_off_are_errors,
    tools_are_used,
    a_wrong_call_is_an_error_for_the_model,
    tools_for_ever_are_stopped,
    odd_answers_are_understood,
    connections_to_the_provider_are_kept,
]


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


# --- the configuration -------------------------------------------------------------------------


async def bindings_choose_the_agent():
    bindings = [
        {"agent_id": "work", "channel": "slack"},
        {"agent_id": "boss", "channel": "slack", "peer_id": "boss"},
        {"agent_id": "team", "team_id": "t1"},
        {"agent_id": "guild", "guild_id": "g1"},
        {"agent_id": "late", "team_id": "t1"},
    ]
    tables = {"agent": agent(catch_all=False), "bindings": bindings}
    async with Provider() as provider, gateway(provider, config=tables) as running:
        async with running.talk() as talk:
            def at(channel="other", account="acc", peer="main", **more):
                return {"channel": channel, "account": account, "peer": peer} | more

            # Each agent has its own sessions: who shares one sees the turn before.
            agents = {}
            for name, where in (
                ("work", at("slack")), ("boss", at("slack", peer="boss")), ("team", at(team="t1")),
                ("guild", at(guild="g1")), ("guild", at(guild="g1", team="t1")),
                ("guild", at(guild="g1", team="t2")), ("team", at(guild="g2", team="t1")),
                ("work", at("slack", guild="g2")),
            ):
                turns = await history(talk, **where)
                expect(len(turns) == 1 + 2 * agents.get(name, 0), f"{where} is not {name}: {turns}")
                agents[name] = agents.get(name, 0) + 1
            # All that a binding names must be equal, not only its most special part.
            for where in (at(peer="boss"), at(), at(team="t2")):
                chat = await talk.chat("hi", **where)
                frame = f"no agent configured for other:acc:{where['peer']}"
                refused(chat.frames[0], "no agent configured for ")
                expect(chat.error == frame, chat.frames)


async def the_soul_is_read_again():
    with tempfile.TemporaryDirectory() as folder:
        soul = Path(folder) / "soul.md"
        soul.write_text("You are a pirate.")
        tables = {"agent": agent(soul_path="soul.md", system_prompt="Be brief.")}
        async with Provider() as provider:
            async with gateway(provider, folder=folder, config=tables) as running:
                async with running.talk() as talk:
                    chat = await talk.chat("!system")
                    expect("pirate" in chat.text and "Be brief." in chat.text, chat.text)
                    soul.write_text("You are a monk, and no longer what you were.")
                    chat = await talk.chat("!system")
                    expect("monk" in chat.text and "pirate" not in chat.text, chat.text)


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


async def the_last_answers_are_finished(end):
    async with Provider() as provider, gateway(provider) as running:
        idle = await connect(running.url, proxy=None)
        async with running.talk() as talk:
            chat = await talk.start("!slow 6")
            await chat.event("text")
            running.program.process.send_signal(end)
            replied(await chat.end(), "".join(f"c{n} " for n in range(6)), output_tokens=6)
            await asyncio.wait_for(talk.socket.wait_closed(), 10)
            expect(talk.socket.close_code == 1001, f"closed with {talk.socket.close_code}")
        await asyncio.wait_for(idle.wait_closed(), 10)
        expect(idle.close_code == 1001, f"the idle one is closed with {idle.close_code}")
        expect(await asyncio.wait_for(running.program.end(), 10) == 0, "another exit code")


async def an_end_does_not_wait_for_ever():
    async with Provider() as provider, gateway(provider) as running:
        async with running.talk() as talk:
            chat = await talk.start("!long 60")
            await chat.event("text")
            running.program.process.send_signal(signal.SIGTERM)
            expect(await asyncio.wait_for(running.program.end(), 20) == 0, "another exit code")
        request = await provider.request("!long 60")
        await asyncio.wait_for(request.ended.wait(), 5)
        expect(request.end == "hung up", request)


async def a_second_signal_ends_at_once():
    async with Provider() as provider, gateway(provider) as running:
        async with running.talk() as talk:
            chat = await talk.start("!long 60")
            await chat.event("text")
            running.program.process.send_signal(signal.SIGINT)
            await running.program.line_with("once more ends at once")
            # Who is there may go on until then; nobody else comes in.
            try:
                async with await Raw.open(running) as raw:
                    expect(raw.status != 101, "somebody has come in")
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            running.program.process.send_signal(signal.SIGINT)
            expect(await asyncio.wait_for(running.program.end(), 5) == 1, "another exit code")


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


async def names_and_pages_can_be_allowed():
    own = {"allowed_hosts": ["my.example"], "allowed_origins": ["https://ok.example"]}
    async with gateway(config={"gateway": own}) as running:
        for headers, status in (
            ({"host": "my.example"}, 101), ({"host": "localhost"}, 101), ({}, 101),
            ({"host": "other.example"}, 403), ({"origin": "https://ok.example"}, 101),
            ({"origin": "http://ok.example"}, 403), ({"origin": "https://ok.example:444"}, 403),
            ({"origin": "http://localhost:1"}, 101),
        ):
            async with await Raw.open(running, **headers) as raw:
                expect(raw.status == status, f"{headers}: {raw.status}")


async def connections_are_bounded():
    async with gateway(config={"gateway": {"max_connections": 3}}) as running:
        taken = [await Raw.open(running) for _ in range(3)]
        async with await Raw.open(running) as raw:
            expect(raw.status == 503, raw.status)
        for raw in taken:
            await raw.hello()
            await raw.send(8, close_code(1000))
            expect(await raw.closed() == 1000, "another code")
        async with await Raw.open(running) as raw:
            expect(raw.status == 101, raw.status)


async def without_a_configuration_it_answers_by_rules():
    async with gateway(config="") as running, running.talk() as talk:
        chat = await talk.chat("hi")
        expect(chat.text and not chat.error, chat.frames)
        expect(events(chat)[-1] == "done", events(chat))
        chat = await talk.chat("!fail", peer="x")
        expect(chat.error.startswith("provider error: "), chat.frames)
        # A content may be empty.
        chat = await talk.chat("", peer="y")
        expect(events(chat)[-1] == "done", events(chat))


# --- the command line --------------------------------------------------------------------------


async def a_public_address_needs_a_token():
    for host in ("0.0.0.0", "::"):
        code, text = await run("--bind", host, "--port", "0")
        expect(code == 1, f"{host}: exit code {code}, {text}")
        expect("Auth token required when binding to non-loopback address" in text, text)
    for args, env in ((["--token", ""], {}), ([], {"EXOCLAW_TOKEN": ""})):
        for bind in ([], ["--bind", "0.0.0.0"]):
            code, text = await run("--port", "0", *args, *bind, **env)
            expect(code == 1 and "token" in text, f"{args} {env} {bind}: {code} {text}")


async def a_token_may_come_from_the_environment():
    for args, env in ((["--token", TOKEN], {}), ([], {"EXOCLAW_TOKEN": TOKEN})):
        async with gateway(None, *args, config="", **env) as running:
            async with running.talk(TOKEN) as talk:
                expect(await talk.result("ping") == "pong", "no pong")


async def mistakes_in_the_file_are_told():
    for text, found in (
        ("[agent]\nprovider = \"nope\"\n", ["nope", ":2:"]),
        ("[agent]\nmax_tokens = 0\n", ["max_tokens", ":2:"]),
        ("[gateway]\n\nport = \"x\"\n", ["port", ":3:"]),
        ("[gateway\nport = 1\n", [":1:"]),
        ("[[bindings]]\nagent_id = \"a\"\n", ["bindings"]),
        ("[agent]\nprovider = \"nope\"\nmax_tokens = 0\n", ["nope", "max_tokens"]),
    ):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "config.toml"
            path.write_text(text)
            for args, env in ((["--config", str(path)], {}), ([], {"EXOCLAW_CONFIG": str(path)})):
                code, said = await run("--port", "0", *args, **env)
                expect(code == 1, f"{text!r}: exit code {code}, {said}")
                expect("config.toml" in said, said)
                missing = [word for word in found if word not in said]
                expect(not missing, f"{text!r}: no {missing} in {said}")
                expect("panicked" not in said, said)


async def other_mistakes_are_told():
    code, text = await run("--config", "/nowhere/at/all.toml")
    expect(code == 1 and "/nowhere/at/all.toml" in text, f"{code} {text}")
    code, text = await run("--nonsense")
    expect(code == 2 and "--nonsense" in text, f"{code} {text}")
    code, text = await run("--help")
    expect(code == 0 and "--token" in text and "--bind" in text, f"{code} {text}")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, text = await run("--port", port)
        expect(code == 1 and port in text and "in use" in text, f"{code} {text}")


async def unknown_keys_are_warned_of():
    text = "[gateway]\nallowed_origin = []\n"
    async with gateway(config=text) as running:
        expect(running.program.find("allowed_origins"), f"no hint in {running.program.lines}")


ALONE = [
    modules_may_fail,
    sessions_are_counted,
    bindings_choose_the_agent,
    the_soul_is_read_again,
    budgets_are_kept,
    who_leaves_has_paid,
    a_restart_forgets_nothing,
    a_kill_in_mid_reply_loses_nothing_else,
    one_folder_has_one_gateway,
    a_second_signal_ends_at_once,
    extensions_are_served_on_demand,
    names_and_pages_can_be_allowed,
    connections_are_bounded,
    an_end_does_not_wait_for_ever,
    without_a_configuration_it_answers_by_rules,
    a_public_address_needs_a_token,
    a_token_may_come_from_the_environment,
    mistakes_in_the_file_are_told,
    other_mistakes_are_told,
    unknown_keys_are_warned_of,
]


def title(check):
    return check.__name__.replace("_", " ")


async def main():
    checks = Checks()
    # These only wait; the others run meanwhile.
    for kind in PROVIDERS:
        for check in (a_silent_provider_is_given_up, a_provider_that_is_not_there):
            checks.beside(f"{kind}: {title(check)}", check(kind), 90)
    async with Provider() as provider:
        tables = {"agent": agent(), "plugins": echo()}
        async with gateway(provider, config=tables) as running:
            for check in PLAIN + SESSIONS:
                await checks.run(title(check), check(running, provider))
        async with gateway(provider, "--token", TOKEN) as running:
            # Takes as long as the gateway is patient.
            waiting = nobody_waits_for_a_token_for_ever(running)
            waiting = checks.beside(title(nobody_waits_for_a_token_for_ever), waiting)
            for check in WITH_TOKEN:
                await checks.run(title(check), check(running))
            await waiting
    for kind in PROVIDERS:
        async with Provider() as provider:
            tables = {"agent": agent(kind), "plugins": echo()}
            async with gateway(provider, config=tables) as running:
                for check in FOR_EACH_PROVIDER:
                    await checks.run(f"{kind}: {title(check)}", check(kind, running, provider))
        for check in (without_a_key_nothing_is_asked, the_key_of_the_file_goes_first):
            await checks.run(f"{kind}: {title(check)}", check(kind))
    for check in ALONE:
        await checks.run(title(check), check())
    for end in (signal.SIGINT, signal.SIGTERM):
        name = f"{title(the_last_answers_are_finished)} after {end.name}"
        await checks.run(name, the_last_answers_are_finished(end))
    await checks.others()
    checks.finish()


asyncio.run(main())
