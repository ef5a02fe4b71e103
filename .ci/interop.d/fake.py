"""A Snek server in Python for one bot."""

import asyncio
import contextlib
import json
import sys

from aiohttp import WSMsgType, web
from common import expect, program
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

SWITCHBOARD = sys.argv[1]
CHANNELS = [{"uid": "dm1", "name": "Ann", "tag": "dm", "color": "#123456", "new_count": 0}]


def chat(text, **more):
    event = {"event": "message", "message": text, "username": "ann", "user_nick": "Ann"}
    return event | {"channel_uid": "dm1", "is_final": True} | more


class Line:
    """One connection of the bot, whatever library carries it."""

    def __init__(self, send, transport, close):
        self.send_data, self.transport, self.close = send, transport, close

    async def send(self, data):
        await self.send_data(data if isinstance(data, (str, bytes)) else json.dumps(data))

    async def answer(self, request, data=None, **more):
        await self.send({"callId": request["callId"], "success": True, "data": data} | more)

    def cut(self):
        """Drops the line without a closing handshake."""
        self.transport.abort()


class Fake:
    """A server for one bot. `opened` gives each line once its login is done, `sent` what the bot
    posts. A subclass overrides what it does wrong."""

    def __init__(self):
        self.logins = 0
        self.opened = asyncio.Queue()
        self.sent = asyncio.Queue()
        self.log = []

    async def on_login(self, line, request):
        await line.answer(request, {"username": "bot", "nick": "Botty", "uid": "u1"})

    async def on_send(self, line, request):
        await line.answer(request, {"uid": "m1"})

    async def on_request(self, line, request):
        method = request["method"]
        self.log.append(method)
        if method == "login":
            self.logins += 1
            expect(request["args"] == ["bot", "secret"], request)
            await self.on_login(line, request)
        elif method == "get_user":
            await line.answer(request, {"username": "bot", "nick": "Botty"})
        elif method == "get_channels":
            await line.answer(request, CHANNELS)
            self.opened.put_nowait(line)
        elif method == "send_message":
            self.sent.put_nowait((request["args"], line, request))
            await self.on_send(line, request)
        else:
            await line.answer(request)

    async def serve_websockets(self, socket):
        line = Line(socket.send, socket.transport, socket.close)
        # Lines are lost on purpose here.
        with contextlib.suppress(ConnectionClosed):
            async for text in socket:
                await self.on_request(line, json.loads(text))

    async def serve_aiohttp(self, request):
        socket = web.WebSocketResponse(heartbeat=0.2)
        await socket.prepare(request)
        line = Line(socket.send_str, request.transport, socket.close)
        async for message in socket:
            if message.type == WSMsgType.TEXT:
                await self.on_request(line, json.loads(message.data))
        return socket

    async def asked(self, line, text):
        """Says something to the bot and returns what it posts."""
        await line.send(chat(text))
        return await self.answered()

    async def answered(self):
        (channel, text, is_final), _, _ = await self.sent.get()
        expect(channel == "dm1" and is_final is True, f"{channel} {is_final}")
        return text


@contextlib.asynccontextmanager
async def bot_at(fake, *args, **env):
    """The server on a free port, and the bot that connects to it."""
    async with serve(fake.serve_websockets, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        url = ["--url", f"ws://127.0.0.1:{port}", "--username", "bot"]
        async with program(SWITCHBOARD, "bot", *url, *args, SNEK_PASSWORD="secret", **env) as bot:
            yield bot
