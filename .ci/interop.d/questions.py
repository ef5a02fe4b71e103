"""Requests to a provider of language models, read and checked as the real one does."""

import json
import re

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Malformed(Exception):
    """A real provider would refuse this request."""


def need(condition, what):
    if not condition:
        raise Malformed(what)


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
