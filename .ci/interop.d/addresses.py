"""Each of our clients with the addresses of two servers: the one that it is on is killed, and it goes on with the
other.

    addresses.py SWITCHBOARD
"""

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import shutil
import struct
import sys
import tempfile
import termios

from common import expect, title
from peers import Chat, Spoken, run, spoken

SWITCHBOARD = sys.argv[1] if len(sys.argv) > 1 else None
# What a client may take to find the other server: the first delay of its protocol, and a slow machine.
LONG = 30


class Server(Spoken):
    """One of two."""

    async def started(self, pattern):
        line = await asyncio.wait_for(self.line_with("listening on"), LONG)
        self.url = re.search(pattern, line)[0]
        return self


@contextlib.asynccontextmanager
async def two(pattern, *args, options=lambda at: (), prepare=lambda at: None, **env):
    """Starts two servers."""
    async with contextlib.AsyncExitStack() as stack:
        servers = []
        for at in range(2):
            prepare(at)
            server = await stack.enter_async_context(spoken(Server, SWITCHBOARD, *args, *options(at), **env))
            servers.append(await server.started(pattern))
        yield servers


def urls(servers):
    return ",".join(server.url for server in servers)


async def kill_one(servers, node):
    """Kills the server with this address. Returns the other."""
    expect(node is not None, "the client says where it is")
    hit = [server for server in servers if place(server.url) in node]
    expect(len(hit) == 1, f"{node} is one of {urls(servers)}")
    [other] = [server for server in servers if server is not hit[0]]
    hit[0].process.kill()
    await hit[0].end()
    return other


def place(url):
    """Host and port."""
    return url.split("/")[2]


def moved(server, node):
    expect(node is not None and place(server.url) in node, f"it goes on at {server.url}, not at {node}")


async def a_chat_and_a_bot_of_snek_go_on(_):
    async with two(r"ws://\S+", "bot", "serve", "--open", "--listen", "127.0.0.1:0") as servers:
        both = ("--url", urls(servers), "--json")
        secret = {"SNEK_PASSWORD": "pw"}
        async with (
            spoken(Chat, SWITCHBOARD, "bot", *both, "--username", "helper", **secret) as bot,
            spoken(Chat, SWITCHBOARD, "bot", "chat", *both, "--username", "ann", **secret) as chat,
        ):
            at_bot = (await bot.event("connected"))["node"]
            at_chat = (await chat.event("connected"))["node"]
            other = await kill_one(servers, at_chat)
            moved(other, (await chat.event("connected"))["node"])
            if place(other.url) not in at_bot:
                moved(other, (await bot.event("connected"))["node"])
            await chat.write("@helper ping")
            await chat.event("message", username="helper")


async def a_chat_with_an_agent_goes_on(folder):
    homes = [folder / "host0", folder / "host1"]

    def prepare(at):
        if at:
            # The same key: it is one agent.
            homes[1].mkdir(mode=0o700)
            shutil.copy(homes[0] / "host.key", homes[1])

    async with two(
        r"http://[^/\s]+", "agent", "host", "--listen", "127.0.0.1:0",
        options=lambda at: ("--home", homes[at]), prepare=prepare,
    ) as servers:
        args = ("agent", "chat", urls(servers), "--json", "--home", folder / "ann")
        async with spoken(Chat, SWITCHBOARD, *args) as chat:
            other = await kill_one(servers, (await chat.event("connected"))["node"])
            moved(other, (await chat.event("back"))["node"])
            await chat.ask("hello")


async def a_client_of_a_router_goes_on(_):
    async with two(r"ws://\S+", "router", "serve", "--listen", "127.0.0.1:0") as servers:
        args = ("--url", urls(servers), "--json", "--name", "notes")
        async with spoken(Chat, SWITCHBOARD, "router", "client", *args) as client:
            other = await kill_one(servers, (await client.event("registered"))["node"])
            moved(other, (await client.event("registered"))["node"])
            await other.write("notes: buy milk")
            await client.event("message")


