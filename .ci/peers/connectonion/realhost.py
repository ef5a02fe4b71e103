"""A host of ConnectOnion's package whose model does what it is told: realhost.py TRUST FOLDER.

    hello              is answered
    add A B            calls a tool
    steps N [SECONDS]  calls a tool N times. Each call takes these seconds, or until a line is read
    work               calls a tool until it hears something else, forty seconds at most
    ask, run, plan     asks a question, for leave, or what one thinks of a plan
    history, seen      tells who has spoken, or all that was said
    fail               fails

What is none of these is repeated. Prints the port. Ends with its standard input.
"""

import os
import queue
import re
import sys
import threading
import time
from pathlib import Path

TRUST, FOLDER = sys.argv[1], Path(sys.argv[2])
(FOLDER / ".co").mkdir(parents=True, exist_ok=True)
# Before the import: keys, lists and sessions are kept in here, and nowhere else.
os.environ |= {"HOME": str(FOLDER), "CO_INVITE_CODE": "OpenOnion"}
os.chdir(FOLDER)

import uvicorn
from connectonion import Agent, host, useful_plugins
from connectonion.core.llm import LLM, LLMResponse, ToolCall
from connectonion.core.usage import TokenUsage
from connectonion.useful_tools.ask_user import ask_user

ORDER = re.compile(r"(hello|add|steps|work|ask|run|plan|history|seen|fail)\b")
LINES = queue.Queue()
# What is said of a tool's result.
SAID = {"add": "sum: {}", "ask": "you said {}", "run": "result: {}", "plan": "you say {}"}

def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b

def step(n: int, seconds: float) -> str:
    """Takes a while."""
    if seconds:
        time.sleep(seconds)
    else:
        LINES.get()
    return f"step {n} done"

def bash(command: str) -> str:
    """Wants to be allowed."""
    return f"did {command}"

def plan(agent, text: str) -> str:
    """Asks what the user thinks of a plan."""
    agent.io.send({"type": "plan_review", "plan_content": text})
    return str(agent.io.receive().get("message", ""))

def parts(message):
    content = message.get("content") or ""
    return content if isinstance(content, list) else [{"type": "text", "text": content}]

def text_of(message):
    return " ".join(part.get("text", "") for part in parts(message))

class Obedient(LLM):
    """Does what the last order says. What was said since then was said to an agent at work."""

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
        results = [text_of(message) for message in messages[orders[-1] + 1 :] if message.get("role") == "tool"]
        heard = [text_of(messages[at]) for at in said if at > orders[-1]]
        match text_of(messages[orders[-1]]).split():
            case ["hello", *_]:
                return self.say("hello to you")
            case ["steps", count, *seconds]:
                if len(results) == int(count):
                    return self.say(f"{count} steps; heard: {' | '.join(heard)}")
                return self.use("step", n=len(results) + 1, seconds=float(seconds[0]) if seconds else 0.0)
            case ["work"]:
                if heard or len(results) == 40:
                    return self.say(f"heard: {' | '.join(heard)}")
                return self.use("step", n=len(results) + 1, seconds=1.0)
            case ["history"]:
                return self.say("roles: " + ",".join(message["role"] for message in messages))
            case ["seen", *_]:
                kinds = ",".join(part["type"] for message in messages for part in parts(message))
                return self.say(f"{kinds} {' '.join(map(text_of, messages))}")
            case [word, *_] if word in SAID and results:
                return self.say(SAID[word].format(results[-1]))
            case ["add", a, b]:
                return self.use("add", a=int(a), b=int(b))
            case ["ask"]:
                return self.use("ask_user", question="Which colour?", options=["red", "blue"])
            case ["run"]:
                return self.use("bash", command="make tea")
            case ["plan"]:
                return self.use("plan", text="1. tea")
        raise RuntimeError("ordered to fail")

    def say(self, text, calls=()):
        usage = TokenUsage(input_tokens=10, output_tokens=5)
        return LLMResponse(content=text, tool_calls=list(calls), raw_response=None, usage=usage)

    def use(self, name, **arguments):
        return self.say("", [ToolCall(name=name, arguments=arguments, id=f"call_{self.calls}")])

def agent():
    names = ("tool_approval", "runtime_input")
    plugins = [getattr(useful_plugins, name) for name in names if hasattr(useful_plugins, name)]
    tools = [add, step, bash, plan, ask_user]
    # Quiet ones of 1.2.1 fail when they ask for leave.
    return Agent("obedient", llm=Obedient(), tools=tools, plugins=plugins, log=False, quiet=False)

def read():
    for line in sys.stdin:
        LINES.put(line)
    os._exit(0)

threading.Thread(target=read, daemon=True).start()
# It serves by now, and this is all that knows which port it got.
uvicorn.Server._log_started_message = lambda _, at: print(f"port {at[0].getsockname()[1]}", flush=True)
host(agent, port=0, trust=TRUST, relay_url="")
