"""A provider of language models that says what it is told to, in the five ways our programs know: the
Messages interface of Anthropic, the chat completions of OpenAI and of vLLM, and OpenAI's Responses,
all streamed as events, and Ollama's lines.

The last text of the user chooses what happens:

    hi, or anything else    "Hello", " world"
    !slow N                 N pieces "c0 ", "c1 ", .. with 0.2 s between them
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
import re
import socket
import struct
import sys
from collections import Counter

KEY = "sk-stub-hunter2"
INPUT_TOKENS = 11
UTF8 = "grüße, 世界 🦀 e\u0301"
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Malformed(Exception):
    """A real provider would refuse this request."""


def need(condition, what):
    if not condition:
        raise Malformed(what)


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


# --- reading requests --------------------------------------------------------------------------


def common(body):
    need(isinstance(body.get("model"), str) and body["model"], "no model")
    need(body.get("stream") is True, "it wants no stream")
    need(isinstance(body.get("messages"), list) and body["messages"], "no messages")


def tokens(value):
    need(type(value) is int and value > 0, f"max_tokens {value!r}")


def read_anthropic(body):
    """Checks a request as Anthropic does. Returns (role, text) for each message, and the system."""
    common(body)
    tokens(body.get("max_tokens"))
    strange = set(body) - {
        "model", "messages", "max_tokens", "stream", "system", "tools", "tool_choice", "temperature",
    }
    need(not strange, f"unknown members {strange}")
    for tool in body.get("tools", []):
        need(TOOL_NAME.fullmatch(tool.get("name", "")), f"tool {tool}")
        schema = tool.get("input_schema")
        need(isinstance(schema, dict) and schema.get("type") == "object", f"tool {tool}")
        need(set(tool) <= {"name", "description", "input_schema", "cache_control"}, f"tool {tool}")
    names = {tool["name"] for tool in body.get("tools", [])}
    need(len(names) == len(body.get("tools", [])), "a tool is there twice")
    roles = [message.get("role") for message in body["messages"]]
    need(roles[0] == "user", f"roles {roles}")
    need(all(a != b for a, b in zip(roles, roles[1:])), f"roles do not alternate: {roles}")
    read, owed, seen = [], [], set()
    for message in body["messages"]:
        need(set(message) == {"role", "content"}, f"message {message}")
        role, content = message["role"], message["content"]
        need(role in ("user", "assistant"), f"role {role!r}")
        need(content, f"an empty message of {role}")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts, results, calls = [], [], []
        for block in blocks:
            kind = block["type"]
            if kind == "text":
                need(isinstance(block["text"], str) and block["text"].strip(), "an empty text")
                texts.append(block["text"])
            elif kind == "tool_use":
                need(role == "assistant", "a call by the user")
                need(set(block) == {"type", "id", "name", "input"}, f"block {block}")
                need(isinstance(block["input"], dict), f"input {block['input']!r}")
                need(block["id"] not in seen, f"the call {block['id']} is there twice")
                seen.add(block["id"])
                calls.append(block["id"])
            elif kind == "tool_result":
                need(role == "user", "a result of the assistant")
                need(not texts, "text before a result")
                need(set(block) <= {"type", "tool_use_id", "content", "is_error", "cache_control"}, f"block {block}")
                need(isinstance(block.get("is_error", False), bool), f"block {block}")
                results.append(block["tool_use_id"])
            else:
                raise Malformed(f"block {kind!r}")
        need(sorted(results) == sorted(owed), f"results {results} for calls {owed}")
        owed = calls
        only_results = results and not texts
        read.append(("tool" if only_results else role, None if only_results else "".join(texts)))
    need(not owed, f"no results for {owed}")
    need(read[-1][0] in ("user", "tool"), "the assistant has the last word")
    system = body.get("system")
    marks = json.dumps(body).count('"cache_control": {"type": "ephemeral"}')
    need(0 < marks <= 4, f"{marks} marks of the cache")
    if isinstance(system, list):
        system = "\n\n".join(block["text"] for block in system)
    need(system is None or (isinstance(system, str) and system), f"system {system!r}")
    return read, system


def read_openai(body):
    """Checks a request as OpenAI does. Returns the same as for Anthropic."""
    common(body)
    limits = [body[name] for name in ("max_tokens", "max_completion_tokens") if name in body]
    need(len(limits) == 1, "it wants no limit, or two")
    tokens(limits[0])
    need(body.get("stream_options") == {"include_usage": True}, "it wants no usage")
    strange = set(body) - {
        "model", "messages", "max_tokens", "max_completion_tokens", "stream", "stream_options",
        "tools", "tool_choice", "temperature",
    }
    need(not strange, f"unknown members {strange}")
    for tool in body.get("tools", []):
        need(set(tool) == {"type", "function"} and tool["type"] == "function", f"tool {tool}")
        function = tool["function"]
        need(TOOL_NAME.fullmatch(function.get("name", "")), f"tool {tool}")
        need(function.get("parameters", {"type": "object"}).get("type") == "object", f"tool {tool}")
    read, system, owed = [], None, []
    for message in body["messages"]:
        role, content = message["role"], message.get("content")
        need(content is None or isinstance(content, str), f"content of another kind: {message}")
        if role == "tool":
            need(message.get("tool_call_id") in owed, f"a result nobody asked for: {message}")
            owed.remove(message["tool_call_id"])
            need(content is not None, f"an empty result: {message}")
            read.append(("tool", None))
            continue
        need(not owed, f"no results for {owed}")
        if role == "system":
            need(not read, "instructions in mid conversation")
            system = content if system is None else f"{system}\n\n{content}"
            continue
        need(role in ("user", "assistant"), f"role {role!r}")
        for call in message.get("tool_calls") or []:
            need(role == "assistant" and call["type"] == "function", f"call {call}")
            need(isinstance(call["function"]["arguments"], str), f"call {call}")
            owed.append(call["id"])
        need(content or owed, f"an empty message: {message}")
        read.append((role, content))
    need(not owed, f"no results for {owed}")
    need(read and read[-1][0] in ("user", "tool"), "the user does not have the last word")
    return read, system


def read_responses(body):
    """Checks a request as OpenAI's Responses API does. Returns the same as for Anthropic."""
    tokens(body.get("max_output_tokens"))
    strange = set(body) - {
        "model", "instructions", "input", "max_output_tokens", "stream", "store", "tools", "temperature",
    }
    need(not strange, f"unknown members {strange}")
    need(body.get("store") is False, "it wants to be stored")
    for tool in body.get("tools", []):
        need(set(tool) <= {"type", "name", "description", "parameters", "strict"}, f"tool {tool}")
        need(tool["type"] == "function" and TOOL_NAME.fullmatch(tool["name"]), f"tool {tool}")
        need(tool["parameters"]["type"] == "object", f"tool {tool}")
    read, owed = [], []
    for item in body["input"]:
        kind = item["type"]
        if kind == "function_call":
            need(set(item) == {"type", "call_id", "name", "arguments"}, f"item {item}")
            need(isinstance(item["arguments"], str) and item["call_id"], f"item {item}")
            if not owed and read[-1][0] != "assistant":
                read.append(("assistant", None))
            owed.append(item["call_id"])
        elif kind == "function_call_output":
            need(set(item) == {"type", "call_id", "output"}, f"item {item}")
            need(item["call_id"] in owed, f"a result nobody asked for: {item}")
            owed.remove(item["call_id"])
            read.append(("tool", None))
        else:
            need(kind == "message" and set(item) == {"type", "role", "content"}, f"item {item}")
            need(not owed, f"no results for {owed}")
            need(item["role"] in ("user", "assistant") and item["content"], f"item {item}")
            read.append((item["role"], item["content"]))
    need(not owed, f"no results for {owed}")
    need(read and read[-1][0] in ("user", "tool"), "the user does not have the last word")
    return read, body.get("instructions")


