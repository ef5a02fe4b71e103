"""A provider of language models that says what it is told to, with each interface that our programs know.

The last text of the user chooses what happens. The name of a person before it, as in "Ann: !stall", does not matter:

    hi, or anything else    "Hello", " world"
    !slow N [WORDS]         N pieces "c0 ", "c1 ", .. with a little time between them; `!burst N` without
    !stall                  "half", then nothing until the check calls `request.go()`, then " done"
    !silent                 nothing until then, then "Hello", " world"
    !tool NAME JSON         calls a tool, then "after tool"; `!texttool NAME JSON` says "let me look" before
    !tools NAME..           calls several tools at once, then "after tool"
    !big NAME SIZE          calls a tool with this many bytes
    !context                the conversation that it was given, as JSON
    !crlf, !utf8            "Hello", " world" with other line ends; text that is cut inside of characters
    !http CODE              refuses; `!leak CODE` names the key in doing so
    !toolong                says that the conversation is too long for it, once
    !flaky N                is overloaded N times, then answers
    !length, !refuse        "half", cut at the limit of its length; withheld
    !eof                    "half", then a clean end without what closes an answer
    !cut                    "half", then the connection is reset
    !midstream              "half", then an error in the stream
    !garbage                no answer at all
    !json                   a whole answer in place of a stream

It counts eleven tokens read, and one written for each piece and each call. Every request is read as strictly as a real
provider does; what is wrong with one is answered with 400 and kept in `problems`."""

import asyncio
import json
import re
import socket
import struct

from aiohttp import web
from harness import expect
from provider_answers import ANSWERS
from provider_requests import READERS, Malformed, need
from sockets import http_server

KEY = "sk-stub-hunter2"
KINDS = tuple(ANSWERS)
UTF8 = "grüße, 世界 🦀 e\u0301"
PATHS = {
    "/v1/messages": "anthropic",
    "/v1/chat/completions": "openai",
    "/api/chat": "ollama",
    "/vllm/v1/chat/completions": "vllm",
}
# How each says that a conversation is too long.
TOO_LONG = {
    "anthropic": "prompt is too long: 208310 tokens > 200000 maximum",
    "openai": "This model's maximum context length is 128000 tokens.",
    "ollama": "the input length exceeds the context length",
    "vllm": "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens.",
}

class Request:
    """A request, once it is read."""

    def __init__(self, kind, body, connection):
        self.kind, self.body, self.connection = kind, body, connection
        self.messages = READERS[kind](body)
        asked = [text for role, text in self.messages if role == "user" and text is not None]
        need(asked, "the user says nothing")
        self.text = asked[-1]
        self.command, _, self.rest = re.sub(r"^\w+: (?=!)", "", self.text).partition(" ")
        self.has_result = self.messages[-1][0] == "tool"
        self.may_go = asyncio.Event()
        # How its stream has ended: "whole", "cut" or "hung up".
        self.end = asyncio.get_running_loop().create_future()

    def go(self):
        """Lets `!stall` and `!silent` go on."""
        self.may_go.set()

    async def was_hung_up(self):
        found = await asyncio.shield(self.end)
        expect(found == "hung up", f"{self.kind} {self.text!r} is {found}")

    def calls(self):
        """The calls that an answer makes, if any."""
        name, _, more = self.rest.partition(" ")
        if self.has_result:
            return []
        if self.command in ("!tool", "!texttool"):
            return [("call_1", name, more or "{}")]
        if self.command == "!big":
            return [("call_1", name, json.dumps({"message": "x" * int(more)}))]
        if self.command == "!tools":
            names = enumerate(self.rest.split(), 1)
            return [(f"call_{n}", name, json.dumps({"message": f"n{n}"})) for n, name in names]
        return []

    def pieces(self):
        """The texts of an answer that ends well."""
        if self.has_result:
            return ["after tool"]
        if self.command in ("!slow", "!burst"):
            return [f"c{n} " for n in range(int(self.rest.split()[0]))]
        if self.command == "!context":
            told = [{"content": text, "role": role} for role, text in self.messages]
            return [json.dumps(told, sort_keys=True, ensure_ascii=False)]
        others = {"!utf8": [UTF8], "!stall": [" done"], "!length": [], "!refuse": []}
        return others.get(self.command, ["Hello", " world"])

