"""Our `gateway chat` against gateways of Python and Node: what they may say, and what they must not break."""
# Needs: node.

import asyncio

from gateways import HELLO, TOKEN
from harness import expect, main, output, same
from sockets import LIBRARIES

REFUSAL = {"error": "auth_failed", "code": 4001}
NO_TOKEN_WANTED = {"id": "0", "error": "parse error: missing field `id` at line 1 column 26"}

class Line:
    """The line to the client, which asks once."""

    def __init__(self, socket):
        self.socket, self.id = socket, None

    async def send(self, *frames):
        for frame in frames:
            await self.socket.send(frame)

    async def token(self):
        same(await self.socket.next(), {"token": TOKEN}, "the first frame")

    async def asked(self):
        """Reads the chat, which is as the specification shows it."""
        request = await self.socket.next()
        self.id = request["id"]
        expect(isinstance(self.id, str) and self.id not in ("", "0"), request)
        params = {"channel": "cli", "account": "user", "peer": "main", "content": "hi"}
        same(request, {"id": self.id, "method": "chat.send", "params": params}, "the request")

    async def greeted(self):
        await self.send(HELLO)
        await self.asked()

    def event(self, name, *data):
        # In the order of the known gateway.
        return ({"data": data[0]} if data else {}) | {"event": name, "id": self.id}

    async def say(self, *texts):
        await self.send(*(self.event("text", text) for text in texts))

    async def finish(self, *texts):
        await self.say(*texts)
        await self.send(self.event("usage", {"input_tokens": 11, "output_tokens": 2}), self.event("done"))

async def talk(peer, behave, *args):
    """Lets the client talk to a gateway that behaves like this. Returns its exit code and what it prints."""
    async with peer.serve() as server:
        client = asyncio.create_task(output("gateway", "chat", "--url", server.url, *args, "hi"))
        try:
            await behave(Line(await server.accepted()))
            code, out, err = await client
        finally:
            client.cancel()
        same(server.sockets.items, [], "further connections")
        expect("panicked" not in err and TOKEN not in out + err, out + err)
        return code, out, err

async def hears(peer, behave, *args):
    """The client gets the whole answer."""
    same(await talk(peer, behave, *args), (0, "Hello world", ""), "the end")

async def fails(peer, behave, *args, out="", err, code):
    """The client prints what came before, and says why it fails."""
    found = await talk(peer, behave, *args)
    same(found[:2], (code, out), f"the end, beside {found[2]!r}")
    expect(err in found[2], f"no {err!r} in {found[2]!r}")

async def a_chat_is_read_and_closed(peer):
    async def behave(line):
        await line.greeted()
        await line.finish("", "x" * 1_000_000, *["y"] * 2000)
        same((await line.socket.closed())[0], 1000, "the code of the close")

    same(await talk(peer, behave), (0, "x" * 1_000_000 + "y" * 2000, ""), "the end")

    async def goes_without_a_goodbye(line):
        await line.greeted()
        await line.finish("Hello", " world")
        await line.socket.cut()

    await hears(peer, goes_without_a_goodbye)

async def the_token_goes_first_wanted_or_not(peer):
    def behaves(before, behind):
        async def behave(line):
            await line.send(*before)
            await line.token()
            await line.send(*behind)
            await line.asked()
            await line.finish("Hello", " world")

        return behave

    for before, behind in (([], [HELLO]), ([HELLO], [NO_TOKEN_WANTED]), ([], [HELLO, NO_TOKEN_WANTED])):
        await hears(peer, behaves(before, behind), "--token", TOKEN)

async def a_refused_token_is_told(peer):
    for frames, code in (([REFUSAL], 1000), ([REFUSAL], 4001), ([], 4001), ([], 1008)):

        async def behave(line):
            await line.token()
            await line.send(*frames)
            await line.socket.close(code)

        await fails(peer, behave, "--token", TOKEN, err="authentication failed", code=3)

async def what_is_not_of_the_answer_does_not_hurt(peer):
    async def behave(line):
        await line.greeted()
        await line.say("Hel\x1b[2J")
        await line.send(
            {"id": "other", "event": "text", "data": "not yours"},
            {"id": "other", "event": "done"},
            {"id": "other", "result": None, "error": "x"},
            {"id": "0", "error": "parse error: of somebody"},
            line.event("thinking", {"deep": [1, 2]}),
            line.event("text", 7),
            line.event("tool_use", {"id": "c", "name": "echo", "input": {"a": 1}}),
            line.event("tool_result", {"tool_use_id": "c", "content": "fine\x9b"}),
            line.event("usage", {"input_tokens": 1, "output_tokens": 1}) | {"more": 1},
            line.event("text", "lo") | {"error": None, "result": None},
            {"hello": "again"},
            "not json",
            "[]",
            b"\x00\xff",
        )
        await line.socket.send_pieces('{"id":"%s","event":"te' % line.id, 'xt","data":" wor', 'ld"}')
        await line.socket.ping()
        await line.send(line.event("done", None) | {"error": None})

    code, out, err = await talk(peer, behave)
    # Tools are shown beside the answer, and nothing controls the terminal.
    text = out.replace("\n", "").replace("\\u{1b}[2J", "")
    # What cannot be read may have been a part of it.
    same((code, text), (1, "Hello world"), "the answer")
    expect("may be missing" in err and "echo" in err and "fine" in err and not set(out + err) & set("\x1b\x9b"), repr(out + err))

async def body(checks):
    for library in LIBRARIES:
        async with library() as peer:
            await checks.each((
                a_chat_is_read_and_closed, the_token_goes_first_wanted_or_not, a_refused_token_is_told,
                what_is_not_of_the_answer_does_not_hurt,
            ), peer)

main(body)
