"""Three nodes of ours on one NATS server, clients that talk to them, and what fails meanwhile: what the scripts of
`cluster` share.

CLUSTER_CLIENTS says how many clients there are, CLUSTER_ROUNDS how often each fault comes. SEED fixes their order, and
which node they hit. No fault lasts for a time: it ends when it has shown in what the nodes do."""

import asyncio
import base64
import contextlib
import json
import os
import random
import signal
import tempfile
import time

import aiohttp
import nats
from harness import DEADLINE, Program, Proxy, expect, until

NODES = 3
# Seconds after which a node without a sign of life counts as gone.
LEASE = 3
ROUNDS = int(os.environ.get("CLUSTER_ROUNDS", "1"))
SEED = int(os.environ.get("SEED", "1"))
CHOICE = random.Random(SEED)
# A password that no node may tell.
SECRET = "hunter2"

def size(default):
    """How many clients there are."""
    return int(os.environ.get("CLUSTER_CLIENTS", default))

class Nats:
    """A NATS server, which has what it had when it is started again."""

    def __init__(self, folder):
        self.program = Program(["nats-server", "-js", "-sd", folder, "-a", "127.0.0.1", "-p", "-1"])

    async def start(self):
        await self.program.start()
        line = await self.program.line("Listening for client connections on")
        self.port = int(line.rsplit(":", 1)[1])
        await self.program.line("Server is ready")

    async def ask(self, *requests):
        """What JetStream answers to each of these."""
        client = await nats.connect(f"nats://127.0.0.1:{self.port}", allow_reconnect=False)
        asked = [await client.request(f"$JS.API.{it}", json.dumps(body).encode(), timeout=DEADLINE) for it, body in requests]
        await client.close()
        return [json.loads(answer.data) for answer in asked]

    async def state(self, stream):
        (info,) = await self.ask((f"STREAM.INFO.{stream}", {}))
        return info["state"]

    async def messages(self, stream):
        """What is stored in a stream, in order."""
        state = await self.state(stream)
        numbers = range(state["first_seq"], state["last_seq"] + 1)
        found = await self.ask(*((f"STREAM.MSG.GET.{stream}", {"seq": number}) for number in numbers))
        return [json.loads(base64.b64decode(answer["message"]["data"])) for answer in found]

class Line(Proxy):
    """The line of a node to NATS, which notes what the node sends once more."""

    def __init__(self, port):
        super().__init__(port)
        self.sent, self.repeated = set(), 0

    async def serve(self, reader, writer, head=b""):
        await super().serve(Watched(reader, self.note), writer, head)

    def note(self, data):
        for part in data.split(b"Nats-Msg-Id:")[1:]:
            message_id = part.split(b"\r")[0]
            self.repeated += message_id in self.sent
            self.sent.add(message_id)

class Watched:
    """A stream, of which somebody sees what is read."""

    def __init__(self, reader, see):
        self.reader, self.see = reader, see

    async def read(self, size):
        data = await self.reader.read(size)
        self.see(data)
        return data

class Client:
    """Does one turn after the other, whatever fails: a turn ends when its outcome is known."""

    def __init__(self, number, cluster):
        self.number, self.cluster = number, cluster
        self.begun = self.done = 0
        self.choice = random.Random(f"{SEED} {number}")

    async def run(self):
        while True:
            await until(lambda: self.begun < self.cluster.allowed, "another turn")
            self.begun += 1
            await self.turn()
            self.done += 1

    async def turn(self):
        raise NotImplementedError

