"""WebSockets of other people's libraries, all alike: `Python`, `Aiohttp` and `Node` open clients and servers.

    async with library() as peer:            # Python() or Node()
        socket = await peer.connect(url)     # or Refused(status, headers, text)
        await socket.send({"type": ".."})    # a text, bytes or what becomes JSON
        frame = await socket.next()          # the next frame that fits, parsed if it is JSON
        code, reason = await socket.closed()
    async with peer.serve() as server:       # server.port; sockets come from server.accepted()
    status, headers, text = await peer.fetch("http://..")
"""

import asyncio
import contextlib
import itertools
import json
from socket import SHUT_RDWR

import aiohttp
import websockets
from aiohttp import WSMsgType, web
from harness import Failed, Inbox, Program, expect, node_folder
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

LARGEST_REQUEST = 64 * 1024 * 1024

@contextlib.asynccontextmanager
async def http_server(handler):
    """Answers all requests by this handler, which is cancelled when its client hangs up; on a free port, which it gives."""
    app = web.Application(client_max_size=LARGEST_REQUEST)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()

class Refused(Exception):
    def __init__(self, status, headers, text):
        super().__init__(f"status {status}: {text[:200]}")
        self.status, self.headers, self.text = status, {name.lower(): value for name, value in headers.items()}, text

class Socket:
    """One connection. `frames` has what came: parsed JSON, or the text or the bytes that are none."""

    def __init__(self):
        self.frames, self.pongs = Inbox(), Inbox()
        self.end = asyncio.get_running_loop().create_future()
        self.path, self.headers, self.protocol = "", {}, ""
        # Whether the connection has any extension, such as compression.
        self.has_extensions = False

    async def received(self, data):
        try:
            data = json.loads(data) if isinstance(data, str) else data
        except ValueError:
            pass
        await self.frames.put(data)

    async def ended(self, code, reason):
        if not self.end.done():
            self.end.set_result((code, reason))
        await self.frames.end()

    async def next(self, fits=lambda frame: True, what="a frame"):
        return await self.frames.next(fits, what)

    async def send(self, frame):
        """Sends a text or bytes as they are, anything else as JSON."""
        await self.transmit(frame if isinstance(frame, (str, bytes)) else json.dumps(frame))

    async def ping(self, text="are you there"):
        """Waits for the pong."""
        await self.send_ping(text)
        await self.pongs.next(lambda pong: pong == text, "a pong")

    async def closed(self):
        """Waits for the end. Returns code and reason; 1006 is a line that broke."""
        return await asyncio.shield(self.end)

class PythonSocket(Socket):
    """A connection of Python's `websockets`."""

    def __init__(self, line):
        super().__init__()
        self.line = line
        self.protocol, self.has_extensions = line.subprotocol or "", bool(line.protocol.extensions)
        if line.request is not None:
            self.path, self.headers = line.request.path, {k.lower(): v for k, v in line.request.headers.raw_items()}
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                await self.received(await self.line.recv())
        await self.line.wait_closed()
        await self.ended(self.line.close_code, self.line.close_reason)

    async def transmit(self, data):
        # What is sent to nobody is lost, as in Node.
        with contextlib.suppress(websockets.ConnectionClosed):
            await self.line.send(data)

    async def send_pieces(self, *pieces):
        await self.line.send(list(pieces))

    async def ping(self, text="are you there"):
        """Waits for the pong."""
        await (await self.line.ping(text))

    async def close(self, code=1000, reason=""):
        await self.line.close(code, reason)
        return await self.closed()

    async def cut(self):
        """Drops the line without a goodbye."""
        # One that has closed already has no loop any more, and stumbles over that.
        with contextlib.suppress(AttributeError):
            self.line.transport.abort()

class Server:
    def __init__(self):
        self.sockets = Inbox()
        # Path and headers of each request that was not a handshake.
        self.asked = []
        self.port = 0

    @property
    def url(self):
        return f"ws://127.0.0.1:{self.port}"

    async def accepted(self):
        return await self.sockets.next(what="a connection")

class Python:
    """Python's `websockets`."""

    name = "Python"

    async def __aenter__(self):
        self.open = []
        return self

    async def __aexit__(self, *_):
        for socket in self.open:
            await socket.cut()

    async def connect(self, url, protocols=None, headers=None, origin=None, compression=None, **options):
        """`compression="deflate"` offers it."""
        try:
            line = await connect(
                url, subprotocols=protocols, additional_headers=headers, origin=origin, max_size=None, ping_interval=None,
                compression=compression, proxy=None, **options,
            )
        except websockets.InvalidStatus as refused:
            response = refused.response
            raise Refused(response.status_code, dict(response.headers.raw_items()), (response.body or b"").decode()) from None
        self.open.append(PythonSocket(line))
        return self.open[-1]

    @contextlib.asynccontextmanager
    async def serve(self, protocol=None, refuse=None, pages={}, **options):
        """A server on a free port. `protocol` is selected if it is offered. `refuse` is (status, text) for every
        handshake. `pages` has (status, text, type) by path for other requests."""
        server = Server()

        async def accept(line):
            socket = PythonSocket(line)
            self.open.append(socket)
            await server.sockets.put(socket)
            await socket.closed()

        def process(line, request):
            if request.path in pages:
                server.asked.append((request.path, {k.lower(): v for k, v in request.headers.raw_items()}))
                status, text, kind = pages[request.path]
                answer = line.respond(status, text)
                del answer.headers["Content-Type"]
                answer.headers["Content-Type"] = kind
                return answer
            return line.respond(*refuse) if refuse else None

        def select(_line, offered):
            return protocol if protocol in offered else None

        async with serve(
            accept, "127.0.0.1", 0, select_subprotocol=select, process_request=process, max_size=None,
            ping_interval=None, compression=None, **options,
        ) as running:
            server.port = running.sockets[0].getsockname()[1]
            yield server

    async def fetch(self, url, method="GET", headers=None, body=None):
        """One request over HTTP, with aiohttp. Returns its status, its headers and its text."""
        async with aiohttp.ClientSession() as session:
            async with session.request(method, url, headers=headers, data=body) as answer:
                return answer.status, {k.lower(): v for k, v in answer.headers.items()}, await answer.text()