def read_ollama(body):
    """Checks a request as Ollama does. Returns the same as for Anthropic."""
    common(body)
    need(set(body) <= {"model", "messages", "tools", "options", "stream"}, f"members {set(body)}")
    options = body["options"]
    tokens(options.get("num_predict"))
    tokens(options.get("num_ctx"))
    need(set(options) <= {"num_predict", "num_ctx", "temperature"}, f"options {options}")
    read, system, owed = [], None, []
    for message in body["messages"]:
        role, content = message["role"], message["content"]
        need(set(message) <= {"role", "content", "images", "tool_calls", "tool_name"}, f"message {message}")
        need(isinstance(content, str), f"content of another kind: {message}")
        if role == "system":
            system = content if system is None else f"{system}\n\n{content}"
        elif role == "tool":
            need(message["tool_name"] in owed, f"a result nobody asked for: {message}")
            owed.remove(message["tool_name"])
            read.append(("tool", None))
        else:
            need(role in ("user", "assistant"), f"role {role!r}")
            for call in message.get("tool_calls", []):
                need(isinstance(call["function"]["arguments"], dict), f"call {call}")
                owed.append(call["function"]["name"])
            read.append((role, content))
    return read, system


readers = {
    "anthropic": read_anthropic, "openai": read_openai, "vllm": read_openai,
    "openai-responses": read_responses, "ollama": read_ollama,
}


