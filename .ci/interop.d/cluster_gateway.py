"""Three gateways on one NATS server, with clients that race one daily budget while gateways are killed
and NATS is restarted.

What must hold: the budget is overshot by what is in flight at most; a turn whose answer was done is in
the history on all nodes, once, and in the order of its client; a turn whose outcome nobody knows is there
once or not at all; every node tells the same sums.

CLUSTER_CLIENTS (12), CLUSTER_ROUNDS (4) and CLUSTER_BUDGET (4000) make it larger."""

import asyncio
import contextlib
import json
import os
import random
import socket
import sys
import tempfile

from common import Checks, Failed, expect, program, title
from exoclaw import SWITCHBOARD, Gateway, agent, config_text
from provider import Provider
from websockets.exceptions import WebSocketException

CLIENTS = int(os.environ.get("CLUSTER_CLIENTS", "12"))
KILLS = int(os.environ.get("CLUSTER_ROUNDS", "4"))
LIMIT = int(os.environ.get("CLUSTER_BUDGET", "4000"))
NODES = 3
# What the provider counts for `!slow 2`.
TOKENS = 13
# In seconds: how long a session waits for a node that was killed in its turn, and the pause before a kill.
LEASE = "3"
PAUSE = 4


class Nats:
    """A NATS server with JetStream that can be killed and started again."""

    def __init__(self, folder):
        self.folder, self.process = folder, None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"nats://127.0.0.1:{self.port}"

    async def start(self):
        args = ["-js", "-sd", self.folder, "-a", "127.0.0.1", "-p", str(self.port)]
        quiet = {"stdout": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.DEVNULL}
        self.process = await asyncio.create_subprocess_exec("nats-server", *args, **quiet)
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            await asyncio.sleep(0.05)

    async def kill(self):
        self.process.kill()
        await self.process.wait()


@contextlib.asynccontextmanager
async def nats_server():
    with tempfile.TemporaryDirectory() as folder:
        server = Nats(folder)
        await server.start()
        try:
            yield server
        finally:
            await server.kill()


class Cluster:
    """The nodes, each of which is started again after it was killed."""

    def __init__(self, nats, provider, folder, extensions=False):
        self.nats, self.provider, self.folder = nats, provider, folder
        self.extensions = extensions
        self.nodes = [None] * NODES
        self.stacks = [contextlib.AsyncExitStack() for _ in range(NODES)]

    async def start(self, at):
        config = f"{self.folder}/config.toml"
        args = ["gateway", "--config", config, "--port", "0", "--nats", self.nats.url, "--lease", LEASE]
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


class Client:
    """Says one thing after the other, at any node. Two clients share a session."""

    def __init__(self, number):
        self.number = number
        self.account = f"a.{number // 2}.*"
        self.count = 0
        self.answered, self.unknown = [], set()
        self.refused = 0

    async def run(self, cluster):
        while self.refused < 3:
            self.count += 1
            text = f"!slow 2 {self.number} {self.count}"
            try:
                async with cluster.some().talk() as talk:
                    chat = await asyncio.wait_for(talk.chat(text, account=self.account), 50)
            except (Failed, OSError, WebSocketException, EOFError) as error:
                self.unknown.add(text)
                # Only the death of its node takes an answer away, and each at most one.
                expect(len(self.unknown) <= KILLS, f"{len(self.unknown)} without an answer: {error!r}")
                await asyncio.sleep(0.1)
                continue
            self.take(text, chat)

    def take(self, text, chat):
        error = chat.error
        if error is None:
            expect(chat.tokens == TOKENS, f"{chat.tokens} tokens")
            self.answered.append(text)
        elif error.startswith("token budget exceeded (daily: "):
            used, limit = error.removeprefix("token budget exceeded (daily: ").removesuffix(")").split("/")
            expect(int(limit) == LIMIT, error)
            expect(int(used) <= LIMIT + CLIENTS * TOKENS, f"overshot: {error}")
            self.refused += 1
        elif "could not be stored" in error:
            self.unknown.add(text)
        else:
            expect("storage unavailable" in error, error)


