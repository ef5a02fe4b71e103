"""ConnectOnion's own clients and ours on three hosts of one agent, which are killed at random.

    cluster_onion.py SWITCHBOARD VENV

SWITCHBOARD is built with the feature `nats`, and `nats-server` is on the path. VENV has the package for
Python. CLUSTER_CLIENTS (12) is how many clients there are, a quarter of them ours, CLUSTER_ROUNDS (3) how
often something fails, CLUSTER_LEASE (4) the lease in seconds, CLUSTER_FAULTS (kill,cut) what fails, one of
several with commas between them: `kill` a host, `freeze` one (for one to three leases), `restart` or `pause` NATS
(for ten seconds), `cut` the line between a host and NATS (for up to twice the lease). Every client says one thing
after the other, up to CLUSTER_PACE (0.5) seconds after the last answer, behind a balancer that knows nothing of
sessions. In the end each prompt that was answered is in the conversation once, and so is its answer.
"""

import asyncio
import collections
import contextlib
import os
import random
import signal
import sys
import time
from pathlib import Path

from aiohttp import web
from common import Failed, Proxy, expect
from peers import START, Caller, Chat, Host, Line, Spoken, run, spoken

SWITCHBOARD, VENV = sys.argv[1:]
CALLER = Path(__file__).parent / "agents" / "caller.py"
CLIENTS = int(os.environ.get("CLUSTER_CLIENTS", 12))
ROUNDS = int(os.environ.get("CLUSTER_ROUNDS", 3))
LEASE = int(os.environ.get("CLUSTER_LEASE", 4))
PACE = float(os.environ.get("CLUSTER_PACE", 0.5))
FAULTS = os.environ.get("CLUSTER_FAULTS", "kill,cut").split(",")
SEED = int(os.environ.get("CLUSTER_SEED", 0)) or random.randrange(1 << 32)
HOSTS = 3
#: Users of one process of Python.
USERS = 30
#: An answer, however many hosts die meanwhile.
PATIENCE = 20 * LEASE + 60
CHANCE = random.Random(SEED)
#: What is asked to see the conversation.
LOOK = "What is 0 + 0?"


class Nats(Spoken):
    async def started(self):
        line = await self.line_with("Listening for client connections on ")
        self.port = int(line.rsplit(":", 1)[1])
        await self.line_with("Server is ready")
        return self

    @staticmethod
    def run(folder, port):
        return spoken(Nats, "nats-server", "-js", "-sd", folder / "nats", "-a", "127.0.0.1", "-p", port)


class Balancer(Line):
    """Leads each connection to any host that listens."""

    def __init__(self, port):
        super().__init__(port)
        self.ports = {}

    @property
    def to(self):
        return CHANCE.choice(list(self.ports.values())) if self.ports else 1

    @to.setter
    def to(self, port):
        pass


class Cluster:
    """The hosts, of which some are dead at times."""

    def __init__(self, nats, folder, balancer, stack):
        self.nats, self.folder, self.balancer, self.stack = nats, folder, balancer, stack
        self.hosts, self.lines = {}, {}
        self.kills = []

    async def start(self, number):
        if number not in self.lines:
            self.lines[number] = Proxy(self.nats.port)
            await self.lines[number].start()
        nats = f"nats://127.0.0.1:{self.lines[number].port}"
        args = ("--home", self.folder / "home", "--files", self.folder / "files", "--nats", nats)
        args = ("agent", "host", "--listen", "127.0.0.1:0", *args, "--lease", LEASE, "--reruns", 100)
        host = await self.stack.enter_async_context(spoken(Host, SWITCHBOARD, *args))
        await asyncio.wait_for(host.started(), START)
        self.hosts[number] = host
        self.balancer.ports[number] = host.port
        self.address = host.address

    async def kill(self, number):
        host = self.hosts.pop(number)
        del self.balancer.ports[number]
        self.kills.append(time.monotonic())
        await host.stopped()

    async def freeze(self, number):
        """Stops a host, which then wakes up and believes that it is still an owner."""
        host, port = self.hosts[number], self.balancer.ports.pop(number)
        self.kills.append(time.monotonic())
        host.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(LEASE * (1 + 2 * CHANCE.random()))
        host.process.send_signal(signal.SIGCONT)
        self.balancer.ports[number] = port

    async def restart_nats(self):
        self.kills.append(time.monotonic())
        await self.nats.stopped()
        self.nats = await self.stack.enter_async_context(Nats.run(self.folder, self.nats.port))
        await asyncio.wait_for(self.nats.started(), START)

    async def pause_nats(self):
        self.kills.append(time.monotonic())
        self.nats.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(10)
        self.nats.process.send_signal(signal.SIGCONT)

    async def cut(self, number):
        self.kills.append(time.monotonic())
        self.lines[number].cut()
        # Sometimes it is back before the lease is over, and sometimes not.
        await asyncio.sleep(CHANCE.random() * 2 * LEASE)
        self.lines[number].mend()


