"""A gateway and an agent that do what a check tells them to: silence, unknown events, a cut in mid-stream.

The page is the real program's, with the real headers, and so is everything else but the WebSocket.
"""

import asyncio
import contextlib
import itertools
import json
import time

import aiohttp
from aiohttp import WSMsgType, web

from common import Failed, expect

HELLO = {"ok": True, "version": "0.1.0"}
USAGE = {"input_tokens": 812, "output_tokens": 131}
ASKED = ["Authorization", "Content-Type"]
KEPT = ["Content-Type", "Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"]


class Closed(Exception):
    """The page went away."""


class Line:
    """One connection of the gateway's page."""

    page = "gateway"

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

    async def greet(self):
        await self.send(HELLO)

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
        await self.delta(text)
        await self.end(text)

    async def delta(self, text):
        """More of the answer."""
        await self.event("text", text)

    async def end(self, text):
        """Ends the answer; this is the whole text of it."""
        await self.event("usage", USAGE)
        await self.event("done")

    async def fail(self, text):
        await self.event("error", text)

    async def tool(self, name, args, result):
        await self.event("tool_use", {"id": name, "name": name, "input": args})
        await self.event("tool_result", {"tool_use_id": name, "content": result})

    async def refuse(self):
        await self.send({"error": "auth_failed", "code": 4001})
        await self.socket.close(code=4001)

    async def cut(self):
        self.transport.abort()

    async def stopped(self):
        """Waits until the user stops the answer, and ends it."""
        await self.closed()

    async def closed(self):
        """Waits for the page to close."""
        with contextlib.suppress(Closed):
            await self.receive()
            raise Failed("the page sent something")


class AgentLine(Line):
    """One connection of the agent's page."""

    page = "agent"

    async def greet(self):
        asked = await self.receive()
        expect(asked["type"] == "CONNECT", f"it connects: {asked}")
        self.session = asked.get("session_id") or "3f0c1d52-7a43-4c54-9d6b-0f2f6f2d1a11"
        self.numbers = itertools.count(1)
        await self.send({"type": "CONNECTED", "session_id": self.session, "status": "new"})

    async def question(self):
        while (frame := await self.receive())["type"] != "INPUT":
            pass
        await self.event("llm_call", model="scripted", iteration=1, status="running")
        self.id = f"said-{next(self.numbers)}"
        return frame

    async def stopped(self):
        while (await self.receive())["type"] != "INTERRUPT":
            pass
        await self.end("Stopped.")

    async def event(self, name, /, **members):
        frame = {"type": name, "id": f"ev-{next(self.numbers)}", "ts": time.time(), "session_id": self.session}
        await self.send(frame | members)

    async def delta(self, text):
        await self.event("assistant_delta", content=text, message_id=self.id)

    async def end(self, text):
        await self.event("llm_result", model="scripted", iteration=1, status="success", duration_ms=5, usage=USAGE)
        messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]
        session = {"session_id": self.session, "messages": messages, "turn": 1}
        await self.send({"type": "OUTPUT", "result": text, "session_id": self.session, "session": session})

    async def fail(self, text):
        await self.send({"type": "ERROR", "message": text, "session_id": self.session})

    async def tool(self, name, args, result):
        await self.event("tool_call", tool_id=name, name=name, args=args)
        await self.event("tool_result", tool_id=name, name=name, args=args, status="success", result=result)
        self.id = f"said-{next(self.numbers)}"


class Fake:
    def __init__(self, url, lines):
        self.url = url
        self.lines = lines

    async def line(self):
        """The next connection that the page opens."""
        return await self.lines.get()

    async def greeted(self):
        line = await self.line()
        await line.greet()
        return line


@contextlib.asynccontextmanager
async def fake(pages, page_text=None, line=Line):
    """`pages` is the real program; `page_text` replaces its page. `line` is what a connection becomes."""
    lines = asyncio.Queue()

    async def ws(request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await lines.put(line(socket, request.transport))
        # The check reads. The connection stays until one of the two closes it.
        while not socket.closed and request.transport is not None:
            await asyncio.sleep(0.02)
        return socket

    async def rest(request):
        if page_text is not None:
            return web.Response(text=page_text, content_type="text/html")
        asked = {name: request.headers[name] for name in ASKED if name in request.headers}
        if "Origin" in request.headers:
            asked["Origin"] = pages
        body = await request.read()
        async with session.request(request.method, pages + request.path_qs, headers=asked, data=body) as real:
            headers = {name: real.headers[name] for name in KEPT if name in real.headers}
            return web.Response(status=real.status, body=await real.read(), headers=headers)

    app = web.Application(client_max_size=16 * 1024 * 1024)
    app.add_routes([web.get("/ws", ws), web.route("*", "/{rest:.*}", rest)])
    runner = web.AppRunner(app, shutdown_timeout=2)
    # A connection that is kept may just be closed by the other side.
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        try:
            yield Fake(f"http://127.0.0.1:{port}", lines)
        finally:
            await runner.cleanup()
