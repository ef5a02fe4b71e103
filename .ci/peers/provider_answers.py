"""Answers of providers of language models, as each of them streams them: see provider.py."""

import json

INPUT_TOKENS = 11

def halves(text):
    middle = len(text) // 2
    return text[:middle], text[middle:]

class Answer:
    """The stream of one answer, part by part. AT_ONCE is an answer that is not streamed."""

    content_type = "text/event-stream"
    LENGTH = "length"
    REFUSAL = "content_filter"

    def __init__(self, newline="\n"):
        self.newline = newline
        self.written = self.calls = 0

    def lines(self, text):
        return text.replace("\n", self.newline).encode()

    def event(self, kind, **members):
        data = json.dumps({"type": kind} | members, ensure_ascii=False)
        return self.lines(f"event: {kind}\ndata: {data}\n\n")

class Anthropic(Answer):
    LENGTH = "max_tokens"
    REFUSAL = "refusal"
    AT_ONCE = {"role": "assistant", "content": [{"type": "text", "text": "at once"}]}

    def __init__(self, newline="\n"):
        super().__init__(newline)
        self.index, self.is_open = -1, False

    def begin(self):
        usage = {"input_tokens": INPUT_TOKENS, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage}
        return self.event("message_start", message=message) + self.event("ping")

    def open(self, **block):
        self.index += 1
        self.is_open = True
        return self.event("content_block_start", index=self.index, content_block=block)

    def delta(self, **delta):
        return self.event("content_block_delta", index=self.index, delta=delta)

    def close(self):
        closed = self.event("content_block_stop", index=self.index) if self.is_open else b""
        self.is_open = False
        return closed

    def text(self, text):
        self.written += 1
        start = b"" if self.is_open else self.open(type="text", text="")
        return start + self.delta(type="text_delta", text=text)

    def call(self, call_id, name, arguments):
        self.written += 1
        self.calls += 1
        start = self.close() + self.open(type="tool_use", id=call_id, name=name, input={})
        pieces = [self.delta(type="input_json_delta", partial_json=piece) for piece in ("", *halves(arguments))]
        return start + b"".join(pieces) + self.close()

    def error(self):
        return self.event("error", error={"type": "overloaded_error", "message": "stub overload"})

    def end(self, reason=None):
        delta = {"stop_reason": reason or ("tool_use" if self.calls else "end_turn")}
        message = self.event("message_delta", delta=delta, usage={"output_tokens": self.written})
        return self.close() + message + self.event("message_stop")

class OpenAi(Answer):
    AT_ONCE = {"choices": [{"message": {"role": "assistant", "content": "at once"}, "finish_reason": "stop"}]}

    def data(self, **members):
        return self.lines(f"data: {json.dumps(members, ensure_ascii=False)}\n\n")

    def choice(self, finish=None, **delta):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return self.data(object="chat.completion.chunk", choices=[choice])

    def begin(self):
        return self.choice(role="assistant", content="")

    def text(self, text):
        self.written += 1
        return self.choice(content=text)

    def call(self, call_id, name, arguments):
        self.written += 1
        index, self.calls = self.calls, self.calls + 1
        first = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        rest = [{"index": index, "function": {"arguments": piece}} for piece in halves(arguments)]
        return b"".join(self.choice(tool_calls=[part]) for part in (first, *rest))

    def error(self):
        return self.data(error={"type": "server_error", "message": "stub overload"})

    def end(self, reason=None):
        total = INPUT_TOKENS + self.written
        usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": self.written, "total_tokens": total}
        finish = self.choice(reason or ("tool_calls" if self.calls else "stop"))
        return finish + self.data(choices=[], usage=usage) + self.lines("data: [DONE]\n\n")

class Vllm(OpenAi):
    """As OpenAI, with thoughts."""

    def begin(self):
        return super().begin() + self.choice(reasoning_content="hm")

class Ollama(Answer):
    """Lines of JSON in place of events. It thinks before it speaks, and has calls without ids."""

    content_type = "application/x-ndjson"
    AT_ONCE = {"message": {"role": "assistant", "content": "at once"}, "done": True}

    def line(self, **members):
        return self.lines(json.dumps({"model": "stub"} | members, ensure_ascii=False) + "\n")

    def message(self, **members):
        return self.line(message={"role": "assistant", "content": ""} | members, done=False)

    def begin(self):
        return self.message(thinking="hm")

    def text(self, text):
        self.written += 1
        return self.message(content=text)

    def call(self, call_id, name, arguments):
        self.written += 1
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = {}
        return self.message(tool_calls=[{"function": {"name": name, "arguments": arguments}}])

    def error(self):
        return self.line(error="stub overload")

    def end(self, reason=None):
        counts = {"prompt_eval_count": INPUT_TOKENS, "eval_count": self.written}
        last = {"role": "assistant", "content": ""}
        return self.line(message=last, done=True, done_reason=reason or "stop", **counts)

ANSWERS = {
    "anthropic": Anthropic, "openai": OpenAi, "ollama": Ollama, "vllm": Vllm,
}