async def disturb(cluster):
    """Kills nodes, and NATS between them."""
    for round in range(KILLS):
        await asyncio.sleep(PAUSE)
        at = random.randrange(NODES)
        await cluster.kill(at)
        if round % 2:
            await cluster.nats.kill()
            await asyncio.sleep(0.5)
            await cluster.nats.start()
        await cluster.start(at)


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
    answered = sum(len(client.answered) for client in clients)
    unknown = sum(len(client.unknown) for client in clients)
    sums = set()
    for node in cluster.nodes:
        async with node.talk() as talk:
            status = await talk.result("budget.status")
            sums.add(status["daily"]["used"])
            for first, second in zip(clients[::2], clients[1::2]):
                where = {"channel": "websocket", "account": first.account, "limit": 1000}
                turns = await talk.result("chat.history", where)
                said = [turn["user"] for turn in turns]
                expect(len(said) == len(set(said)), f"a turn twice: {said}")
                known = set(said)
                for client in (first, second):
                    lost = [text for text in client.answered if text not in known]
                    expect(not lost, f"answered and lost: {lost}")
                    own = [text for text in said if text in set(client.answered)]
                    expect(own == client.answered, f"another order: {own}")
                    known -= set(client.answered) | client.unknown
                expect(not known, f"nobody knows of {known}")
    expect(len(sums) == 1, f"the sums differ: {sums}")
    used = sums.pop()
    expect(used <= LIMIT + CLIENTS * TOKENS, f"overshot: {used}/{LIMIT}")
    expect(answered * TOKENS <= used <= (answered + unknown) * TOKENS, f"{used}, {answered}, {unknown}")
    print(f"      {answered} answered, {unknown} unknown, {used} of {LIMIT} tokens", flush=True)


async def a_raced_budget_and_the_history_survive_kills_and_restarts():
    budgets = {"daily": LIMIT}
    tables = {"gateway": {"extensions": True}, "agent": agent(), "budgets": budgets}
    async with nats_server() as nats, Provider() as provider:
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/config.toml", "w") as file:
                file.write(config_text(tables))
            cluster = Cluster(nats, provider, folder, extensions=True)
            try:
                await asyncio.gather(*(cluster.start(at) for at in range(NODES)))
                clients = [Client(number) for number in range(CLIENTS)]
                await all_of(disturb(cluster), *(client.run(cluster) for client in clients))
                await compare(cluster, clients)
                for node in cluster.nodes:
                    node.show_nothing_secret()
            finally:
                await cluster.close()


async def without_nats_it_does_not_start_and_says_what_to_do():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"nats://user:hunter2@127.0.0.1:{probe.getsockname()[1]}"
        async with program(SWITCHBOARD, "gateway", "--port", "0", "--nats", url) as running:
            code = await running.end()
        expect(code not in (0, None), f"it ended with {code}")
        expect(running.find("nats-server -js"), f"{running.lines}")
        expect(not running.find("hunter2"), f"{running.lines}")


async def the_usage_of_all_nodes_is_printed():
    async with nats_server() as nats, Provider() as provider:
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/config.toml", "w") as file:
                file.write(config_text({"agent": agent()}))
            cluster = Cluster(nats, provider, folder)
            try:
                for at in range(NODES):
                    await cluster.start(at)
                    await cluster.nodes[at].chat("hi")
            finally:
                await cluster.close()
            async with program(SWITCHBOARD, "gateway", "usage", "--nats", nats.url) as usage:
                code = await usage.end()
            entries = [json.loads(line) for line in usage.lines]
            expect(code == 0 and len(entries) == NODES, f"{code} {usage.lines}")


CHECKS = [
    without_nats_it_does_not_start_and_says_what_to_do,
    the_usage_of_all_nodes_is_printed,
    a_raced_budget_and_the_history_survive_kills_and_restarts,
]


async def main():
    checks = Checks()
    for check in CHECKS:
        await checks.run(title(check), check(), 60 + 10 * KILLS)
    checks.finish()


if __name__ == "__main__":
    if SWITCHBOARD is None:
        sys.exit("usage: cluster_gateway.py SWITCHBOARD")
    asyncio.run(main())
