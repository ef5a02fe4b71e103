"""Python clients on three of our chat servers that share one NATS server, while nodes, NATS and the lines
between them fail.

    cluster_snek.py SWITCHBOARD

CLUSTER_CLIENTS (60), CLUSTER_ROUNDS (5) and CLUSTER_PAUSE (3 seconds for which NATS hangs) make it longer: the
full run is CLUSTER_CLIENTS=300 CLUSTER_ROUNDS=100 CLUSTER_PAUSE=10. CLUSTER_SEED repeats the choice of faults.

Each client posts numbered texts to one of a few channels, each with an answer before the next, and reconnects to
any node when its connection ends. At the end the stream is read from NATS: what was acknowledged is in it, nothing
is in it twice, and what each connection has heard is a piece of it without a gap.
"""

import asyncio
import base64
import collections
import itertools
import json
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time

import websockets
from common import Failed, Proxy, expect
from faults import quantiles

CLIENTS = int(os.environ.get("CLUSTER_CLIENTS", "60"))
ROUNDS = int(os.environ.get("CLUSTER_ROUNDS", "5"))
PAUSE = float(os.environ.get("CLUSTER_PAUSE", "3"))
SEED = int(os.environ.get("CLUSTER_SEED", "0")) or random.randrange(1, 1 << 32)
NODES = 3
CHANNELS = [f"room{number}" for number in range(6)]
# Nothing takes longer to work again.
PATIENCE = 60


class Process:
    """A program with a log, which can be killed and started again."""

    def __init__(self, ready, *command):
        self.ready = ready
        self.command = command
        self.process = None
        self.starts = 0

    async def start(self):
        pipe = asyncio.subprocess.PIPE
        out = asyncio.subprocess.STDOUT
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SNEK_", "NATS_", "RUST_LOG"))}
        self.process = await asyncio.create_subprocess_exec(*self.command, stdout=pipe, stderr=out, env=env)
        self.starts += 1
        seen = []
        while line := await asyncio.wait_for(self.process.stdout.readline(), PATIENCE):
            seen.append(line.decode())
            if self.ready in seen[-1]:
                self.reader = asyncio.create_task(self.read(self.process))
                return seen[-1]
        raise Failed(f"{self.command[0]} did not start: {seen}")

    async def read(self, process):
        while await process.stdout.readline():
            pass

    def send(self, number):
        self.process.send_signal(number)

    async def kill(self, number=signal.SIGKILL):
        if self.process and self.process.returncode is None:
            self.process.send_signal(number)
            await self.process.wait()