class User:
    """One client, and what it has said and heard."""

    def __init__(self, number):
        self.number, self.said, self.gaps, self.errors = number, {}, [], collections.Counter()

    async def live(self, cluster, is_over):
        turn = 0
        while not is_over.is_set():
            turn += 1
            # Some answers are there at once, and some take a second or two.
            slow = CHANCE.random() < 0.5
            prompt = f"!slow {CHANCE.randrange(5, 20)} {100 + turn}" if slow else f"What is {turn} + 1?"
            began = time.monotonic()
            answer = await asyncio.wait_for(self.ask(prompt), PATIENCE)
            ended = time.monotonic()
            self.said[prompt] = answer
            kills = [kill for kill in cluster.kills if began <= kill <= ended]
            if kills:
                self.gaps.append(ended - kills[0])
            await asyncio.sleep(CHANCE.random() * PACE)

    async def check(self):
        conversation = await asyncio.wait_for(self.conversation(), PATIENCE)
        for prompt, answer in self.said.items():
            found = [reply for said, reply in conversation if said == prompt]
            expect(len(found) == 1, f"client {self.number}: {prompt!r} is there {len(found)} times")
            if found != [answer]:
                raise Failed(f"client {self.number}: {prompt!r}: {found[0]!r}, not {answer!r}")
        prompts = [said for said, _ in conversation]
        expect(len(prompts) == len(set(prompts)), f"client {self.number}: a prompt is doubled: {prompts}")


class Python(User):
    """A user of the package's own client."""

    def __init__(self, number, caller):
        super().__init__(number)
        self.caller, self.name = caller, f"user-{number}"

    async def open(self, address, relay):
        where = {"address": address, "relay": relay, "key": self.name}
        answer = await self.caller.tell("open", self.name, **where)
        expect("error" not in answer, answer)

    async def ask(self, prompt):
        while True:
            answer = await self.caller.tell("input", self.name, prompt=prompt, timeout=PATIENCE)
            if "error" not in answer:
                return answer["text"]
            # It gives up sooner than its host: the next prompt finds out what became of this one.
            self.errors[answer["error"][:200]] += 1
            await asyncio.sleep(1)
            found = dict(await self.conversation())
            if prompt in found:
                return found[prompt]

    async def conversation(self):
        while True:
            answer = await self.caller.tell("input", self.name, prompt=LOOK, timeout=PATIENCE)
            if "error" not in answer:
                break
            await asyncio.sleep(1)
        return pairs((await self.caller.tell("look", self.name))["session"])


class Ours(User):
    """A user of our client."""

    def __init__(self, number, chat):
        super().__init__(number)
        self.chat = chat

    async def ask(self, prompt):
        while True:
            await self.chat.write(prompt)
            ended = await self.chat.hear(lambda it: it.get("event") in ("output", "error"), "answer")
            if ended["event"] == "output":
                return ended["result"]
            self.errors[ended["message"]] += 1
            if "not connected" not in ended["message"]:
                # It may have arrived, so it is not sent again.
                return None
            await asyncio.sleep(0.2)

    async def check(self):
        # It does not show its conversation: an answer too many would come before this one.
        expect(await asyncio.wait_for(self.chat.ask(LOOK), PATIENCE) == "0", "another answer came first")
        for prompt, answer in self.said.items():
            words = prompt.split()
            number = int(words[2]) + 1 if words[0] == "What" and answer else None
            expect(number is None or answer == str(number), f"{prompt!r}: {answer!r}")