# --- writing answers ---------------------------------------------------------------------------


class Anthropic:
    """The events of one answer of Anthropic."""

    def __init__(self, newline):
        self.newline, self.index, self.open, self.written = newline, -1, False, 0
        self.stop_reason = "end_turn"

    def event(self, kind, **members):
        data = json.dumps({"type": kind} | members, ensure_ascii=False)
        return f"event: {kind}\ndata: {data}\n\n".replace("\n", self.newline).encode()

    def begin(self):
        usage = {"input_tokens": INPUT_TOKENS, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage}
        return self.event("message_start", message=message) + self.event("ping")

    def block(self, block):
        self.index += 1
        return self.event("content_block_start", index=self.index, content_block=block)

    def delta(self, **delta):
        return self.event("content_block_delta", index=self.index, delta=delta)

    def close(self):
        closed = self.event("content_block_stop", index=self.index) if self.open else b""
        self.open = False
        return closed

    def text(self, text):
        self.written += 1
        start = b"" if self.open else self.block({"type": "text", "text": ""})
        self.open = True
        return start + self.delta(type="text_delta", text=text)

    def call(self, id, name, arguments):
        self.written += 1
        self.stop_reason = "tool_use"
        parts = [self.close(), self.block({"type": "tool_use", "id": id, "name": name, "input": {}})]
        half = len(arguments) // 2
        for piece in ("", arguments[:half], arguments[half:]):
            parts.append(self.delta(type="input_json_delta", partial_json=piece))
        self.open = True
        return b"".join(parts) + self.close()

    def error(self):
        return self.event("error", error={"type": "overloaded_error", "message": "stub overload"})

    def end(self, reason=None):
        usage, delta = {"output_tokens": self.written}, {"stop_reason": reason or self.stop_reason}
        return self.close() + self.event("message_delta", delta=delta, usage=usage) + self.event("message_stop")


