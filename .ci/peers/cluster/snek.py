"""Python clients on three of our chat servers that share a NATS server, while these fail.

Each client posts numbered texts to one of a few channels, each when the one before it is stored, and connects to any
node when its connection has ended. In the end the stream is read from NATS: what was acknowledged is in it, nothing is
in it twice, and what each connection has heard is a piece of it without a gap."""
# Needs: nats.

import asyncio
import collections
import itertools
import math

from clusters import SEED, Client, Cluster, size
from harness import Failed, Inbox, expect, main, served, until
from sockets import Python, Refused
from websockets import WebSocketException

CLIENTS = size(18)
# Everybody hears everything. So do the clients have some thousand texts a second to read, however many they are.
PAUSE = CLIENTS**2 / 4000
CHANNELS = [f"room{number}" for number in range(6)]

class Connection:
    """A connection, and what was heard on it in each channel, in order."""

    def __init__(self, socket):
        self.socket = socket
        self.heard = collections.defaultdict(list)
        self.answers = Inbox()
        self.ids = itertools.count()
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        try:
            while True:
                frame = await self.socket.next()
                if "callId" in frame:
                    await self.answers.put(frame)
                elif frame.get("event") == "message":
                    self.heard[frame["channel_uid"]].append(frame["message"])
        except Failed:
            await self.answers.end()

    async def call(self, method, *args):
        call_id = f"{next(self.ids)}"
        await self.socket.send({"callId": call_id, "method": method, "args": args, "kwargs": {}})
        return await self.answers.next(lambda answer: answer["callId"] == call_id, "an answer")

class Poster(Client):
    def __init__(self, number, cluster, peer):
        super().__init__(number, cluster)
        self.peer, self.name = peer, f"client{number}"
        self.channel = CHANNELS[number % len(CHANNELS)]
        self.connections, self.is_connected = [], False
        # What was acknowledged, and what was tried at all.
        self.stored, self.tried = [], []

    async def turn(self):
        await asyncio.sleep(self.choice.random() * PAUSE)
        while not await self.post(f"{self.name} {len(self.tried)}"):
            pass

    async def post(self, text):
        """Posts a text. Whether it was acknowledged; if not, it may have been stored."""
        self.tried.append(text)
        try:
            if not self.is_connected:
                await self.connect()
            sent = await self.connections[-1].call("send_message", self.channel, text, True)
        except (Failed, OSError, Refused, WebSocketException):
            self.is_connected = False
            return False
        if sent["success"]:
            self.stored.append(text)
        return sent["success"]

    async def connect(self):
        node = self.choice.choice(self.cluster.nodes)
        connection = Connection(await self.peer.connect(f"ws://127.0.0.1:{node.port}/rpc.ws", open_timeout=None))
        login = await connection.call("login", self.name, "secret")
        expect(login["success"], f"{self.name} may not log in: {login}")
        self.connections.append(connection)
        self.is_connected = True

async def all_who_are_connected_hear_the_last_words(clients):
    """One more text in each channel, which comes after all others."""
    for client in clients[: len(CHANNELS)]:
        while not await client.post(f"{client.name} last words {len(client.tried)}"):
            pass
    last = {client.channel: client.stored[-1] for client in clients[: len(CHANNELS)]}

    def hears(client):
        connection = client.connections[-1]
        heard = all(connection.heard[channel][-1:] == [text] for channel, text in last.items())
        return heard or connection.answers.is_over

    await until(lambda: all(map(hears, clients)), "all who are connected hear the last words")

async def nothing_acknowledged_is_lost_and_nothing_is_doubled(cluster, clients):
    stream = collections.defaultdict(list)
    for event in await cluster.nats.messages("switchboard_snek"):
        stream[event["channel_uid"]].append(event["message"])
    count = collections.Counter(text for texts in stream.values() for text in texts)
    doubled = [text for text in count if count[text] > 1]
    expect(not doubled, f"stored twice: {doubled[:5]}")
    lost = [text for client in clients for text in client.stored if text not in count]
    expect(not lost, f"acknowledged, and not stored: {lost[:5]}")
    strange = set(count).difference(*(client.tried for client in clients))
    expect(not strange, f"stored, and sent by nobody: {list(strange)[:5]}")
    for client in clients:
        for connection in client.connections:
            for channel, heard in connection.heard.items():
                is_a_piece(heard, stream[channel], f"what {client.name} hears in {channel}")
    connections = sum(len(client.connections) for client in clients)
    print(f"      {len(count)} texts, heard on {connections} connections", flush=True)

def is_a_piece(heard, stream, what):
    piece = stream[stream.index(heard[0]) :][: len(heard)]
    wrong = next((at for at, both in enumerate(zip(heard, piece)) if both[0] != both[1]), len(piece))
    near = slice(max(0, wrong - 2), wrong + 3)
    expect(heard == piece, f"{what}: {heard[near]} instead of {piece[near]}")

async def body(checks):
    print(f"{CLIENTS} clients, seed {SEED}", flush=True)
    rooms = [option for channel in CHANNELS for option in ("--channel", channel)]
    cluster = Cluster(lambda *options: served("bot", "serve", "--open", *rooms, *options), has_leases=False)
    async with cluster, Python() as peer:
        await checks.run(cluster.three_nodes_start)
        clients = [Poster(number, cluster, peer) for number in range(CLIENTS)]
        cluster.enter(clients, math.inf)
        if await cluster.fail(checks):
            await checks.run(cluster.everybody_comes_to_an_end)
            await checks.run(all_who_are_connected_hear_the_last_words, clients)
            await checks.run(nothing_acknowledged_is_lost_and_nothing_is_doubled, cluster, clients)
        await checks.run(cluster.no_node_panics_or_tells_a_password)

main(body)
