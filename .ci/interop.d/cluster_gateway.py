"""Three gateways on one NATS server, with clients that race one daily budget while gateways are killed, NATS is
restarted or hangs, and the lines between them are cut.

What must hold: the budget is overshot by what is in flight at most; a turn whose answer was done is in
the history on all nodes, once, and in the order of its client; a turn whose outcome nobody knows is there
once or not at all; every node tells the same sums.

CLUSTER_CLIENTS (12), CLUSTER_ROUNDS (4) and CLUSTER_PAUSE (5 seconds for which NATS hangs, more than the lease) make
it larger: the full run is CLUSTER_CLIENTS=300 CLUSTER_ROUNDS=100 CLUSTER_PAUSE=10. CLUSTER_SEED repeats the choice of
faults."""

import asyncio
import collections
import contextlib
import json
import os
import random
import sys
import tempfile
import time

from common import Checks, Failed, Proxy, expect, program, title
from exoclaw import SWITCHBOARD, Gateway, agent, config_text
from faults import free_port, nats_server, quantiles
from provider import Provider
from websockets.exceptions import WebSocketException

CLIENTS = int(os.environ.get("CLUSTER_CLIENTS", "12"))
ROUNDS = int(os.environ.get("CLUSTER_ROUNDS", "4"))
PAUSE = float(os.environ.get("CLUSTER_PAUSE", "5"))
SEED = int(os.environ.get("CLUSTER_SEED", "0")) or random.randrange(1, 1 << 32)
NODES = 3
# What the provider counts for `!slow 2`.
TOKENS = 13
# What each client says while a fault lasts, and again after it.
TURNS = 2
# What is said with faults, and some more to race for.
LIMIT = TOKENS * CLIENTS * ((2 * TURNS + 1) * ROUNDS + 6)
# Two clients say as much in one session as is remembered of it, at most.
IN_SESSION = 80
# In seconds: after how long without a sign of life a node counts as gone.
LEASE = 3
# How long a chat may take: three steps of it wait for NATS, each up to 20 s; and how long all clients take.
LONGEST = 90 + CLIENTS / 5


class Cluster:
    """The nodes, each of which is started again after it was killed."""

    def __init__(self, nats, provider, folder, extensions=False):
        self.nats, self.provider, self.folder = nats, provider, folder
        self.extensions = extensions
        self.nodes = [None] * NODES
        self.lines = [Proxy(nats.port) for _ in range(NODES)]
        self.stacks = [contextlib.AsyncExitStack() for _ in range(NODES)]

    async def start_all(self):
        for line in self.lines:
            await line.start()
        await asyncio.gather(*(self.start(at) for at in range(NODES)))

    async def start(self, at):
        config = f"{self.folder}/config.toml"
        nats = f"nats://127.0.0.1:{self.lines[at].port}"
        args = ["gateway", "--config", config, "--port", "0", "--nats", nats, "--lease", str(LEASE)]
        env = {"HOME": self.folder} | self.provider.env
        running = await self.stacks[at].enter_async_context(program(SWITCHBOARD, *args, **env))
        line = await asyncio.wait_for(running.line_with("http://"), 20)
        url = "http://" + line.split("http://")[1].split()[0].rstrip("/.,")
        self.nodes[at] = Gateway(running, url, self.folder, self.extensions)

    async def kill(self, at):
        node, self.nodes[at] = self.nodes[at], None
        node.program.process.kill()
        await self.stacks[at].aclose()

    async def close(self):
        for stack in self.stacks:
            await stack.aclose()

    def some(self):
        return random.choice([node for node in self.nodes if node is not None])


