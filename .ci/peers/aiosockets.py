"""WebSockets of Python's `aiohttp`, with the interface of sockets.py."""

import asyncio
import contextlib
from socket import SHUT_RDWR

import aiohttp
from aiohttp import WSMsgType, web
from harness import Inbox
from sockets import Refused, Server, Socket

# It would keep pongs for itself otherwise.
PLAIN = {"max_msg_size": 0, "autoping": False}


class AiohttpSocket(Socket):
    """A connection of aiohttp."""

    def __init__(self, line):
        super().__init__()
        self.line = line
        self.pongs = Inbox()
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        reason = ""
        while (got := await self.line.receive()).type not in (WSMsgType.CLOSED, WSMsgType.ERROR):
            match got.type:
                case WSMsgType.CLOSING:
                    # `close` knows how this ends.
                    return
                case WSMsgType.CLOSE:
                    reason = got.extra or ""
                case WSMsgType.PING:
                    await self.line.pong(got.data)
                case WSMsgType.PONG:
                    await self.pongs.put(got.data.decode())
                case _:
                    await self.received(got.data)
        await self.ended(self.line.close_code or 1006, reason)

    async def transmit(self, data):
        await (self.line.send_str(data) if isinstance(data, str) else self.line.send_bytes(data))

    async def ping(self, text="are you there"):
        """Waits for the pong."""
        await self.line.ping(text.encode())
        await self.pongs.next(lambda pong: pong == text, "a pong")

    async def close(self, code=1000, reason=""):
        await self.line.close(code=code, message=reason.encode())
        await self.ended(self.line.close_code or 1006, "")
        return await self.closed()

    async def cut(self):
        """Drops the line without a goodbye."""
        if raw := self.line.get_extra_info("socket"):
            raw.shutdown(SHUT_RDWR)


class Aiohttp:
    """Python's `aiohttp`."""

    name = "aiohttp"

    async def __aenter__(self):
        self.session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_):
        await self.session.close()

    async def connect(self, url, headers=None, compression=None):
        """`compression="deflate"` offers it."""
        how = PLAIN | {"headers": headers, "compress": 15 if compression else 0}
        try:
            return AiohttpSocket(await self.session.ws_connect(url, **how))
        except aiohttp.WSServerHandshakeError as error:
            raise Refused(error.status, dict(error.headers or {}), error.message) from None

    @contextlib.asynccontextmanager
    async def serve(self):
        """A server on a free port."""
        server = Server()

        async def accept(request):
            line = web.WebSocketResponse(compress=False, **PLAIN)
            await line.prepare(request)
            socket = AiohttpSocket(line)
            await server.sockets.put(socket)
            await socket.closed()
            return line

        app = web.Application()
        app.router.add_get("/{path:.*}", accept)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            server.port = runner.addresses[0][1]
            yield server
        finally:
            await runner.cleanup()
