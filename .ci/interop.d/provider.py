"""A provider of language models that says what it is told to, in the five ways our programs know: the
Messages interface of Anthropic, the chat completions of OpenAI and of vLLM, and OpenAI's Responses,
all streamed as events, and Ollama's lines.

The last text of the user chooses what happens:

    hi, or anything else    "Hello", " world"
    !slow N [WORDS]         N pieces "c0 ", "c1 ", .. with 0.2 s between them
    !long SECONDS           the same, for this long
    !burst N                the same, N pieces without a pause
    !tool NAME JSON         calls a tool, then "after tool"
    !texttool NAME JSON     the same, with "let me look" before the call
    !tools NAME..           calls several tools at once, then "after tool"
    !toolloop [NAME]        calls a tool for ever
    !twins NAME             calls a tool twice under one id
    !big NAME SIZE          calls a tool with this many bytes
    !context                the conversation it was given, as JSON
    !system                 the instructions it was given
    !crlf, !utf8            "Hello", " world" with other line ends; text cut inside of characters
    !http CODE              refuses; `!leak CODE` names the key in doing so
    !toolong                says that the conversation is too long for it, once
    !nomodel                does not have the model
    !length, !refuse        "half", cut at the limit of its length; withheld
    !flaky N                is overloaded N times, then answers
    !redirect               sends the gateway elsewhere
    !eof                    "half", then a clean end without the event that closes an answer
    !cut                    "half", then the connection is reset
    !midstream              "half", then an error as an event
    !garbage, !huge         no events at all, an endless line
    !json                   a whole answer in place of events
    !silent                 never answers; `!stall` says "half" before

It counts eleven tokens read, and one written for each piece and each call. Every request is checked;
what is wrong with one is answered with 400 and kept in `problems`.

For a try by hand: provider.py PORT
"""

import asyncio
import contextlib
import http
import json
import socket
import struct
import sys
from collections import Counter

from dialects import LENGTH, NO_MODEL, REFUSAL, TOO_LONG, dialects
from questions import Malformed, need, readers

KEY = "sk-stub-hunter2"
UTF8 = "grüße, 世界 🦀 e\u0301"


class HungUp(Exception):
    """The gateway has closed the connection."""


class Request:
    """A request, once it is read."""

    def __init__(self, kind, body):
        self.kind, self.body = kind, body
        need(isinstance(body, dict), "no object")
        self.messages, self.system = readers[kind](body)
        asked = [text for role, text in self.messages if role == "user" and text is not None]
        need(asked, "the user says nothing")
        self.text = asked[-1]
        self.has_result = self.messages[-1][0] == "tool"
        # How it has ended: "whole", "hung up", or what the provider did wrong.
        self.end = None
        self.ended = asyncio.Event()

    def __repr__(self):
        return f"{self.kind} {self.text!r} ended {self.end}"


def conversation(request):
    """What `!context` shows: the same for both interfaces, without instructions."""
    shown = [{"content": text, "role": role} for role, text in request.messages]
    return json.dumps(shown, sort_keys=True, ensure_ascii=False)


def calls(request):
    """The calls that an answer makes, if any."""
    command, _, rest = request.text.partition(" ")
    if command == "!toolloop":
        return [(f"loop_{len(request.messages)}", rest or "echo", '{"message": "again"}')]
    if request.has_result:
        return []
    if command in ("!tool", "!texttool"):
        name, _, arguments = rest.partition(" ")
        return [("call_1", name, arguments or "{}")]
    if command == "!twins":
        return [("twin", rest, '{"message": "one"}'), ("twin", rest, '{"message": "two"}')]
    if command == "!big":
        name, _, size = rest.partition(" ")
        return [("call_1", name, json.dumps({"message": "x" * int(size)}))]
    if command == "!tools":
        names = enumerate(rest.split(), 1)
        return [(f"call_{n}", name, json.dumps({"message": f"n{n}"})) for n, name in names]
    return []


