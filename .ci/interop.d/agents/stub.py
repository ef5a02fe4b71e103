"""A real host of the Python package with a model that follows orders: stub.py TRUST FOLDER.

Prints its port, and ends with its standard input.
"""

import os
import re
import socket
import sys
import threading
import time
from pathlib import Path

TRUST, FOLDER = sys.argv[1], Path(sys.argv[2])
(FOLDER / ".co").mkdir(parents=True, exist_ok=True)
# Before the import: keys, lists and sessions are kept in here, and nowhere else.
os.environ["HOME"] = str(FOLDER)
os.environ["CO_INVITE_CODE"] = "OpenOnion"
os.chdir(FOLDER)

from connectonion import Agent, host, useful_plugins
from connectonion.core.llm import LLM, LLMResponse, ToolCall
from connectonion.core.usage import TokenUsage
from connectonion.useful_tools.ask_user import ask_user

ORDER = re.compile(r"(add|steps|ask|run|plan|fail|history|seen|hello)\b")


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def slow_step(n: int, seconds: float) -> str:
    """Takes a while."""
    time.sleep(seconds)
    return f"step {n} done"


def bash(command: str) -> str:
    """Wants to be allowed."""
    return f"did {command}"


def plan(agent, text: str) -> str:
    """Asks what the user thinks of a plan."""
    agent.io.send({"type": "plan_review", "plan_content": text})
    return str(agent.io.receive().get("message", ""))


def text_of(message):
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content)


def parts_of(message):
    content = message.get("content")
    return [part["type"] for part in content] if isinstance(content, list) else ["text"]


class Obedient(LLM):
    """Does what the last order says: what is no order was said while that is carried out.

    Without any order, it repeats what is said.
    """

    model = "obedient"

    def __init__(self):
        self.calls = 0

    def structured_complete(self, messages, output_schema):
        raise NotImplementedError

    def complete(self, messages, tools=None, **rest):
        self.calls += 1
        said = [at for at, message in enumerate(messages) if message.get("role") == "user"]
        orders = [at for at in said if ORDER.match(text_of(messages[at]))]
        if not orders:
            return self.say("echo: " + text_of(messages[said[-1]]))
        at = orders[-1]
        results = [text_of(it) for it in messages[at + 1 :] if it.get("role") == "tool"]
        heard = [text_of(messages[later]) for later in said if later > at]
        word, *words = text_of(messages[at]).split()
        done = results[-1] if results else None
        if word == "steps":
            count, seconds = int(words[0]), float(words[1])
            if len(results) < count:
                return self.use("slow_step", n=len(results) + 1, seconds=seconds)
            return self.say(f"{count} steps; heard: {' | '.join(heard)}")
        if word == "add":
            a, b = int(words[0]), int(words[1])
            return self.say(f"sum: {done}") if done else self.use("add", a=a, b=b)
        if word == "ask":
            return self.say(f"you said {done}") if done else self.use(
                "ask_user", question="Which colour?", options=["red", "blue"]
            )
        if word == "run":
            return self.say(f"result: {done}") if done else self.use("bash", command="make tea")
        if word == "plan":
            return self.say(f"you say {done}") if done else self.use("plan", text="1. tea")
        if word == "hello":
            return self.say("hello to you")
        if word == "history":
            return self.say("roles: " + ",".join(message["role"] for message in messages))
        if word == "seen":
            parts = [part for message in messages for part in parts_of(message)]
            return self.say(f"{','.join(parts)} {' '.join(map(text_of, messages))}")
        raise RuntimeError("ordered to fail")

    def answer(self, text, calls):
        usage = TokenUsage(input_tokens=10, output_tokens=5)
        return LLMResponse(content=text, tool_calls=calls, raw_response=None, usage=usage)

    def say(self, text):
        return self.answer(text, [])

    def use(self, name, **arguments):
        return self.answer("", [ToolCall(name=name, arguments=arguments, id=f"call_{self.calls}")])


def agent():
    plugins = [getattr(useful_plugins, name, None) for name in ("tool_approval", "runtime_input")]
    # Quiet ones of 1.2.1 fail when they ask for leave.
    return Agent(
        "stub",
        llm=Obedient(),
        tools=[add, slow_step, bash, plan, ask_user],
        plugins=[plugin for plugin in plugins if plugin is not None],
        log=False,
        quiet=False,
    )


def end_with_input():
    sys.stdin.buffer.read()
    os._exit(0)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


threading.Thread(target=end_with_input, daemon=True).start()
port = free_port()
print(f"port {port}", flush=True)
host(agent, port=port, trust=TRUST, relay_url="")
