"""Clients of ConnectOnion's Python package and ours on three of our hosts of one agent that share a NATS server, while
these fail.

They come through a balancer that knows nothing of sessions. In the end each prompt that was answered is in its
conversation once, and so is its answer."""
# Needs: nats, onion.

import asyncio
import contextlib
import tempfile
from pathlib import Path

from clusters import CHOICE, SEED, Client, Cluster, size
from harness import expect, main, onions, same
from onions import Line, chat, our_host, real_users

CLIENTS = size(8)
# A quarter of them has our client.
OURS = max(1, CLIENTS // 4)
# Users of one process of Python.
USERS = 30
# How many prompts each of them has when something fails.
TURNS = 2
# What is asked to see the conversation.
LOOK = "count to 1"
# Seconds, for which a client of the package waits. The deadline of a check comes sooner.
PATIENCE = 600

class Balancer(Line):
    """Leads each connection to any host, also to one that is dead."""

    async def serve(self, reader, writer, head=b""):
        self.target = CHOICE.choice(self.nodes).port
        await super().serve(reader, writer, head)

class Asker(Client):
    """Asks one thing after the other. Some answers are there at once, some take a while."""

    def __init__(self, number, cluster):
        super().__init__(number, cluster)
        self.said = {}

    async def turn(self):
        slow = f"!slow {5 + self.begun % 10} {20 + self.begun // 10}"
        prompt = self.choice.choice([slow, f"count to 2 in turn {self.begun}"])
        self.said[prompt] = await self.ask(prompt)

class Python(Asker):
    """A user of the package."""

    async def enter(self, users, agent, relay):
        name = f"user{self.number}"
        self.user = await users.open(name, agent, relay, key=name)

    async def ask(self, prompt):
        while True:
            answer = await self.user.tell("input", prompt=prompt, timeout=PATIENCE)
            if "error" not in answer:
                return answer["text"]
            # It gives up sooner than its host: the next prompt finds out what became of this one.
            found = dict(await self.conversation())
            if prompt in found:
                return found[prompt]

    async def conversation(self):
        """The prompts, each with its answer."""
        while "error" in await self.user.tell("input", prompt=LOOK, timeout=PATIENCE):
            pass
        found = []
        for message in (await self.user.session())["messages"]:
            content = message.get("content")
            if message["role"] == "user":
                found.append([content, None])
            elif message["role"] == "assistant" and content and not message.get("tool_calls") and found:
                found[-1][1] = content
        return [(prompt, answer) for prompt, answer in found if prompt != LOOK]

    async def check(self):
        conversation = await self.conversation()
        prompts = [prompt for prompt, _ in conversation]
        same(len(prompts), len(set(prompts)), f"different prompts of client {self.number}, {prompts}")
        for prompt, answer in self.said.items():
            expect((prompt, answer) in conversation, f"client {self.number}: no {prompt!r}, {answer!r} in {conversation}")

class Ours(Asker):
    """A user of our client."""

    async def enter(self, stack, agent, url, home):
        self.chat = await stack.enter_async_context(chat(agent, "--endpoint", url, "--home", home))

    async def ask(self, prompt):
        while True:
            await self.chat.write(prompt)
            ended = await self.chat.events.next(lambda event: event.get("event") in ("output", "error"), "an answer")
            if ended["event"] == "output":
                return ended["result"]
            if "not connected" not in ended["message"]:
                # It may have arrived, so it is not sent again.
                return None
            await asyncio.sleep(0.05)

    async def check(self):
        # It does not show its conversation: an answer too many would come before this one.
        same(await self.chat.ask(LOOK), "I count: 1 - done", "the next answer")
        for prompt, answer in self.said.items():
            if prompt.startswith("count") and answer is not None:
                same(answer, "I count: 1 2 - done", prompt)

async def clients_come(cluster, clients, balancer, stack, folder):
    agent = cluster.nodes[0].agent
    for client in clients[OURS:]:
        if (client.number - OURS) % USERS == 0:
            place = folder / f"users{client.number}"
            users = await stack.enter_async_context(real_users(onions()[-1], place))
        await client.enter(users, agent, balancer.url)
    for client in clients[:OURS]:
        await client.enter(stack, agent, balancer.url, folder / f"chat{client.number}")

async def nothing_answered_is_lost_or_doubled(clients):
    for client in clients:
        await client.check()
    print(f"      {sum(len(client.said) for client in clients)} answers", flush=True)

async def body(checks):
    print(f"{CLIENTS} clients, seed {SEED}", flush=True)
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        options = ("--files", f"{folder}/files", "--reruns", 100)
        cluster = Cluster(lambda *more: our_host(f"{folder}/home", *options, *more), has_leases=True)
        await stack.enter_async_context(cluster)
        await checks.run(cluster.three_nodes_start)
        balancer = await stack.enter_async_context(Balancer())
        balancer.nodes = cluster.nodes
        clients = [(Ours if number < OURS else Python)(number, cluster) for number in range(CLIENTS)]
        await checks.run(clients_come, cluster, clients, balancer, stack, Path(folder))
        cluster.enter(clients, 0)
        if await cluster.fail(checks, TURNS):
            await checks.run(cluster.everybody_comes_to_an_end)
            await checks.run(nothing_answered_is_lost_or_doubled, clients)
        await checks.run(cluster.no_node_panics_or_tells_a_password)

main(body)