class Provider:
    """Serves on a free port. `requests` are those that were well formed, in order."""

    def __init__(self, port=0):
        self.port = port
        self.requests, self.problems = [], []
        self.connections = self.hung_up = 0
        self.failures = Counter()
        self.changed = asyncio.Condition()
        self.tasks = set()

    async def __aenter__(self):
        # Some hundred gateways' connections may come at once.
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.port, backlog=1024)
        self.port = self.server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = {
            "ANTHROPIC_BASE_URL": self.url,
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OLLAMA_HOST": f"127.0.0.1:{self.port}",
            "VLLM_BASE_URL": f"{self.url}/vllm/v1",
            "VLLM_API_KEY": KEY,
            "ANTHROPIC_API_KEY": KEY,
            "OPENAI_API_KEY": KEY,
        }
        return self

    async def __aexit__(self, *_):
        self.server.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def request(self, text, number=1):
        """Waits until this text was asked for the so-manieth time, and returns the request."""
        def found():
            return [request for request in self.requests if request.text == text]

        async with self.changed:
            await self.changed.wait_for(lambda: len(found()) >= number)
        return found()[number - 1]

    async def serve(self, reader, writer):
        self.connections += 1
        task = asyncio.current_task()
        self.tasks.add(task)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while await self.exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, HungUp):
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self.tasks.discard(task)
            writer.close()

    async def exchange(self, reader, writer):
        """Reads one request and answers it. Returns whether the connection lives on."""
        head = await reader.readuntil(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        method, path, _ = line.split(" ")
        headers = {}
        for field in filter(None, fields):
            name, _, value = field.partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await reader.readline(), 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readline()
        else:
            body = await reader.readexactly(int(headers.get("content-length", 0)))
        try:
            request = self.read(method, path, headers, body)
        except (Malformed, ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"{method} {path}: {type(error).__name__} {error} in {body[:2000].decode(errors='replace')}"
            self.problems.append(problem)
            await self.refuse(writer, 400, problem)
            return True
        async with self.changed:
            self.requests.append(request)
            self.changed.notify_all()
        # The gateway sends nothing during an answer, but it may hang up.
        answer = asyncio.create_task(self.answer(request, writer))
        watch = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({answer, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                if watch.exception() is None and watch.result():
                    self.problems.append(f"the gateway spoke during {request}")
                request.end = "hung up"
                self.hung_up += 1
                raise HungUp
            request.end = answer.result()
            return request.end not in ("cut", "closed")
        except ConnectionError:
            request.end = "hung up"
            self.hung_up += 1
            raise HungUp from None
        finally:
            for task in (answer, watch):
                task.cancel()
            await asyncio.gather(answer, watch, return_exceptions=True)
            request.ended.set()

    def read(self, method, path, headers, body):
        need(method == "POST", f"method {method}")
        need(headers.get("content-type", "").startswith("application/json"), "content-type")
        if path == "/v1/messages":
            need(headers.get("x-api-key") == KEY, "x-api-key")
            need(headers.get("anthropic-version") == "2023-06-01", "anthropic-version")
            need("authorization" not in headers, "a key too many")
            return Request("anthropic", json.loads(body))
        need("x-api-key" not in headers, "a key too many")
        if path == "/api/chat":
            need("authorization" not in headers, "a key too many")
            return Request("ollama", json.loads(body))
        need(headers.get("authorization") == f"Bearer {KEY}", "authorization")
        kinds = {"/v1/chat/completions": "openai", "/vllm/v1/chat/completions": "vllm", "/v1/responses": "openai-responses"}
        need(path in kinds, f"path {path}")
        return Request(kinds[path], json.loads(body))

    async def refuse(self, writer, code, message, headers="retry-after: 0\r\n"):
        await self.report(writer, code, {"type": "error", "error": {"type": "stub_error", "message": message}}, headers)

    async def report(self, writer, code, error, headers=""):
        body = json.dumps(error).encode()
        phrase = http.HTTPStatus(code).phrase if code in set(http.HTTPStatus) else ""
        head = f"HTTP/1.1 {code} {phrase}\r\ncontent-type: application/json\r\n{headers}"
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()

    async def answer(self, request, writer):
        """Answers a request. Returns how it has ended."""
        command, _, rest = request.text.partition(" ")
        if command == "!silent":
            await asyncio.sleep(3600)
        if command in ("!http", "!leak"):
            says = f"stub says {rest}" + f", and that {KEY} is no good" * (command == "!leak")
            await self.refuse(writer, int(rest), says)
            return "refused"
        if command == "!flaky":
            self.failures[request.text] += 1
            if self.failures[request.text] <= int(rest):
                await self.refuse(writer, 529, "stub overload")
                return "refused"
        if command == "!toolong":
            self.failures[request.text] += 1
            if self.failures[request.text] == 1:
                await self.report(writer, *TOO_LONG[request.kind])
                return "refused"
        if command == "!nomodel":
            await self.report(writer, 404, NO_MODEL[request.kind])
            return "refused"
        if command == "!redirect":
            await self.refuse(writer, 307, "elsewhere", f"location: {self.url}/elsewhere\r\n")
            return "refused"
        if command == "!json":
            message = {"role": "assistant", "content": [{"type": "text", "text": "at once"}]}
            if request.kind == "ollama":
                message = {"message": {"role": "assistant", "content": "at once"}, "done": True}
            elif request.kind == "openai-responses":
                message = {"status": "completed", "output": [
                    {"type": "message", "content": [{"type": "output_text", "text": "at once"}]}]}
            elif request.kind != "anthropic":
                message = {"choices": [{"message": message | {"content": "at once"}, "finish_reason": "stop"}]}
            body = json.dumps(message).encode()
            head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
            return "whole"
        newline = "\r\n" if command == "!crlf" else "\n"
        dialect = dialects[request.kind](newline)

        async def write(data, size=None):
            """Writes these bytes, in chunks of this size."""
            size = size or len(data)
            for start in range(0, len(data), size):
                part = data[start : start + size]
                writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                await writer.drain()

        kind = getattr(dialect, "content_type", "text/event-stream")
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n".encode())
        writer.write(b"transfer-encoding: chunked\r\n\r\n")
        if command == "!garbage":
            await write(b"<html>no model here</html>\n\n")
            await write(b"data: nonsense\n\n")
        elif command == "!huge":
            for _ in range(48):
                await write(b"data: " + b"x" * 1_000_000)
        else:
            await write(dialect.begin())
            end = await self.tell(request, dialect, write)
            if end in ("length", "refuse"):
                await write(dialect.end((LENGTH if end == "length" else REFUSAL).get(request.kind, "content_filter")))
            elif not end:
                await write(dialect.end(), 1 if command == "!utf8" else None)
            elif end == "cut":
                # Closing with this option resets the connection.
                reset = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                # What was written before must arrive first.
                await asyncio.sleep(0.05)
                writer.transport.abort()
                return end
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return "whole"

    async def tell(self, request, dialect, write):
        """Writes what an answer says. Returns how it breaks off, `None` for a whole one."""
        command, _, rest = request.text.partition(" ")
        if made := calls(request):
            if command == "!texttool":
                await write(dialect.text("let me look"))
            for call in made:
                await write(dialect.call(*call))
        elif request.has_result:
            await write(dialect.text("after tool"))
        elif command in ("!slow", "!long"):
            for n in range(int(rest.split()[0]) if command == "!slow" else int(float(rest) * 5)):
                await write(dialect.text(f"c{n} "))
                await asyncio.sleep(0.2)
        elif command == "!burst":
            for n in range(int(rest)):
                await write(dialect.text(f"c{n} "))
        elif command == "!context":
            await write(dialect.text(conversation(request)))
        elif command == "!system":
            await write(dialect.text(request.system or "none"))
        elif command == "!utf8":
            await write(dialect.text(UTF8), 1)
        elif command in ("!eof", "!cut", "!midstream", "!stall", "!length", "!refuse"):
            await write(dialect.text("half"))
            if command == "!stall":
                await asyncio.sleep(3600)
            if command == "!midstream":
                await write(dialect.error())
            return command[1:]
        else:
            await write(dialect.text("Hello"))
            await write(dialect.text(" world"))
        return None

    def check(self):
        """Fails if a request was not what a provider takes."""
        if self.problems:
            raise Malformed("; ".join(self.problems[:3]))


async def main():
    async with Provider(int(sys.argv[1])) as provider:
        for name, value in provider.env.items():
            print(f"export {name}={value}", flush=True)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
