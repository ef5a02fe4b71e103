"""Clients of ours with two servers: the one that it is at is killed, and it goes on at the other."""
# Needs: nothing.

import contextlib
import sys

from gateways import gateway
from harness import SWITCHBOARD, expect, main, program, same, served, switchboard, until

PASSWORD = {"SNEK_PASSWORD": "pw"}
# Runs a program at a terminal.
TERMINAL = "import pty, sys; pty.spawn(sys.argv[1:])"

class Pair:
    """Two servers."""

    def __init__(self, servers):
        self.servers = {server.address: server for server in servers}
        self.urls = ",".join(f"ws://{address}" for address in self.servers)

    async def kill(self, node):
        """Kills the server that a client is at. Returns where the other one is."""
        [hit] = [address for address in self.servers if address in node]
        await self.servers[hit].kill()
        [other] = self.servers.keys() - {hit}
        return other

@contextlib.asynccontextmanager
async def pair(*args):
    async with served(*args) as one, served(*args) as two:
        yield Pair((one, two))

async def a_chat_and_a_bot_of_snek_go_on():
    async with pair("bot", "serve", "--open") as both:
        where = ("--url", both.urls, "--json", "--username")
        async with (
            switchboard("bot", *where, "helper", **PASSWORD) as bot,
            switchboard("bot", "chat", *where, "ann", **PASSWORD) as ann,
        ):
            at = (await bot.event("connected"))["node"]
            other = await both.kill((await ann.event("connected"))["node"])
            expect(other in (await ann.event("back"))["node"], f"the chat does not go on at {other}")
            if other not in at:
                expect(other in (await bot.event("connected"))["node"], f"the bot does not go on at {other}")
            await ann.write("@helper ping")
            await ann.event("message", username="helper")

async def a_client_of_a_router_goes_on():
    async with pair("router", "serve") as both:
        async with switchboard("router", "client", "--url", both.urls, "--json", "--name", "notes") as client:
            other = await both.kill((await client.event("registered"))["node"])
            expect(other in (await client.event("registered"))["node"], f"it does not go on at {other}")
            await both.servers[other].write("notes: buy milk")
            await client.event("message")

async def a_dialogue_with_a_gateway_goes_on():
    config = {"gateway": {"data_dir": ":memory:"}}
    async with gateway(config=config) as one, gateway(config=config) as two:
        for server in (one, two):
            server.kill = server.program.kill
        both = Pair((one, two))
        # With CI set, a terminal gets plain lines, as a file does.
        terminal = {"TERM": "xterm", "NO_COLOR": "1", "CI": ""}
        where = (SWITCHBOARD, "gateway", "chat", "--url", both.urls)
        async with program(sys.executable, "-c", TERMINAL, *where, **terminal) as client:
            other = await both.kill(await client.line("connected, at "))
            await client.write("ping")
            if "error: " in await until(lambda: client.find("error: ") or client.find("connected again"), "it notices"):
                # That told that the line is cut; nobody knows whether it has arrived.
                await client.write("ping")
            expect(other in await client.line("connected again, at "), f"it does not go on at {other}")
            await client.line("I am a scripted model")
        # Who comes later does not mind the dead one either.
        async with switchboard("gateway", "chat", "--url", both.urls, "--json", "ping") as client:
            expect(other in (await client.event("connected"))["node"], f"it is not at {other}")
            same(await client.end(), 0, "the exit code")

async def body(checks):
    for check in (a_chat_and_a_bot_of_snek_go_on, a_client_of_a_router_goes_on, a_dialogue_with_a_gateway_goes_on):
        checks.beside(check)

main(body)