class Nats:
    """As much of the NATS protocol as it takes to read a stream."""

    async def connect(self, port):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        await self.reader.readline()
        self.writer.write(b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB _in.x 1\r\n')

    async def ask(self, subject, request):
        payload = json.dumps(request).encode() if request else b""
        self.writer.write(b"PUB %s _in.x %d\r\n%s\r\n" % (subject.encode(), len(payload), payload))
        while line := await asyncio.wait_for(self.reader.readline(), PATIENCE):
            if line.startswith(b"PING"):
                self.writer.write(b"PONG\r\n")
            elif line.startswith(b"MSG"):
                size = int(line.split()[-1])
                return json.loads((await self.reader.readexactly(size + 2))[:size])
        raise Failed("NATS has closed the connection")

    async def messages(self):
        """The texts of each channel, in order."""
        info = await self.ask("$JS.API.STREAM.INFO.switchboard_snek", None)
        found = collections.defaultdict(list)
        for sequence in range(info["state"]["first_seq"], info["state"]["last_seq"] + 1):
            got = await self.ask("$JS.API.STREAM.MSG.GET.switchboard_snek", {"seq": sequence})
            event = json.loads(base64.b64decode(got["message"]["data"]))
            found[event["channel_uid"]].append(event["message"])
        return found


class Client:
    def __init__(self, number, world):
        self.name = f"client{number}"
        self.channel = CHANNELS[number % len(CHANNELS)]
        self.world = world
        self.next = 0
        # What was answered well, and what was tried at all.
        self.stored = []
        self.tried = []
        # For each connection, what it has heard in each channel.
        self.sessions = []
        self.answers = {}
        self.progress = time.monotonic()
        # Since when it wants to post something, and how long that took.
        self.wants = None
        self.pauses = []

    async def run(self):
        while not self.world.is_over:
            try:
                await self.session(self.world.pick())
            except (OSError, asyncio.TimeoutError, websockets.WebSocketException):
                await asyncio.sleep(0.1 + random.random() * 0.2)

    async def call(self, line, number, method, *args):
        answer = asyncio.get_running_loop().create_future()
        call_id = f"{number}"
        self.answers[call_id] = answer
        await line.send(json.dumps({"callId": call_id, "method": method, "args": args, "kwargs": {}}))
        return await asyncio.wait_for(answer, PATIENCE)

    async def session(self, url):
        async with websockets.connect(url, open_timeout=5, close_timeout=0.2, max_size=None) as line:
            heard = collections.defaultdict(list)
            self.answers = {}
            reading = asyncio.create_task(self.read(line, heard))
            try:
                numbers = itertools.count()
                login = await self.call(line, next(numbers), "login", self.name, "secret")
                if not login["success"]:
                    raise Failed(f"{self.name} may not log in: {login}")
                self.sessions.append(heard)
                while not self.world.is_over:
                    if self.world.is_quiet:
                        await asyncio.sleep(0.05)
                        continue
                    self.wants = self.wants or time.monotonic()
                    text = f"{self.name} {self.next}"
                    self.next += 1
                    self.tried.append(text)
                    sent = await self.call(line, next(numbers), "send_message", self.channel, text, True)
                    if sent["success"]:
                        self.progress = time.monotonic()
                        self.pauses.append(self.progress - self.wants)
                        self.wants = None
                        self.stored.append(text)
                    else:
                        self.world.refused.append(sent["data"]["error"])
                    await asyncio.sleep(random.random() * self.world.rest)
            finally:
                reading.cancel()
                for answer in self.answers.values():
                    answer.cancel()

    async def read(self, line, heard):
        try:
            async for text in line:
                frame = json.loads(text)
                answer = self.answers.pop(frame.get("callId"), None)
                if answer:
                    if not answer.done():
                        answer.set_result(frame)
                elif frame.get("event") == "message":
                    heard[frame["channel_uid"]].append(frame["message"])
        except websockets.WebSocketException:
            pass
        for answer in self.answers.values():
            if not answer.done():
                answer.set_exception(OSError("the connection is over"))


class World:
    def __init__(self, switchboard, folder):
        self.switchboard = switchboard
        self.folder = folder
        self.is_over = self.is_quiet = False
        self.refused = []
        # Together the clients post about sixty texts a second.
        self.rest = CLIENTS / 30
        self.choice = random.Random(SEED)
        self.restored = []

    def pick(self):
        return random.choice(self.urls)

    async def start(self):
        program = shutil.which("nats-server")
        expect(program, "nats-server on the path; on Debian: apt-get install nats-server")
        # A free port, which stays the same when the server is started again.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        where = ["-sd", self.folder, "-a", "127.0.0.1", "-p", str(self.port)]
        self.nats = Process("Server is ready", program, "-js", *where)
        await self.nats.start()
        self.lines = [Proxy(self.port) for _ in range(NODES)]
        self.nodes = []
        self.urls = []
        for line in self.lines:
            await line.start()
            await self.add_node(line)

    async def add_node(self, line):
        rooms = [option for room in CHANNELS for option in ("--channel", room)]
        nats = f"nats://127.0.0.1:{line.port}"
        command = [self.switchboard, "bot", "serve", "--open", *rooms, "--nats", nats, "--listen"]
        node = Process("listening on", *command, "127.0.0.1:0")
        url = (await node.start()).split()[-1]
        # The same address after a restart.
        node.command = (*command, url.split("/")[2])
        self.nodes.append(node)
        self.urls.append(url)

    async def stop(self):
        for process in [*getattr(self, "nodes", []), self.nats]:
            await process.kill()

    async def works(self, clients):
        """Waits until every client has posted something since now."""
        start = time.monotonic()
        slow = [client.name for client in clients]
        while slow and time.monotonic() - start < PATIENCE:
            await asyncio.sleep(0.02)
            slow = [client.name for client in clients if client.progress < start]
        expect(not slow, f"every client posts again within {PATIENCE} s; not {slow[:5]}")
        self.restored.append(time.monotonic() - start)

    async def fault(self, name):
        at = self.choice.randrange(NODES)
        if name == "node killed":
            await self.nodes[at].kill()
            await self.nodes[at].start()
        elif name == "NATS restarted":
            await self.nats.kill(self.choice.choice([signal.SIGTERM, signal.SIGKILL]))
            await self.nats.start()
        elif name == "NATS hangs":
            self.nats.send(signal.SIGSTOP)
            await asyncio.sleep(PAUSE)
            self.nats.send(signal.SIGCONT)
        else:
            self.lines[at].cut()
            await asyncio.sleep(self.choice.random() * min(PAUSE, 3))
            self.lines[at].mend()


FAULTS = ["node killed", "NATS restarted", "line cut", "NATS hangs"]


def check(clients, stream):
    everything = collections.Counter(text for texts in stream.values() for text in texts)
    doubled = [text for text, count in everything.items() if count > 1]
    expect(not doubled, f"nothing is stored twice; {doubled[:5]} are")
    stored = [text for client in clients for text in client.stored]
    lost = [text for text in stored if text not in everything]
    expect(not lost, f"what was acknowledged is stored; {len(lost)} of {len(stored)} are not: {lost[:5]}")
    tried = {text for client in clients for text in client.tried}
    strange = [text for text in everything if text not in tried]
    expect(not strange, f"nothing is stored that nobody sent; {strange[:5]} are")
    heard = 0
    for client in clients:
        for session in client.sessions:
            for channel, texts in session.items():
                order = stream[channel]
                at = order.index(texts[0])
                piece = order[at : at + len(texts)]
                wrong = next((i for i, both in enumerate(zip(texts, piece)) if both[0] != both[1]), None)
                expect(
                    texts == piece,
                    f"a connection of {client.name} hears {channel} in the order of the stream and without a gap; "
                    f"after {texts[max(0, (wrong or 0) - 2) : wrong]} comes {texts[wrong or 0 : (wrong or 0) + 3]}, "
                    f"not {piece[wrong or 0 : (wrong or 0) + 3]}",
                )
                heard += len(texts)
    # Whoever is connected at the end has heard each channel to its end.
    for client in clients:
        for channel in CHANNELS:
            texts = client.sessions[-1].get(channel)
            expect(not texts or texts[-1] == stream[channel][-1], f"{client.name} hears the end of {channel}")
    return len(stored), len(everything), heard


async def main(switchboard):
    print(f"{CLIENTS} clients, {NODES} nodes, {ROUNDS} rounds, seed {SEED}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        world = World(switchboard, folder)
        tasks = []
        try:
            await world.start()
            clients = [Client(number, world) for number in range(CLIENTS)]
            tasks = [asyncio.create_task(client.run()) for client in clients]
            await world.works(clients)
            world.restored.clear()
            pauses = collections.defaultdict(list)
            for round in range(ROUNDS):
                name = FAULTS[round % len(FAULTS)]
                for client in clients:
                    client.pauses.clear()
                await world.fault(name)
                await world.works(clients)
                pauses[name] += [max(client.pauses) for client in clients]
                failed = [task for task in tasks if task.done()]
                expect(not failed, f"all clients go on: {failed[:1]}")
            world.is_quiet = True
            await asyncio.sleep(2)
            nats = Nats()
            await nats.connect(world.port)
            stream = await nats.messages()
            world.is_over = True
            await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
            stored, everything, heard = check(clients, stream)
            sessions = sum(len(client.sessions) for client in clients)
            print(f"ok    {stored} acknowledged, {everything} stored, {heard} heard on {sessions} connections")
            print(f"      refused: {collections.Counter(world.refused).most_common(3)}")
            for name, times in pauses.items():
                print(f"      {name}: a client posts again after {quantiles(times)}")
            print(f"      all clients post again, after a fault has ended: {quantiles(world.restored)}", flush=True)
        finally:
            for task in tasks:
                task.cancel()
            await world.stop()


try:
    asyncio.run(main(sys.argv[1]))
except Failed as failure:
    print(f"FAIL  seed {SEED}: {failure}", flush=True)
    sys.exit(1)