class Screen:
    """A program at a terminal."""

    def __init__(self, process, end):
        self.process, self.end, self.text = process, end, ""
        self.changed = asyncio.Condition()
        self.reading = asyncio.create_task(self.read())

    async def read(self):
        with contextlib.suppress(OSError):
            while data := await asyncio.to_thread(os.read, self.end, 65536):
                async with self.changed:
                    self.text += data.decode(errors="replace")
                    self.changed.notify_all()

    def write(self, line):
        os.write(self.end, line.encode() + b"\r")

    async def shows(self, pattern, after=0):
        """Waits for a text. Returns the match."""
        found = lambda: re.compile(pattern).search(self.text, after)
        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(found), LONG)
        return found()


@contextlib.asynccontextmanager
async def at_terminal(*args):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
    std = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    # With CI set, a terminal gets plain lines, as a file does.
    env = {name: value for name, value in os.environ.items() if name != "CI"}
    env |= {"TERM": "xterm", "NO_COLOR": "1"}
    process = await asyncio.create_subprocess_exec(SWITCHBOARD, *args, **std, env=env, start_new_session=True)
    os.close(theirs)
    screen = Screen(process, ours)
    try:
        yield screen
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await screen.reading
        os.close(ours)


async def a_dialogue_with_a_gateway_goes_on(folder):
    def home(at):
        return ("--config", write(folder / f"gateway{at}.toml", '[gateway]\ndata_dir = ":memory:"\n'))

    async with two(r"ws://[^/\s]+", "gateway", "--port", "0", options=home) as servers:
        async with at_terminal("gateway", "chat", "--url", urls(servers)) as screen:
            node = (await screen.shows(r"connected, at (ws://\S+)"))[1]
            other = await kill_one(servers, node)
            screen.write("ping")
            found = await screen.shows(r"error: |connected again, at (ws://\S+)")
            if found[1] is None:
                # That told that the line is cut; nobody knows whether it has arrived.
                screen.write("ping")
                found = await screen.shows(r"connected again, at (ws://\S+)")
            moved(other, found[1])
            await screen.shows("I am a model of a few rules")
        # Who comes later does not mind the dead one either.
        args = ("gateway", "chat", "--url", urls(servers), "--json", "ping")
        async with spoken(Chat, SWITCHBOARD, *args) as chat:
            moved(other, (await chat.event("connected"))["data"]["node"])
            expect(await chat.end() == 0, f"{chat.told()}")


def write(file, text):
    file.write_text(text)
    return file


async def a_chat_with_a_daemon_goes_on(folder):
    args = ("daemon", "serve", "--listen", "127.0.0.1:0", "--workspace", folder)
    async with two(r"http://[^/\s]+", *args) as servers:
        for way in ((), ("--sse",)):
            args = ("daemon", "chat", "--url", urls(servers), "--json", "--yes", *way)
            async with spoken(Chat, SWITCHBOARD, *args) as chat:
                node = (await heard(chat, "connected"))["node"]
                await chat.write("hello")
                await heard(chat, "ended")
                if way:
                    continue
                other = await kill_one(servers, node)
                await chat.write("hello again")
                again = await chat.hear(lambda it: it.get("update") in ("connected", "ended"), "connected or ended")
                if again["update"] == "ended":
                    # That told that the line is cut; nobody knows whether it has arrived.
                    expect(again["mayHaveRun"], f"what was not sent is sent again: {again}")
                    await chat.write("hello again")
                    again = await heard(chat, "connected")
                moved(other, again["node"])
                await heard(chat, "ended")


def heard(chat, update):
    return chat.hear(lambda it: it.get("update") == update, update)


CHECKS = [
    a_chat_and_a_bot_of_snek_go_on,
    a_chat_with_an_agent_goes_on,
    a_client_of_a_router_goes_on,
    a_dialogue_with_a_gateway_goes_on,
    a_chat_with_a_daemon_goes_on,
]


async def main(checks, folder):
    for check in CHECKS:
        own = folder / check.__name__
        own.mkdir()
        await checks.run(title(check), check(own), 2 * LONG)


if __name__ == "__main__":
    if SWITCHBOARD is None:
        sys.exit("usage: addresses.py SWITCHBOARD")
    run(main)
