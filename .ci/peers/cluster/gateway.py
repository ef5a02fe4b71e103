"""Python clients that race one budget on three of our gateways that share a NATS server, while these fail.

In the end the budget is overshot by what was in flight at most; a turn whose answer was complete is in the history on
all nodes, once and in the order of its client; one whose outcome nobody knows is there once or not at all; and all
nodes tell the same sums."""
# Needs: nats.

import asyncio
import collections
import contextlib
import math
import re
import socket
import tempfile

from clusters import NODES, ROUNDS, SECRET, SEED, Client, Cluster, Nats, size
from gateways import HELLO, Talk, agent, gateway
from harness import Failed, Proxy, expect, json_lines, main, output, same, switchboard, until
from provider import Provider
from sockets import Python
from websockets import WebSocketException

CLIENTS = size(12)
# What the provider counts for `!slow 2`.
TOKENS = 13
# What each client says when something fails, and how much it may say until all is served again.
TURNS = 2
ALLOWED = 1 + ROUNDS * 6 * (TURNS + 2)
# That, and some more to race for. A day may end meanwhile, a month hardly.
LIMIT = TOKENS * (CLIENTS * (ALLOWED + 6) + NODES)
MOST = LIMIT + TOKENS * CLIENTS
# Nothing is asked behind a turn.
MEMORY = {"semantic": False}
CONFIG = {"gateway": {"extensions": True}, "agent": agent(), "budgets": {"monthly": LIMIT}, "memory": MEMORY}
# Two clients say as much in one session as is remembered of it, at most.
IN_SESSION = 80

@contextlib.asynccontextmanager
async def talk(node, peer):
    socket = await peer.connect(f"ws://127.0.0.1:{node.port}/ws", open_timeout=None)
    hello = await socket.next()
    same({name: hello[name] for name in HELLO}, HELLO, "hello")
    yield Talk(socket)
    await socket.close()

class Racer(Client):
    """Says one thing after the other, at any node. Two clients share a session."""

    def __init__(self, number, cluster, peer):
        super().__init__(number, cluster)
        # How often there was no budget, and the most that a message was estimated at.
        self.peer, self.refused, self.estimate = peer, 0, 0
        # What was answered, and what nobody knows of, by account.
        self.answered, self.unknown = collections.defaultdict(list), collections.defaultdict(set)

    async def turn(self):
        account = f"a.{self.number // 2}.{self.begun // IN_SESSION}.*"
        text = f"!slow 2 {self.number} {self.begun}"
        while not await self.say(text, account):
            text += "."

    async def say(self, text, account):
        """Whether there is an answer, or no budget for one."""
        node, is_said = self.choice.choice(self.cluster.nodes), False
        try:
            async with talk(node, self.peer) as talking:
                is_said = True
                chat = await talking.chat(text, account=account)
        except (Failed, OSError, WebSocketException) as lost:
            expect(node.is_doomed, f"only the end of its node takes an answer away: {lost!r}")
            if is_said:
                self.unknown[account].add(text)
            return False
        error = chat.error
        if not error:
            same(sum(chat.data("usage")[0].values()), TOKENS, "tokens")
            self.answered[account].append(text)
        elif found := re.fullmatch(r"token budget exceeded \(monthly: (\d+)/(\d+)\)(?:; .*?\((\d+) tokens .*)?", error):
            used, limit, estimate = (int(number or 0) for number in found.groups())
            self.estimate = max(self.estimate, estimate)
            expect(limit == LIMIT and used <= MOST, f"overshot: {error}")
            self.refused += 1
        elif "may not be remembered" in error:
            self.unknown[account].add(text)
        else:
            expect("storage unavailable" in error, error)
        return not error or bool(found)

async def the_usage_of_all_nodes_is_printed(cluster, peer):
    for node in cluster.nodes:
        async with talk(node, peer) as talking:
            await talking.chat("!slow 2")
    code, said, _ = await output("gateway", "usage", "--nats", f"nats://127.0.0.1:{cluster.nats.port}")
    same((code, len(json_lines(said))), (0, NODES), "the exit code, and the entries")