class OpenAi:
    """The events of one answer of OpenAI."""

    def __init__(self, newline):
        self.newline, self.calls, self.written = newline, 0, 0

    def data(self, data):
        data = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        return f"data: {data}\n\n".replace("\n", self.newline).encode()

    def choice(self, delta, finish=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return self.data({"object": "chat.completion.chunk", "choices": [choice]})

    def begin(self):
        return self.choice({"role": "assistant", "content": ""})

    def text(self, text):
        self.written += 1
        return self.choice({"content": text})

    def call(self, id, name, arguments):
        self.written += 1
        index, self.calls = self.calls, self.calls + 1
        function = {"name": name, "arguments": ""}
        call = {"index": index, "id": id, "type": "function", "function": function}
        parts = [self.choice({"tool_calls": [call]})]
        half = len(arguments) // 2
        for piece in (arguments[:half], arguments[half:]):
            parts.append(self.choice({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
        return b"".join(parts)

    def error(self):
        return self.data({"error": {"type": "server_error", "message": "stub overload"}})

    def end(self, reason=None):
        total = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": self.written}
        total["total_tokens"] = INPUT_TOKENS + self.written
        finish = self.choice({}, reason or ("tool_calls" if self.calls else "stop"))
        return finish + self.data({"choices": [], "usage": total}) + self.data("[DONE]")


class Vllm(OpenAi):
    """The events of one answer of vLLM: as OpenAI's, with thoughts."""

    def begin(self):
        return self.choice({"role": "assistant", "content": ""}) + self.choice({"reasoning_content": "hm"})


class Responses(Anthropic):
    """The events of one answer of the Responses API."""

    def __init__(self, newline):
        super().__init__(newline)
        self.reason, self.calls = None, 0

    def begin(self):
        return self.event("response.created", response={"id": "resp_1", "status": "in_progress"})

    def text(self, text):
        self.written += 1
        return self.event("response.output_text.delta", output_index=0, delta=text)

    def call(self, id, name, arguments):
        self.written += 1
        self.calls += 1
        index, item = self.calls, {"type": "function_call", "call_id": id, "name": name}
        half = len(arguments) // 2
        parts = [self.event("response.output_item.added", output_index=index, item=item | {"arguments": ""})]
        for piece in (arguments[:half], arguments[half:]):
            parts.append(self.event("response.function_call_arguments.delta", output_index=index, delta=piece))
        done = {"output_index": index, "arguments": arguments}
        parts.append(self.event("response.function_call_arguments.done", **done))
        parts.append(self.event("response.output_item.done", output_index=index, item=item | {"arguments": arguments}))
        return b"".join(parts)

    def error(self):
        error = {"code": "server_error", "message": "stub overload"}
        return self.event("response.failed", response={"status": "failed", "error": error})

    def end(self, reason=None):
        kind = "incomplete" if reason else "completed"
        usage = {"input_tokens": INPUT_TOKENS, "output_tokens": self.written}
        response = {"status": kind, "usage": usage, "incomplete_details": reason and {"reason": reason}}
        return self.event(f"response.{kind}", response=response)


class Ollama:
    """The lines of one answer of Ollama."""

    content_type = "application/x-ndjson"

    def __init__(self, newline):
        self.newline, self.written = newline, 0

    def line(self, **members):
        return (json.dumps({"model": "stub"} | members, ensure_ascii=False) + self.newline).encode()

    def message(self, **members):
        self.written += 1
        return self.line(message={"role": "assistant", "content": ""} | members, done=False)

    def begin(self):
        self.written -= 1
        return self.message(thinking="hm")

    def text(self, text):
        return self.message(content=text)

    def call(self, id, name, arguments):
        try:
            function = {"name": name, "arguments": json.loads(arguments)}
        except ValueError:
            function = {"name": name, "arguments": {}}
        return self.message(tool_calls=[{"function": function}])

    def error(self):
        return self.line(error="stub overload")

    def end(self, reason="stop"):
        counts = {"prompt_eval_count": INPUT_TOKENS, "eval_count": self.written}
        return self.line(message={"role": "assistant", "content": ""}, done=True, done_reason=reason, **counts)


dialects = {
    "anthropic": Anthropic, "openai": OpenAi, "vllm": Vllm, "openai-responses": Responses, "ollama": Ollama,
}
LENGTH = {
    "anthropic": "max_tokens", "openai": "length", "vllm": "length", "openai-responses": "max_output_tokens",
    "ollama": "length",
}
REFUSAL = {"anthropic": "refusal", "openai-responses": "content_filter"}
# How each says that a conversation is too long, and that it does not have a model.
TOO_LONG = {
    "anthropic": (400, {"type": "error", "error": {
        "type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum"}}),
    "openai": (400, {"error": {
        "message": "This model's maximum context length is 128000 tokens.", "type": "invalid_request_error",
        "param": "messages", "code": "context_length_exceeded"}}),
    "openai-responses": (400, {"error": {
        "message": "Your input exceeds the context window of this model.", "type": "invalid_request_error",
        "param": "input", "code": "context_length_exceeded"}}),
    "vllm": (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens. However, "
        "you requested 9000 tokens (4904 in the messages, 4096 in the completion).",
        "type": "BadRequestError", "param": None, "code": 400}),
    "ollama": (400, {"error": "the input length exceeds the context length"}),
}
NO_MODEL = {
    "anthropic": {"type": "error", "error": {"type": "not_found_error", "message": "model: stub"}},
    "openai": {"error": {"message": "The model `stub` does not exist", "code": "model_not_found"}},
    "openai-responses": {"error": {"message": "The model `stub` does not exist", "code": "model_not_found"}},
    "vllm": {"error": {"message": "The model `stub` does not exist.", "type": "NotFoundError", "code": 404}},
    "ollama": {"error": 'model "stub" not found, try pulling it first'},
}


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
            for n in range(int(rest) if command == "!slow" else int(float(rest) * 5)):
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
