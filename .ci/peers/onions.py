"""Programs that speak ConnectOnion: our host and client, hosts of the real package, users of real clients, and the
line between them."""

import contextlib
import itertools
import json
import re
from pathlib import Path

import aiohttp
from harness import Front, Program, expect, node_folder, program, served, switchboard, until

HERE = Path(__file__).parent / "connectonion"
# The version of the package for Node.
NODE = "Node 0.1.4"

def version(onion):
    """The version of the package in a virtual environment, which is named after it."""
    return re.search(r"[\d.]+$", onion)[0]

def python(onion, script, *args):
    """A command line in a virtual environment. Nothing but its packages is imported."""
    return (f"{onion}/bin/python", "-P", HERE / script, *args)

class Chat(Program):
    """Our client."""

    async def step(self, kind, **members):
        """Takes the next step of the agent, or question of it, of this kind."""
        wanted = {"type": kind} | members
        return await self.events.next(lambda event: wanted.items() <= event.get("frame", {}).items(), f"step {wanted}")

    async def output(self):
        return (await self.event("output"))["result"]

    async def ask(self, prompt):
        await self.write(prompt)
        return await self.output()

    def results(self):
        """What its tools have returned."""
        frames = (json.loads(line).get("frame", {}) for line in self.said[1])
        return [frame["result"] for frame in frames if frame.get("type") == "tool_result"]

def chat(*args, **env):
    return switchboard("agent", "chat", *args, "--json", kind=Chat, **env)

@contextlib.asynccontextmanager
async def our_host(home, *args, **env):
    """It has `url` and `port`, and `agent`, the address of its agent."""
    async with served("agent", "host", "--home", home, *args, **env) as host:
        host.url = f"http://{host.address}"
        host.agent = re.search("0x[0-9a-f]{64}", await host.line("address: 0x"))[0]
        yield host

class RealHost(Program):
    """A host of the package, with a model that does what the prompt says."""

    async def ready(self):
        """Waits until it serves."""
        self.port = int((await self.line("port ")).removeprefix("port "))
        self.url = f"http://127.0.0.1:{self.port}"
        self.agent = (await until(self.about, "the host serves"))["address"]

    async def about(self):
        expect(not self.is_over, f"the host has ended: {self.tail()}")
        with contextlib.suppress(aiohttp.ClientError):
            async with aiohttp.request("GET", f"{self.url}/info") as answer:
                return await answer.json()

@contextlib.asynccontextmanager
async def real_host(onion, trust, folder):
    async with program(*python(onion, "realhost.py", trust, folder), kind=RealHost, PYTHONPATH="") as host:
        await host.ready()
        yield host

class Users(Program):
    """A program with users of a real client, each with a name and a key."""

    ids = itertools.count(1)

    async def tell(self, do, name, **more):
        """Orders something, and returns what came of it."""
        order = {"id": next(self.ids), "user": name, "do": do} | more
        await self.write(json.dumps(order))
        return await self.events.next(lambda event: event.get("id") == order["id"], f"an answer to {order}")

    async def open(self, name, agent, relay, key):
        """A user of an agent. Those who have the name of a key in common are one person."""
        answer = await self.tell("open", name, address=agent, relay=relay, key=key)
        expect("error" not in answer, answer)
        return User(self, name)

@contextlib.asynccontextmanager
async def real_users(onion, folder, **env):
    """Users of a virtual environment's package, or of Node's if there is none."""
    command = python(onion, "realusers.py", folder) if onion else ("node", node_folder() / "realusers.mjs")
    async with program(*command, kind=Users, PYTHONPATH="", **env) as users:
        await users.events.next(lambda event: event.get("ready"), "users")
        yield users

class User:
    def __init__(self, users, name):
        self.users, self.name = users, name

    async def tell(self, do, **more):
        return await self.users.tell(do, self.name, **more)

    async def input(self, prompt, **more):
        answer = await self.tell("input", prompt=prompt, **more)
        expect("error" not in answer, f"{prompt}: {answer.get('error')}")
        return answer

    async def text(self, prompt, **more):
        """What a prompt is answered with in the end."""
        answer = await self.input(prompt, **more)
        expect(answer["done"] is True, f"{prompt}: not done, {answer}")
        return answer["text"]

    async def error(self, do, **more):
        answer = await self.tell(do, **more)
        expect("error" in answer, f"no error: {answer}")
        return answer["error"]

    async def session(self):
        return (await self.tell("look"))["session"]

    async def items(self, kind):
        """What is shown to the user, of this kind."""
        return [item for item in (await self.tell("look"))["ui"] if item["type"] == kind]

class Line(Front):
    """A line to a host. Clients that ask, as they do a relay, where an agent is, are told: here."""

    def __init__(self, port=None):
        super().__init__(port)
        # How many WebSockets were opened.
        self.sockets = 0

    async def answer(self, path, is_upgrade):
        """What is answered in place of the host, if anything. Node's client would ask `https` if the URL were `ws`."""
        if path.startswith(("/api/agents/", "/api/relay/agents/")):
            return "application/json", json.dumps({"online": True, "endpoints": [self.url]}).encode()
        self.sockets += is_upgrade
        return None