def pairs(session):
    """The prompts of a conversation, with their answers."""
    found = []
    for message in session["messages"]:
        content = message.get("content")
        if message["role"] == "user":
            found.append([content, None])
        elif message["role"] == "assistant" and content and not message.get("tool_calls") and found:
            found[-1][1] = content
    return [(prompt, answer) for prompt, answer in found if prompt != LOOK]


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0


@contextlib.asynccontextmanager
async def relay(places):
    async def tell(request):
        place = places.get(request.match_info["address"])
        if place is None:
            raise web.HTTPNotFound
        return web.json_response({"online": True, "endpoints": [place]})

    app = web.Application()
    for path in ("/api/agents/{address}", "/api/relay/agents/{address}"):
        app.router.add_get(path, tell)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
    finally:
        await runner.cleanup()


async def crowd(stack, cluster, folder, balancer):
    places = {cluster.address: balancer.url}
    url = await stack.enter_async_context(relay(places))
    users = []
    ours = max(1, CLIENTS // 4)
    python = Path(VENV) / "bin" / "python"
    callers = []
    for number in range(CLIENTS - ours):
        if number % USERS == 0:
            where = folder / f"callers-{number}"
            where.mkdir()
            caller = spoken(Caller, python, CALLER, where, cwd=where)
            callers.append(await stack.enter_async_context(caller))
            await asyncio.wait_for(callers[-1].hear(lambda it: it.get("ready"), "sign"), START)
        user = Python(number, callers[-1])
        await user.open(cluster.address, url)
        users.append(user)
    for number in range(CLIENTS - ours, CLIENTS):
        home = folder / f"chat-{number}"
        args = ("agent", "chat", cluster.address, "--endpoint", balancer.url, "--json", "--home", home)
        chat = spoken(Chat, SWITCHBOARD, *args)
        users.append(Ours(number, await stack.enter_async_context(chat)))
    return users


async def lives(cluster, users):
    is_over = asyncio.Event()
    tasks = [asyncio.create_task(user.live(cluster, is_over)) for user in users]
    ends = asyncio.gather(*tasks)
    try:
        for _ in range(ROUNDS):
            await asyncio.wait([ends], timeout=LEASE / 2 + CHANCE.random() * LEASE)
            if ends.done():
                break
            match CHANCE.choice(FAULTS):
                case "freeze":
                    await cluster.freeze(CHANCE.choice(list(cluster.hosts)))
                case "restart":
                    await cluster.restart_nats()
                case "pause":
                    await cluster.pause_nats()
                case "cut":
                    await cluster.cut(CHANCE.choice(list(cluster.lines)))
                case _:
                    number = CHANCE.choice(list(cluster.hosts))
                    await cluster.kill(number)
                    await asyncio.wait([ends], timeout=CHANCE.random() * LEASE)
                    await cluster.start(number)
        await asyncio.wait([ends], timeout=2 * LEASE)
        is_over.set()
        await ends
    finally:
        for task in tasks:
            task.cancel()
    for user in users:
        await user.check()


async def main(checks, folder):
    print(f"seed {SEED}", flush=True)
    async with contextlib.AsyncExitStack() as stack:
        try:
            nats = await stack.enter_async_context(Nats.run(folder, -1))
        except FileNotFoundError:
            raise Failed("no nats-server on the path. On Debian: apt-get install nats-server") from None
        await asyncio.wait_for(nats.started(), START)
        balancer = await stack.enter_async_context(Balancer.lead(0))
        cluster = Cluster(nats, folder, balancer, stack)
        # The first one makes the key that all have.
        for number in range(HOSTS):
            await cluster.start(number)
        users = await crowd(stack, cluster, folder, balancer)
        deadline = (ROUNDS + 4) * 3 * LEASE + 2 * PATIENCE
        await checks.run("nothing answered is lost or doubled", lives(cluster, users), deadline)
        gaps = [gap for user in users for gap in user.gaps]
        answers = sum(len(user.said) for user in users)
        errors = sum((user.errors for user in users), collections.Counter())
        print(
            f"{len(users)} clients, {len(cluster.kills)} faults, {answers} answers; "
            f"with a fault an answer took p50 {percentile(gaps, 0.5):.1f} s, p99 {percentile(gaps, 0.99):.1f} s "
            f"({len(gaps)}), with a lease of {LEASE} s",
            flush=True,
        )
        for error, count in errors.most_common():
            print(f"{count} times: {error}", flush=True)


run(main)
