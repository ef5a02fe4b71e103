"""Answers of providers of language models, as each of them streams them."""

import json

INPUT_TOKENS = 11


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