class Cluster:
    """`open_node` gives the context of a node with these options."""

    def __init__(self, open_node, has_leases):
        self.open_node, self.has_leases = open_node, has_leases
        # The nodes that there are, by place, and those that were.
        self.nodes, self.former, self.lines = [None] * NODES, [], []
        self.clients, self.tasks = [], []
        # How many turns each client may do.
        self.allowed = 0

    async def __aenter__(self):
        self.stack = contextlib.AsyncExitStack()
        return self

    async def __aexit__(self, *_):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.stack.aclose()

    async def three_nodes_start(self):
        self.nats = Nats(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.stack.push_async_callback(self.nats.program.kill)
        await self.nats.start()
        for _ in range(NODES):
            self.lines.append(await self.stack.enter_async_context(Line(self.nats.port)))
            await self.start(len(self.lines) - 1)

    async def start(self, at):
        url = f"nats://cluster:{SECRET}@127.0.0.1:{self.lines[at].port}"
        options = ["--nats", url, *(("--lease", LEASE) if self.has_leases else ())]
        node = await self.stack.enter_async_context(self.open_node(*options))
        node.is_doomed = False
        self.nodes[at] = node

    async def kill(self, at):
        self.nodes[at].is_doomed = True
        self.former.append(self.nodes[at])
        await self.nodes[at].kill()

    def enter(self, clients, allowed):
        """Lets clients do so many turns each."""
        self.clients, self.allowed = clients, allowed
        self.tasks = [asyncio.create_task(client.run()) for client in clients]

    def fits(self, holds):
        """Whether all clients go on, and this holds for each."""
        for task in self.tasks:
            if task.done():
                task.result()
        return all(map(holds, self.clients))

    async def everybody_is_served(self):
        """Waits until each client has ended a turn that it began after this."""
        self.allowed += 1
        begun = {client: client.begun for client in self.clients}
        await until(lambda: self.fits(lambda it: it.done > begun[it]), "all clients are served")

    async def everybody_comes_to_an_end(self):
        """Waits until no client is in a turn any more, and none begins another."""
        self.allowed = 0
        await until(lambda: self.fits(lambda it: it.done == it.begun), "all turns end")

    async def is_gone(self, node):
        """Whether a node knows that it counts as gone."""
        async with aiohttp.request("GET", f"http://127.0.0.1:{node.port}/ready") as answer:
            return answer.status == 503

    async def lives(self):
        """How many nodes have given a sign of life."""
        return (await self.nats.state("switchboard_nodes_keys"))["num_subjects"]

    async def a_killed_node(self):
        at = CHOICE.randrange(NODES)
        await self.kill(at)
        if CHOICE.random() < 0.5:
            await self.everybody_is_served()
        await self.start(at)

    async def a_cut_line(self):
        at = CHOICE.randrange(NODES)
        line, dials = self.lines[at], CHOICE.randint(1, 6)
        line.cut()
        accepted = line.accepted
        await until(lambda: line.accepted >= accepted + dials, "the node tries to connect")
        if self.has_leases and CHOICE.random() < 0.5:
            await until(lambda: self.is_gone(self.nodes[at]), "a node without NATS counts as gone")
        line.mend()

    async def a_restarted_nats(self):
        await self.nats.program.stop(CHOICE.choice([signal.SIGTERM, signal.SIGKILL]))
        await self.nats.start()
        for line in self.lines:
            line.target = self.nats.port

    async def a_restarted_nats_and_a_killed_node(self):
        await self.a_restarted_nats()
        await self.a_killed_node()

    async def a_hung_nats(self):
        """It hangs until all leases are over, or until what was to be stored is sent again."""
        self.nats.program.signal(signal.SIGSTOP)
        if self.has_leases:
            for node in self.nodes:
                await until(lambda: self.is_gone(node), "nodes without NATS count as gone")
        else:
            repeated = sum(line.repeated for line in self.lines) + len(self.clients) / 2
            await until(lambda: sum(line.repeated for line in self.lines) >= repeated, "nodes send once more")
        self.nats.program.signal(signal.SIGCONT)

    async def a_frozen_node(self):
        """It wakes up, and believes that it holds what others have taken over."""
        async def are(count):
            return await self.lives() == count

        await until(lambda: are(NODES), "there is no sign of former nodes")
        node = CHOICE.choice(self.nodes)
        node.signal(signal.SIGSTOP)
        await until(lambda: are(NODES - 1), "a frozen node counts as gone")
        node.signal(signal.SIGCONT)

    async def everybody_is_served_again_after(self, fault, turns):
        self.allowed += turns
        await fault()
        start = time.monotonic()
        await self.everybody_is_served()
        print(f"      {time.monotonic() - start:.2f} s until everybody was served", flush=True)

    async def fail(self, checks, turns=0):
        """Lets one thing fail after the other, as long as all goes well."""
        await checks.run(self.everybody_is_served)
        faults = [self.a_killed_node, self.a_cut_line, self.a_restarted_nats, self.a_hung_nats]
        if self.has_leases:
            faults += [self.a_frozen_node, self.a_restarted_nats_and_a_killed_node]
        for fault in [fault for _ in range(ROUNDS) for fault in CHOICE.sample(faults, len(faults))]:
            if checks.failed:
                return False
            name = f"everybody is served again after {fault.__name__.replace('_', ' ')}"
            await checks.run(self.everybody_is_served_again_after, fault, turns, name=name)
        return not checks.failed

    async def no_node_panics_or_tells_a_password(self):
        said = [line for node in [*self.nodes, *self.former] for line in node.lines]
        wrong = [line for line in said if "panicked" in line or SECRET in line]
        expect(not wrong, f"{wrong[:3]}")
