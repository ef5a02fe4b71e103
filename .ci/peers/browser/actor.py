"""A gateway and an agent that say what a check tells them to, which real ones never would.

The page is the real program's, with its headers, and so is everything else but the line to it."""

import asyncio
import contextlib
import itertools
import json

import aiohttp
from aiohttp import web
from chatpage import DONE, host, say
from gateways import gateway
from harness import Front, Inbox, expect, same
from screen import look
from sockets import Python, http_server

# Another try comes when the user says so, and the end of a long silence when the check does.
HELD = """window.silences = []; const real = setTimeout; window.setTimeout = (then, ms) =>
    then.name === "open" ? -1 : [45000, 60000].includes(ms) ? -silences.push(then) : real(then, ms);"""
# An answer with some of everything.
RICH = """## What was down

The **mail** server, from 02:14 to *02:31*; see [the log](https://example.com/log) and `mail.log`.

| Service | From | To | What was seen, in the words of the one who has seen it |
|---------|------|---:|---------------------------------------------------------|
| mail | 02:14 | 02:31 | connection_refused_connection_refused_connection_refused |

1. It was restarted.
2. Nothing was lost:
   - no mail
   - no log

> Keep an eye on it.

```rust
// More than a screen of a phone is wide.
fn main() -> Result<(), Box<dyn std::error::Error>> { println!("{}", "a line that does not end soon"); Ok(()) }
```

```diff
-old
+new
```
"""
USAGE = {"input_tokens": 812, "output_tokens": 131}

class AgentFront(Front):
    """What the browser connects to. The WebSocket leads to the actor, everything else to the real program."""

    def __init__(self, real, actor):
        super().__init__(real)
        self.real, self.actor = real, actor

    async def answer(self, path, is_upgrade):
        self.target = self.actor if path == "/ws" else self.real

class GatewayLine:
    """One connection of the gateway's page: a request whose answer grows. Other requests say what the user does."""

    page = "gateway"

    def __init__(self, front, request):
        self.front, self.request, self.response = front, request, None
        # The status of the answer, and the end of the connection.
        self.status, self.over = (asyncio.get_running_loop().create_future() for _ in range(2))

    async def answer(self):
        """Answers as the check says, until the line ends."""
        try:
            if (status := await self.status) != 200:
                return web.Response(status=status)
            self.response = web.StreamResponse()
            await self.response.prepare(self.request)
            self.front.prepared.set()
            await asyncio.shield(self.over)
        finally:
            if not self.over.done():
                self.over.set_result(None)
        return self.response

    async def send(self, frame):
        """Sends a text or bytes as they are, anything else as JSON."""
        data = frame if isinstance(frame, bytes) else (frame if isinstance(frame, str) else json.dumps(frame)).encode()
        with contextlib.suppress(ConnectionError):
            await self.response.write(data + b"\n")

    async def greet(self, *past):
        self.front.prepared.clear()
        self.status.set_result(200)
        await self.front.prepared.wait()
        await self.send({"event": "past", "data": past})

    async def question(self):
        asked = await self.front.inbox.next(lambda it: it["method"] == "POST", "a question")
        await self.send({"event": "asked", "data": asked["body"]})
        return asked["body"]

    async def asked(self):
        """What the user says in the next request."""
        return (await self.question())["content"]

    async def event(self, name, data=None):
        await self.send({"event": name} | ({} if data is None else {"data": data}))

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

    async def refuse(self, status=401):
        self.status.set_result(status)

    async def cut(self):
        if self.request.transport is not None:
            self.request.transport.abort()

    async def closed(self):
        """Waits for the page to close."""
        await asyncio.shield(self.over)

    async def stopped(self):
        """The user stops an answer."""
        path = (await self.front.inbox.next(lambda it: it["method"] == "DELETE", "a stop"))["path"]
        expect(path.endswith("/answer"), f"the page deletes {path}")
        await self.event("stopped")