class NodeSocket(Socket):
    """A connection of Node's `ws`."""

    def __init__(self, node, own_id):
        super().__init__()
        self.node, self.id = node, own_id
        self.opened = asyncio.get_running_loop().create_future()
        self.pings = Inbox()

    async def happened(self, event):
        kind = event["event"]
        if kind == "message":
            await self.received(event["text"] if "text" in event else bytes.fromhex(event["hex"]))
        elif kind == "open" and not self.opened.done():
            self.protocol, self.has_extensions = event["protocol"], event["extensions"] != ""
            self.opened.set_result(None)
        elif kind == "refused" and not self.opened.done():
            self.opened.set_exception(Refused(event["status"], event["headers"], event["text"]))
        elif kind == "error" and not self.opened.done():
            self.opened.set_exception(OSError(event["text"]))
        elif kind == "ping":
            await self.pings.put(event["text"])
        elif kind == "pong":
            await self.pongs.put(event["text"])
        elif kind == "close":
            await self.ended(event["code"], event["reason"])

    async def transmit(self, data):
        await self.node.order("send", self.id, **({"text": data} if isinstance(data, str) else {"hex": data.hex()}))

    async def send_pieces(self, *pieces):
        for at, piece in enumerate(pieces):
            await self.node.order("send", self.id, text=piece, fin=at + 1 == len(pieces))

    async def send_ping(self, text):
        await self.node.order("ping", self.id, text=text)

    async def close(self, code=1000, reason=""):
        await self.node.order("close", self.id, code=code, reason=reason)
        return await self.closed()

    async def cut(self):
        await self.node.order("terminate", self.id)

class Node:
    """Node's `ws`, in a process of its own."""

    name = "Node"

    async def __aenter__(self):
        self.sockets, self.servers, self.requests = {}, {}, {}
        self.ids = (f"{number}" for number in itertools.count())
        self.process = await Program(["node", node_folder() / "ws.mjs"]).start()
        self.reader = asyncio.create_task(self.read())
        return self

    async def __aexit__(self, *_):
        self.reader.cancel()
        await asyncio.gather(self.reader, return_exceptions=True)
        await self.process.kill()

    async def read(self):
        while True:
            event = await self.process.events.next(what="an event of Node")
            server = self.servers.get(event["id"])
            if event["id"] in self.requests:
                self.requests.pop(event["id"]).set_result(event)
            elif server is None:
                await self.sockets[event["id"]].happened(event)
            elif event["event"] == "asked":
                server.asked.append((event["path"], event["headers"]))
            elif event["event"] == "listening":
                server.port = event["port"]
                server.listens.set_result(None)
            elif event["event"] == "connection":
                socket = NodeSocket(self, event["socket"])
                socket.path, socket.headers = event["path"], event["headers"]
                self.sockets[socket.id] = socket
                await server.sockets.put(socket)

    async def order(self, order, own_id, **more):
        await self.process.write(json.dumps({"order": order, "id": own_id} | more))

    async def connect(self, url, protocols=None, headers=None, origin=None, compression=None, **options):
        options["perMessageDeflate"] = compression is not None
        socket = NodeSocket(self, next(self.ids))
        self.sockets[socket.id] = socket
        await self.order("connect", socket.id, url=url, protocols=protocols, headers=headers or {}, origin=origin, **options)
        await socket.opened
        return socket

    @contextlib.asynccontextmanager
    async def serve(self, protocol=None, refuse=None, pages={}, **options):
        """As `Python.serve`."""
        server, own_id = Server(), next(self.ids)
        server.listens = asyncio.get_running_loop().create_future()
        self.servers[own_id] = server
        refuse = {"status": refuse[0], "text": refuse[1], "headers": {}} if refuse else None
        await self.order("serve", own_id, protocol=protocol, refuse=refuse, pages=pages, **options)
        await server.listens
        try:
            yield server
        finally:
            await self.order("unserve", own_id)

    async def fetch(self, url, method="GET", headers=None, body=None):
        """As `Python.fetch`, with Node's own."""
        own_id = next(self.ids)
        self.requests[own_id] = asyncio.get_running_loop().create_future()
        answered = self.requests[own_id]
        await self.order("fetch", own_id, url=url, method=method, headers=headers or {}, body=body)
        event = await answered
        expect(event["event"] == "answer", f"a request has failed: {event}")
        return event["status"], event["headers"], event["text"]

# It would keep pongs for itself otherwise.
PLAIN = {"max_msg_size": 0, "autoping": False}

class AiohttpSocket(Socket):
    """A connection of aiohttp."""

    def __init__(self, line):
        super().__init__()
        self.line = line
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

    async def send_ping(self, text):
        await self.line.ping(text.encode())

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

        async with http_server(accept) as server.port:
            yield server

LIBRARIES = (Python, Node)

async def refused(opening):
    """What a handshake that must be refused is answered with."""
    try:
        await opening
    except Refused as answer:
        return answer
    raise Failed("the handshake was accepted")

async def closes(socket, code, reason=None):
    """Waits for the end of a connection, which must be this one."""
    found = await socket.closed()
    expect(found[0] == code and reason in (None, found[1]), f"closed with {found} instead of {code} {reason or ''}")
