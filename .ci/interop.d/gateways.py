"""Our client, `gateway chat`, against gateways in Python: what they may say, and what they must not
break."""

import asyncio
import contextlib
import json
import sys

from common import Checks, expect, program, title
from exoclaw import HELLO, TOKEN
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

SWITCHBOARD = sys.argv[1]


class Fake:
    """One connection of the client, with what it has said."""

    def __init__(self, socket):
        self.socket, self.id = socket, None

    async def send(self, *frames):
        for frame in frames:
            await self.socket.send(frame if isinstance(frame, str) else json.dumps(frame))

    async def hello(self):
        await self.send(HELLO)

    async def token(self):
        frame = json.loads(await self.socket.recv())
        expect(frame == {"token": TOKEN}, f"no token: {frame}")

    async def asked(self, **params):
        """Reads the chat, which must be as the specification shows it."""
        request = json.loads(await self.socket.recv())
        expect(list(request) == ["id", "method", "params"], request)
        expect(isinstance(request["id"], str) and request["id"] not in ("", "0"), request)
        expect(request["method"] == "chat.send", request)
        wanted = {"channel": "cli", "account": "user", "peer": "main", "content": "hi"} | params
        expect(request["params"] == wanted, request)
        self.id = request["id"]

    def event(self, name, *data):
        # In the order of the known gateway, which is the alphabet's.
        frame = {"data": data[0]} if data else {}
        return frame | {"event": name, "id": self.id}

    async def say(self, *texts):
        await self.send(*(self.event("text", text) for text in texts))

    async def done(self, *texts):
        await self.say(*texts)
        await self.send(self.event("usage", {"input_tokens": 11, "output_tokens": 2}), self.event("done"))

    async def closed(self):
        """Waits for the client's goodbye."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                raise AssertionError(f"more: {await self.socket.recv()}")
        return self.socket.close_code


async def talk(behaviour, *args, text="hi"):
    """Lets the client talk to this behaviour. Returns its exit code, and its lines."""
    lines = asyncio.get_running_loop().create_future()
    count = 0

    async def handler(socket):
        nonlocal count
        count += 1
        try:
            result = await behaviour(Fake(socket))
        except Exception as error:
            result = error
        if not lines.done():
            lines.set_result(result)

    async with serve(handler, "127.0.0.1", 0, ping_interval=None) as server:
        port = server.sockets[0].getsockname()[1]
        async with program(SWITCHBOARD, "gateway", "chat", "--url", f"ws://127.0.0.1:{port}", *args, text) as client:
            code = await asyncio.wait_for(client.end(), 15)
            result = await asyncio.wait_for(lines, 5)
            if isinstance(result, Exception):
                raise result
            expect(count == 1, f"{count} connections")
            said = "\n".join(client.lines)
            expect("panicked" not in said and TOKEN not in said, said)
            return code, said


async def whole(behaviour, *args, says="Hello world"):
    code, said = await talk(behaviour, *args)
    expect(code == 0 and says in said, f"{code} {said}")


async def broken(behaviour, *args, says, with_code=1):
    code, said = await talk(behaviour, *args)
    expect(code == with_code and says in said, f"{code} {said}")


async def a_chat_is_read():
    async def behaviour(gateway):
        await gateway.hello()
        await gateway.asked()
        await gateway.say("")
        await gateway.done("Hello", " world")
        return await gateway.closed()

    await whole(behaviour)


async def the_token_goes_first():
    async def behaviour(gateway):
        await gateway.token()
        await gateway.hello()
        await gateway.asked()
        await gateway.done("Hello", " world")

    await whole(behaviour, "--token", TOKEN)


async def a_gateway_may_want_no_token():
    refusal = {"id": "0", "error": "parse error: missing field `id` at line 1 column 26"}

    async def greets_first(gateway):
        await gateway.hello()
        await gateway.token()
        await gateway.send(refusal)
        await gateway.asked()
        await gateway.done("Hello", " world")

    async def refuses_first(gateway):
        await gateway.token()
        await gateway.hello()
        await gateway.send(refusal)
        await gateway.asked()
        await gateway.done("Hello", " world")

    for behaviour in (greets_first, refuses_first):
        await whole(behaviour, "--token", TOKEN)


async def a_refused_token_is_told():
    def closes(code, frame):
        async def behaviour(gateway):
            await gateway.token()
            if frame:
                await gateway.send({"error": "auth_failed", "code": 4001})
            await gateway.socket.close(code)

        return behaviour

    for code, frame in ((1000, True), (4001, True), (4001, False), (1008, False)):
        await broken(closes(code, frame), "--token", TOKEN, says="authentication failed", with_code=3)


async def other_frames_in_between_do_not_hurt():
    async def behaviour(gateway):
        await gateway.hello()
        await gateway.asked()
        await gateway.say("Hello")
        await gateway.send(
            {"id": "other", "event": "text", "data": "not yours"},
            {"id": "other", "event": "done"},
            {"id": "other", "result": None, "error": "x"},
            {"id": "0", "error": "parse error: of somebody"},
            gateway.event("thinking", {"deep": [1, 2]}),
            gateway.event("text", 7),
            gateway.event("tool_use", {"id": "c", "name": "echo", "input": {"a": 1}}),
            gateway.event("tool_result", {"tool_use_id": "c", "content": "fine"}),
            gateway.event("usage", {"input_tokens": 1, "output_tokens": 1}) | {"more": 1},
            {"hello": "again"},
            "not json",
            "[]",
        )
        await gateway.socket.send(b"\x00\xff")
        await gateway.socket.send(['{"id":"%s","event":"te' % gateway.id, 'xt","data":" wor"}'])
        expect(await asyncio.wait_for(await gateway.socket.ping(), 5) >= 0, "no pong")
        await gateway.done("ld")

    code, said = await talk(behaviour)
    out = said.replace("\n", "")
    expect(code == 0 and "not yours" not in said, f"{code} {said}")
    expect("Hello world" in said or "Hello" in out and " world" in out, said)
    expect("echo" in said and "fine" in said, said)


async def nulls_are_as_nothing():
    async def behaviour(gateway):
        await gateway.hello()
        await gateway.asked()
        await gateway.send(gateway.event("text", "Hello world") | {"error": None, "result": None})
        await gateway.send(gateway.event("done", None) | {"error": None})

    await whole(behaviour)


async def an_error_ends_a_chat():
    def ends(after, *last):
        async def behaviour(gateway):
            await gateway.hello()
            await gateway.asked()
            await gateway.say(*after)
            for name in last:
                data = ["provider error: no luck"] if name == "error" else []
                await gateway.send(gateway.event(name, *data))
            return await gateway.closed()

        return behaviour

    async def refuses(gateway):
        await gateway.hello()
        await gateway.asked()
        await gateway.send({"id": gateway.id, "result": None, "error": "token budget exceeded (daily: 65/60)"})

    await broken(ends(["so far"], "error", "done"), says="provider error: no luck")
    await broken(ends([], "error", "done"), says="provider error: no luck")
    # Nothing behind the error: the chat is over all the same.
    await broken(ends(["so far"], "error"), says="provider error: no luck")
    await broken(refuses, says="token budget exceeded (daily: 65/60)", with_code=3)


async def a_cut_line_is_told_and_nothing_is_sent_twice():
    async def cuts(gateway):
        await gateway.hello()
        await gateway.asked()
        await gateway.say("so far")
        await asyncio.sleep(0.05)
        gateway.socket.transport.abort()

    async def closes(gateway):
        await gateway.hello()
        await gateway.asked()
        await gateway.say("so far")
        await gateway.socket.close(1001)

    for behaviour in (cuts, closes):
        code, said = await talk(behaviour)
        expect(code == 1 and "so far" in said and "error" in said, f"{code} {said}")


async def a_goodbye_needs_no_answer():
    async def behaviour(gateway):
        await gateway.hello()
        await gateway.asked()
        await gateway.done("Hello world")
        # As the known gateway: the connection ends without a close frame.
        gateway.socket.transport.pause_reading()
        await asyncio.sleep(0.1)
        gateway.socket.transport.abort()

    await whole(behaviour)


async def a_large_text_is_read():
    async def behaviour(gateway):
        await gateway.hello()
        await gateway.asked()
        await gateway.say("x" * 1_000_000)
        await gateway.done(*("y" for _ in range(2000)))

    code, said = await talk(behaviour)
    expect(code == 0 and said.count("x") == 1_000_000 and said.count("y") == 2000, f"{code} {said[:99]}")


async def a_terminal_is_not_at_the_models_mercy():
    async def behaviour(gateway):
        await gateway.hello()
        await gateway.asked()
        await gateway.done("one\n\x1b]0;two\x07\x1b[2J three\x9b")

    code, said = await talk(behaviour)
    expect(code == 0 and "one" in said and "three" in said, f"{code} {said}")
    expect(not set(said) & set("\x1b\x07\x9b"), repr(said))


async def nobody_there_is_told():
    server = await serve(lambda socket: socket.close(), "127.0.0.1", 0)
    url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    await server.wait_closed()
    async with program(SWITCHBOARD, "gateway", "chat", "--url", url, "hi") as client:
        code = await asyncio.wait_for(client.end(), 15)
        expect(code == 3 and client.find("no connection"), f"{code} {client.lines}")


CHECKS = [
    a_chat_is_read,
    the_token_goes_first,
    a_gateway_may_want_no_token,
    a_refused_token_is_told,
    other_frames_in_between_do_not_hurt,
    nulls_are_as_nothing,
    an_error_ends_a_chat,
    a_cut_line_is_told_and_nothing_is_sent_twice,
    a_goodbye_needs_no_answer,
    a_large_text_is_read,
    a_terminal_is_not_at_the_models_mercy,
    nobody_there_is_told,
]


async def main():
    checks = Checks()
    for check in CHECKS:
        await checks.run(title(check), check())
    checks.finish()


asyncio.run(main())