class World:
    """What goes on: in each phase every client says so much, in the last one what it likes."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.choice = random.Random(SEED)
        self.phase, self.is_last = 0, False
        self.changed = asyncio.Condition()
        self.kills = 0

    async def next_phase(self, is_last=False):
        async with self.changed:
            self.phase, self.is_last = self.phase + 1, is_last
            self.changed.notify_all()

    async def fault(self, name):
        at = self.choice.randrange(NODES)
        cluster = self.cluster
        if name == "node killed":
            await self.kill(at)
        elif name == "NATS restarted, node killed":
            await cluster.nats.kill()
            await asyncio.sleep(0.5)
            await cluster.nats.start()
            await self.kill(at)
        elif name == "NATS hangs":
            await cluster.nats.hang(PAUSE)
        else:
            cluster.lines[at].cut()
            # Now and then for longer than the lease.
            await asyncio.sleep(self.choice.random() * 2 * LEASE)
            cluster.lines[at].mend()

    async def kill(self, at):
        self.kills += 1
        await self.cluster.kill(at)
        await self.cluster.start(at)


FAULTS = ["node killed", "line cut", "NATS hangs", "NATS restarted, node killed"]


class Client:
    """Says one thing after the other, at any node. Two clients share a session."""

    def __init__(self, number, world):
        self.number, self.world = number, world
        self.count = self.refused = 0
        # By account.
        self.answered, self.unknown = collections.defaultdict(list), collections.defaultdict(set)
        self.said = {}
        # When it was answered last, and how long that took in this phase.
        self.progress, self.waits = 0, []

    def account(self):
        return f"a.{self.number // 2}.{self.count // IN_SESSION}.*"

    async def turn(self):
        """Waits until it may say something."""
        world = self.world
        async with world.changed:
            await world.changed.wait_for(lambda: world.is_last or self.said.get(world.phase, 0) < TURNS)
        self.said = {world.phase: self.said.get(world.phase, 0) + 1}

    async def run(self):
        while self.refused < 3:
            await self.turn()
            account = self.account()
            self.count += 1
            text = f"!slow 2 {self.number} {self.count}"
            start = time.monotonic()
            while not await self.say(text, account):
                text += "."
            self.progress = time.monotonic()
            self.waits.append(self.progress - start)

    async def say(self, text, account):
        """Returns whether there is an answer, or no budget for one."""
        try:
            async with self.world.cluster.some().talk() as talk:
                chat = await asyncio.wait_for(talk.chat(text, account=account), LONGEST)
        except (Failed, OSError, WebSocketException, EOFError) as error:
            self.unknown[account].add(text)
            # Only the death of its node takes an answer away, and each at most one; more find no node there.
            lost = sum(map(len, self.unknown.values()))
            expect(lost <= 20 * (self.world.kills + 1), f"{lost} without an answer: {error!r}")
            await asyncio.sleep(0.2)
            return False
        error = chat.error
        if error is None:
            expect(chat.tokens == TOKENS, f"{chat.tokens} tokens")
            self.answered[account].append(text)
            return True
        if error.startswith("token budget exceeded (daily: "):
            used, limit = error.removeprefix("token budget exceeded (daily: ").removesuffix(")").split("/")
            expect(int(limit) == LIMIT, error)
            expect(int(used) <= LIMIT + CLIENTS * TOKENS, f"overshot: {error}")
            self.refused += 1
            return True
        if "could not be stored" in error:
            self.unknown[account].add(text)
        else:
            expect("storage unavailable" in error, error)
        return False


async def disturb(world, clients):
    """Lets one thing fail after the other, and waits until everybody is served again."""
    waits = collections.defaultdict(list)
    restored = []
    for round in range(ROUNDS):
        name = FAULTS[round % len(FAULTS)]
        for client in clients:
            client.waits.clear()
        await world.next_phase()
        await world.fault(name)
        over = time.monotonic()
        await world.next_phase()
        while any(client.progress < over and client.refused < 3 for client in clients):
            expect(time.monotonic() - over < 2 * LONGEST, f"not everybody is served again after {name}")
            await asyncio.sleep(0.05)
        restored.append(time.monotonic() - over)
        waits[name] += [max(client.waits) for client in clients if client.waits]
    # A race to the end, in which one more dies.
    await world.next_phase(is_last=True)
    await world.kill(world.choice.randrange(NODES))
    for name, times in waits.items():
        print(f"      {name}: a client is answered after {quantiles(times)}")
    print(f"      all clients are answered, after a fault has ended: {quantiles(restored)}", flush=True)


async def all_of(*parts):
    """Runs these at the same time. The first failure ends them all."""
    try:
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part)
    except ExceptionGroup as failures:
        raise failures.exceptions[0]


async def compare(cluster, clients):
    """What all nodes know must be the same, and what the clients were told."""
    count = lambda texts: sum(map(len, texts.values()))
    answered = sum(count(client.answered) for client in clients)
    unknown = sum(count(client.unknown) for client in clients)
    sums = set()
    for node in cluster.nodes:
        async with node.talk() as talk:
            status = await talk.result("budget.status")
            sums.add(status["daily"]["used"])
            for first, second in zip(clients[::2], clients[1::2]):
                accounts = {*first.answered, *second.answered, *first.unknown, *second.unknown}
                for account in accounts:
                    where = {"channel": "websocket", "account": account, "limit": 1000}
                    turns = await talk.result("chat.history", where)
                    said = [turn["user"] for turn in turns]
                    expect(len(said) == len(set(said)), f"a turn twice: {said}")
                    known = set(said)
                    for client in (first, second):
                        mine = client.answered[account]
                        lost = [text for text in mine if text not in known]
                        expect(not lost, f"answered and lost: {lost}")
                        own = [text for text in said if text in set(mine)]
                        expect(own == mine, f"another order: {own}")
                        known -= set(mine) | client.unknown[account]
                    expect(not known, f"nobody knows of {known}")
    expect(len(sums) == 1, f"the sums differ: {sums}")
    used = sums.pop()
    expect(used <= LIMIT + CLIENTS * TOKENS, f"overshot: {used}/{LIMIT}")
    expect(used > LIMIT - CLIENTS * TOKENS, f"not used up: {used}/{LIMIT}")
    expect(answered * TOKENS <= used <= (answered + unknown) * TOKENS, f"{used}, {answered}, {unknown}")
    print(f"      {answered} answered, {unknown} unknown, {used} of {LIMIT} tokens", flush=True)


async def a_raced_budget_and_the_history_survive_every_fault():
    budgets = {"daily": LIMIT}
    tables = {"gateway": {"extensions": True}, "agent": agent(), "budgets": budgets}
    async with nats_server() as nats, Provider() as provider:
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/config.toml", "w") as file:
                file.write(config_text(tables))
            cluster = Cluster(nats, provider, folder, extensions=True)
            try:
                await cluster.start_all()
                world = World(cluster)
                clients = [Client(number, world) for number in range(CLIENTS)]
                await all_of(disturb(world, clients), *(client.run() for client in clients))
                await compare(cluster, clients)
                for node in cluster.nodes:
                    node.show_nothing_secret()
            finally:
                await cluster.close()


async def programs_wait_for_nats_and_say_what_to_do():
    port = free_port()
    url = f"nats://user:hunter2@127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        programs = [
            ["gateway", "--port", "0"],
            ["bot", "serve", "--open", "--listen", "127.0.0.1:0"],
            ["agent", "host", "--listen", "127.0.0.1:0"],
        ]
        async with contextlib.AsyncExitStack() as stack:
            waiting = []
            for args in programs:
                running = program(SWITCHBOARD, *args, "--nats", url, HOME=folder)
                waiting.append(await stack.enter_async_context(running))
            for running in waiting:
                await running.line_with("nats-server -js")
                expect(not running.find("hunter2"), f"{running.lines}")
            await stack.enter_async_context(nats_server(port))
            for running in waiting:
                await running.line_with("listening on")


async def the_usage_of_all_nodes_is_printed():
    async with nats_server() as nats, Provider() as provider:
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/config.toml", "w") as file:
                file.write(config_text({"agent": agent()}))
            cluster = Cluster(nats, provider, folder)
            try:
                await cluster.start_all()
                for at in range(NODES):
                    await cluster.nodes[at].chat("hi")
            finally:
                await cluster.close()
            async with program(SWITCHBOARD, "gateway", "usage", "--nats", nats.url) as usage:
                code = await usage.end()
            entries = [json.loads(line) for line in usage.lines]
            expect(code == 0 and len(entries) == NODES, f"{code} {usage.lines}")


CHECKS = [
    (programs_wait_for_nats_and_say_what_to_do, 60),
    (the_usage_of_all_nodes_is_printed, 60),
    # Rarely does a fault keep everybody for long.
    (a_raced_budget_and_the_history_survive_every_fault, 3 * LONGEST + ROUNDS * (PAUSE + LONGEST / 3)),
]


async def main():
    print(f"{CLIENTS} clients, {NODES} nodes, {ROUNDS} rounds, seed {SEED}", flush=True)
    checks = Checks()
    for check, deadline in CHECKS:
        await checks.run(title(check), check(), deadline)
    checks.finish()


if __name__ == "__main__":
    if SWITCHBOARD is None:
        sys.exit("usage: cluster_gateway.py SWITCHBOARD")
    asyncio.run(main())
