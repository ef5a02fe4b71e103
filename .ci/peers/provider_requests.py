"""Requests to providers of language models, read as strictly as each of them does: see provider.py.

Each reader takes the body of a request and returns (role, text) for each message, with role `tool` and no text for the
result of a tool."""

import json
import re

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CACHE_MARK = '"cache_control": {"type": "ephemeral"}'

class Malformed(Exception):
    """A real provider would refuse this request."""

def need(condition, what):
    if not condition:
        raise Malformed(what)

def members(value, required, optional=""):
    """An object with these members and no others."""
    must = set(required.split())
    need(isinstance(value, dict) and must <= set(value) <= must | set(optional.split()), f"members of {value}")

class Conversation:
    """What was said so far. Each call of a tool wants one result, before anything else is said."""

    def __init__(self, body, *limits):
        need(isinstance(body["model"], str) and body["model"], "no model")
        need(body["stream"] is True, "it wants no stream")
        need(all(type(limit) is int and limit > 0 for limit in limits), f"tokens {limits}")
        self.said, self.owed, self.calls = [], [], []

    def instruct(self, text):
        need(not self.said and isinstance(text, str) and text, f"instructions {text!r} after {self.said}")

    def say(self, role, text):
        need(role in ("user", "assistant"), f"role {role!r}")
        need(text is None or isinstance(text, str), f"content {text!r}")
        need(not self.owed, f"no results for {self.owed}")
        self.said.append((role, text))

    def call(self, call_id):
        need(call_id and self.said[-1][0] == "assistant", f"the call {call_id!r}")
        self.owed.append(call_id)
        self.calls.append(call_id)

    def result(self, call_id):
        need(call_id in self.owed, f"a result that nobody asked for: {call_id!r}")
        self.owed.remove(call_id)
        self.said.append(("tool", None))

    def read(self):
        need(not self.owed, f"no results for {self.owed}")
        need(self.said and self.said[-1][0] in ("user", "tool"), "the user does not have the last word")
        return self.said

def tools(offered, required, optional=""):
    """Tools with a name each, and with a schema, which is the last of their members."""
    for tool in offered:
        members(tool, required, optional)
        need(tool[required.split()[-1]]["type"] == "object", f"tool {tool}")
    names = [tool["name"] for tool in offered]
    need(all(map(TOOL_NAME.fullmatch, names)) and len(set(names)) == len(names), f"tools {names}")

def read_anthropic(body):
    members(body, "model messages max_tokens stream", "system tools tool_choice temperature")
    tools(body.get("tools", []), "name input_schema", "description cache_control")
    conversation = Conversation(body, body["max_tokens"])
    for block in body.get("system", []):
        conversation.instruct(block["text"])
    roles = [message["role"] for message in body["messages"]]
    need(roles == ["user" if at % 2 == 0 else "assistant" for at in range(len(roles))], f"roles {roles}")
    for message in body["messages"]:
        members(message, "role content")
        content = message["content"]
        need(content, f"an empty message: {message}")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        read_blocks(conversation, message["role"], blocks)
    need(len(set(conversation.calls)) == len(conversation.calls), f"calls {conversation.calls}")
    marks = json.dumps(body).count(CACHE_MARK)
    need(0 < marks <= 4, f"{marks} marks of the cache")
    return conversation.read()

def read_blocks(conversation, role, blocks):
    """Results come first, then texts, then calls."""
    kinds = ["tool_result", "text", "tool_use"]
    order = [kinds.index(block["type"]) for block in blocks]
    need(order == sorted(order), f"blocks {blocks}")
    results, texts, calls = ([block for block in blocks if block["type"] == kind] for kind in kinds)
    for block in results:
        members(block, "type tool_use_id content", "is_error cache_control")
        need(role == "user" and isinstance(block.get("is_error", False), bool), f"block {block}")
        conversation.result(block["tool_use_id"])
    need(all(block["text"].strip() for block in texts), "an empty text")
    if texts or role == "assistant":
        conversation.say(role, "".join(block["text"] for block in texts))
    for block in calls:
        members(block, "type id name input", "cache_control")
        need(isinstance(block["input"], dict), f"block {block}")
        conversation.call(block["id"])

def read_openai(body):
    limit = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
    members(body, f"model messages stream stream_options {limit}", "tools tool_choice temperature")
    need(body["stream_options"] == {"include_usage": True}, "it wants no usage")
    need(all(tool["type"] == "function" for tool in body.get("tools", [])), f"tools {body.get('tools')}")
    tools([tool["function"] for tool in body.get("tools", [])], "name parameters", "description strict")
    conversation = Conversation(body, body[limit])
    for message in body["messages"]:
        role, content = message["role"], message.get("content")
        if isinstance(content, list):
            need({block["type"] for block in content} <= {"text", "image_url"}, f"blocks {content}")
            content = "".join(block["text"] for block in content if block["type"] == "text")
        if role == "system":
            conversation.instruct(content)
        elif role == "tool":
            need(isinstance(content, str), f"result {message}")
            conversation.result(message["tool_call_id"])
        else:
            conversation.say(role, content)
            for call in message.get("tool_calls") or []:
                need(call["type"] == "function" and isinstance(call["function"]["arguments"], str), f"call {call}")
                conversation.call(call["id"])
            need(content or conversation.owed, f"an empty message: {message}")
    return conversation.read()

def read_ollama(body):
    members(body, "model messages stream options", "tools")
    members(body["options"], "num_predict num_ctx", "temperature")
    conversation = Conversation(body, body["options"]["num_predict"], body["options"]["num_ctx"])
    for message in body["messages"]:
        members(message, "role content", "images thinking tool_calls tool_name")
        if message["role"] == "system":
            conversation.instruct(message["content"])
        elif message["role"] == "tool":
            conversation.result(message["tool_name"])
        else:
            conversation.say(message["role"], message["content"])
            for call in message.get("tool_calls", []):
                need(isinstance(call["function"]["arguments"], dict), f"call {call}")
                conversation.call(call["function"]["name"])
    return conversation.read()

READERS = {
    "anthropic": read_anthropic, "openai": read_openai, "ollama": read_ollama,
    "vllm": read_openai,
}