class GatewayFront:
    """What the browser connects to: the chats are played, everything else comes from the real program."""

    def __init__(self, real):
        self.real, self.inbox, self.lines, self.prepared = real, Inbox(), Inbox(), asyncio.Event()

    async def __aenter__(self):
        self.client, self.server = aiohttp.ClientSession(auto_decompress=False), http_server(self.serve)
        self.port = await self.server.__aenter__()
        return self

    async def __aexit__(self, *error):
        await self.client.close()
        await self.server.__aexit__(*error)

    async def serve(self, request):
        if not request.path.startswith("/chats/"):
            async with self.client.get(f"{self.real.http}{request.path}") as answer:
                kept = {name: answer.headers[name] for name in ("Content-Type", "Content-Security-Policy")}
                return web.Response(status=answer.status, body=await answer.read(), headers=kept)
        if request.method == "GET":
            line = GatewayLine(self, request)
            await self.lines.put(line)
            return await line.answer()
        body = await request.json() if request.can_read_body else None
        await self.inbox.put({"method": request.method, "path": request.path, "body": body})
        return web.Response(status=202)

    async def opened(self):
        return await self.lines.next(what="a connection")

class AgentLine(GatewayLine):
    """One connection of the agent's page."""

    page = "agent"

    def __init__(self, socket):
        self.socket = socket
        self.receive, self.send, self.cut = socket.next, socket.send, socket.cut

    async def greet(self):
        asked = await self.receive()
        same(asked["type"], "CONNECT", "what comes first")
        self.session = asked.get("session_id") or "3f0c1d52-7a43-4c54-9d6b-0f2f6f2d1a11"
        self.numbers = itertools.count(1)
        await self.send({"type": "CONNECTED", "session_id": self.session, "status": "new"})

    async def question(self):
        frame = await self.receive(lambda frame: frame["type"] == "INPUT", "a question")
        await self.event("llm_call", model="scripted", iteration=1, status="running")
        self.id = f"said-{next(self.numbers)}"
        return frame

    async def asked(self):
        return (await self.question())["prompt"]

    async def event(self, name, /, **members):
        known = {"type": name, "id": f"ev-{next(self.numbers)}", "ts": 1.5, "session_id": self.session}
        await self.send(known | members)

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

    async def stopped(self):
        await self.receive(lambda frame: frame["type"] == "INTERRUPT", "an interrupt")
        await self.end("Stopped.")

class Actor:
    """One of the two programs, as a check plays it; `kind` is the class of its connections."""

    def __init__(self, chrome, real, kind):
        self.chrome, self.real, self.kind, self.name = chrome, real, kind, kind.page

    @contextlib.asynccontextmanager
    async def lines(self, before=None, size=None):
        """A page, and a function that returns the next connection that it opens."""
        async with contextlib.AsyncExitStack() as stack:
            if self.kind is GatewayLine:
                front = await stack.enter_async_context(GatewayFront(self.real))
                opened = front.opened
            else:
                library = await stack.enter_async_context(Python())
                server = await stack.enter_async_context(library.serve())
                front = await stack.enter_async_context(AgentFront(self.real.port, server.port))

                async def opened():
                    return AgentLine(await server.accepted())

            page = await stack.enter_async_context(self.chrome.page(before=before))
            if size is not None:
                await look(page, *size)
            await page.goto(f"http://127.0.0.1:{front.port}")
            yield page, opened

    @contextlib.asynccontextmanager
    async def line(self, before=None, size=None):
        """A page that is connected, and its connection."""
        async with self.lines(before, size) as (page, opened):
            line = await opened()
            await line.greet()
            yield page, line

@contextlib.asynccontextmanager
async def actors(chrome):
    """One for each page."""
    async with gateway(config="") as real, host() as helper:
        yield Actor(chrome, real, GatewayLine), Actor(chrome, helper, AgentLine)

async def answered(page, line, question, *pieces):
    """Asks, and lets this be the answer."""
    await say(page, question)
    same(await line.asked(), question, "the question")
    for piece in pieces:
        await line.delta(piece)
    await line.end("".join(pieces))
    await page.until(DONE)
