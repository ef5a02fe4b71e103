"""A gateway that does what a check tells it to: silence, unknown events, a cut in mid-stream.

Its page is the real gateway's, with the real headers.
"""

import asyncio
import contextlib
import json

import aiohttp
from aiohttp import WSMsgType, web

from common import Failed

HELLO = {"ok": True, "version": "0.1.0"}
KEPT = ["Content-Type", "Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"]


class Closed(Exception):
    """The page went away."""


class Line:
    """One connection of the page."""

    def __init__(self, socket, transport):
        self.socket = socket
        self.transport = transport
        self.id = None

    async def send(self, frame):
        await self.socket.send_str(frame if isinstance(frame, str) else json.dumps(frame))

    async def receive(self):
        message = await self.socket.receive()
        if message.type != WSMsgType.TEXT:
            raise Closed
        return json.loads(message.data)

    async def question(self):
        """The next request, whose id the events then carry."""
        frame = await self.receive()
        self.id = frame.get("id")
        return frame

    async def event(self, name, data=None):
        frame = {"data": data, "event": name, "id": self.id}
        await self.send({key: value for key, value in frame.items() if value is not None})

    async def answer(self, text):
        await self.question()
        await self.event("text", text)
        await self.event("done")

    async def refuse(self):
        await self.send({"error": "auth_failed", "code": 4001})
        await self.socket.close(code=4001)

    async def cut(self):
        self.transport.abort()

    async def closed(self):
        """Waits for the page to close."""
        with contextlib.suppress(Closed):
            await self.receive()
            raise Failed("the page sent something")


class Fake:
    def __init__(self, url, lines):
        self.url = url
        self.lines = lines

    async def line(self):
        """The next connection that the page opens."""
        return await self.lines.get()

    async def greeted(self):
        line = await self.line()
        await line.send(HELLO)
        return line


@contextlib.asynccontextmanager
async def fake(pages, page_text=None):
    """`pages` is the real gateway; `page_text` replaces its page."""
    lines = asyncio.Queue()

    async def ws(request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await lines.put(Line(socket, request.transport))
        # The check reads. The connection stays until one of the two closes it.
        while not socket.closed and request.transport is not None:
            await asyncio.sleep(0.02)
        return socket

    async def get(request):
        if page_text is not None:
            return web.Response(text=page_text, content_type="text/html")
        async with session.get(pages + request.path) as real:
            headers = {name: real.headers[name] for name in KEPT if name in real.headers}
            return web.Response(status=real.status, body=await real.read(), headers=headers)

    async def markdown(request):
        kind = {"Content-Type": request.headers["Content-Type"]}
        async with session.post(pages + request.path, data=await request.read(), headers=kind) as real:
            return web.Response(status=real.status, body=await real.read(), content_type=real.content_type)

    app = web.Application()
    app.add_routes([web.get("/ws", ws), web.post("/markdown", markdown), web.get("/{rest:.*}", get)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    async with aiohttp.ClientSession() as session:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        try:
            yield Fake(f"http://127.0.0.1:{port}", lines)
        finally:
            await runner.cleanup()