class Provider:
    """Serves on a free port, with `url` and the `env` of our programs. `requests` are those that were well formed."""

    def __init__(self):
        self.requests, self.problems = [], []
        self.changed = asyncio.Condition()

    async def __aenter__(self):
        self.server = http_server(self.serve)
        self.port = await self.server.__aenter__()
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

    async def __aexit__(self, *error):
        await self.server.__aexit__(*error)

    def asked(self, text):
        """The requests in which the user says this last, follow-ups after tools as well."""
        return [request for request in self.requests if request.text == text]

    async def request(self, text):
        """Waits until this was asked, and returns the first such request."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.asked(text))
        return self.asked(text)[0]

    def check(self):
        """Fails if a request was not what a provider takes."""
        expect(not self.problems, "; ".join(self.problems[:3]))

    async def serve(self, http):
        if http.method == "GET" and http.path.endswith(("/models", "/api/tags")):
            return web.json_response({"data": [{"id": "stub"}, {"id": "other"}]})
        body = await http.read()
        try:
            request = self.read(http, body)
        except (Malformed, ValueError, LookupError, TypeError, AttributeError) as error:
            start = body[:2000].decode(errors="replace")
            said = f"{http.method} {http.path}: {type(error).__name__} {error} in {start}"
            self.problems.append(said)
            return refusal(400, said)
        async with self.changed:
            self.requests.append(request)
            self.changed.notify_all()
        if (response := self.at_once(request)) is not None:
            return response
        end, response = "hung up", web.StreamResponse()
        try:
            end = await self.stream(request, http, response)
        except ConnectionError:
            pass
        finally:
            request.end.set_result(end)
        return response

    def read(self, http, body):
        need(http.method == "POST", "another method")
        need(http.content_type == "application/json", "content-type")
        kind = PATHS[http.path]
        key = {name: http.headers[name] for name in ("x-api-key", "authorization") if name in http.headers}
        if kind == "anthropic":
            need(http.headers.get("anthropic-version") == "2023-06-01", "anthropic-version")
            need(key == {"x-api-key": KEY}, f"key {key}")
        else:
            need(key == ({} if kind == "ollama" else {"authorization": f"Bearer {KEY}"}), f"key {key}")
        return Request(kind, json.loads(body), http.protocol)

    def at_once(self, request):
        """The answer, if it is none of a stream."""
        command, rest = request.command, request.rest
        count = len(self.asked(request.text))
        if command in ("!http", "!leak"):
            return refusal(int(rest), f"stub says {rest}" + f", and that {KEY} is no good" * (command == "!leak"))
        if command == "!flaky" and count <= int(rest):
            return refusal(529, "stub overload")
        if command == "!toolong" and count == 1:
            return refusal(400, TOO_LONG[request.kind])
        return web.json_response(ANSWERS[request.kind].AT_ONCE) if command == "!json" else None

    async def stream(self, request, http, response):
        """Streams an answer. Returns how it has ended."""
        command = request.command
        answer = ANSWERS[request.kind]("\r\n" if command == "!crlf" else "\n")
        response.content_type = answer.content_type
        if command == "!silent":
            await request.may_go.wait()
        await response.prepare(http)
        if command == "!garbage":
            await response.write(b"<html>no model here</html>\n\ndata: nonsense\n\n")
            return "whole"
        await response.write(answer.begin())
        if command in ("!eof", "!cut", "!midstream", "!length", "!refuse", "!stall"):
            await response.write(answer.text("half"))
        if command == "!cut":
            # Closing with this option resets the connection.
            line = http.transport.get_extra_info("socket")
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            http.transport.abort()
            return "cut"
        if command == "!midstream":
            await response.write(answer.error())
        if command in ("!eof", "!midstream"):
            return "whole"
        if command == "!stall":
            await request.may_go.wait()
        if command == "!texttool" and not request.has_result:
            await response.write(answer.text("let me look"))
        calls = request.calls()
        for call in calls:
            await response.write(answer.call(*call))
        for piece in [] if calls else request.pieces():
            if command == "!slow":
                await asyncio.sleep(0.02)
            for part in split(answer.text(piece), command == "!utf8"):
                await response.write(part)
        reasons = {"!length": answer.LENGTH, "!refuse": answer.REFUSAL}
        for part in split(answer.end(reasons.get(command)), command == "!utf8"):
            await response.write(part)
        return "whole"

def refusal(status, message):
    error = {"type": "error", "error": {"type": "stub_error", "message": message}}
    return web.json_response(error, status=status, headers={"retry-after": "0"})

def split(data, is_split):
    return [data[at : at + 1] for at in range(len(data))] if is_split else [data]