async def the_budget_is_raced_for_to_its_end(cluster):
    cluster.allowed = math.inf
    await cluster.a_killed_node()
    await until(lambda: cluster.fits(lambda client: client.refused > 2), "the budget is used up")
    await cluster.everybody_comes_to_an_end()

async def all_nodes_know_what_clients_were_told(cluster, clients, peer):
    sums = set()
    for node in cluster.nodes:
        async with talk(node, peer) as talking:
            sums.add((await talking.result("budget.status"))["monthly"]["used"])
            for both in zip(clients[::2], clients[1::2]):
                for account in set().union(*(told for client in both for told in (client.answered, client.unknown))):
                    where = {"channel": "ws", "account": account, "limit": 1000}
                    turns = await talking.result("chat.history", where)
                    is_what_was_said([turn["user"] for turn in turns], both, account)
    same(len(sums), 1, f"different sums {sums}")
    used = sums.pop()
    answered = NODES + sum(len(texts) for client in clients for texts in client.answered.values())
    unknown = sum(len(texts) for client in clients for texts in client.unknown.values())
    print(f"      {answered} answered, {unknown} unknown, {used} of {LIMIT} tokens", flush=True)
    # What a turn is counted as that was killed, or may still be.
    most = TOKENS + max(client.estimate for client in clients)
    expect(LIMIT - CLIENTS * most < used <= MOST, f"used up, or overshot: {used}")
    expect(0 <= used - answered * TOKENS <= unknown * most, f"{used} for {answered} and {unknown} turns")

def is_what_was_said(said, clients, account):
    """Fails unless this history has what was answered, in order, and nothing twice or that was not said."""
    same(len(said), len(set(said)), f"different turns of {said}")
    known = set()
    for client in clients:
        mine = client.answered[account]
        same([text for text in said if text in set(mine)], mine, "what was answered")
        known |= set(mine) | client.unknown[account]
    expect(set(said) <= known, f"nobody has said {set(said) - known}")

async def programs_wait_for_nats_and_say_what_to_do():
    commands = (
        ("gateway", "--port", "0"),
        ("bot", "serve", "--open", "--listen", "127.0.0.1:0"),
        ("agent", "host", "--listen", "127.0.0.1:0"),
    )
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        # Nobody listens there yet, and nobody else can.
        place = stack.enter_context(socket.socket())
        place.bind(("127.0.0.1", 0))
        nats = ("--nats", f"nats://cluster:{SECRET}@127.0.0.1:{place.getsockname()[1]}")
        programs = [await stack.enter_async_context(switchboard(*it, *nats, HOME=folder)) for it in commands]
        for waiting in programs:
            await waiting.line("nats-server -js")
        server = Nats(f"{folder}/nats")
        await server.start()
        stack.push_async_callback(server.program.kill)
        await stack.enter_async_context(await asyncio.start_server(Proxy(server.port).serve, sock=place))
        for served in programs:
            await served.line("listening on")
            expect(not served.find(SECRET), served.tail())

async def body(checks):
    print(f"{CLIENTS} clients, seed {SEED}", flush=True)
    async with Provider() as provider, Python() as peer:
        with tempfile.TemporaryDirectory() as folder:

            @contextlib.asynccontextmanager
            async def node(*options):
                async with gateway(provider, *options, folder=folder, config=CONFIG) as running:
                    running.program.port = running.port
                    yield running.program

            await checks.run(programs_wait_for_nats_and_say_what_to_do)
            async with Cluster(node, has_leases=True) as cluster:
                await checks.run(cluster.three_nodes_start)
                await checks.run(the_usage_of_all_nodes_is_printed, cluster, peer)
                clients = [Racer(number, cluster, peer) for number in range(CLIENTS)]
                cluster.enter(clients, 0)
                if await cluster.fail(checks, TURNS):
                    await checks.run(the_budget_is_raced_for_to_its_end, cluster)
                    await checks.run(all_nodes_know_what_clients_were_told, cluster, clients, peer)
                await checks.run(cluster.no_node_panics_or_tells_a_password)

main(body)
