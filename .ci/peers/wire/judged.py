"""`wire check` of real hosts and clients of ConnectOnion, and of a Snek server with aiohttp: what they fail is known.

The rows that a peer fails are listed in the file of its name in `judged`, with a reason. Another one that fails is a
failure, and so is one that holds by now, unless `? ` in front says that it depends."""
# Needs: node, onion-old, onion.

import asyncio
import contextlib
import itertools
import json
import re
import sys
import tempfile
from pathlib import Path

from fakesnek import Fake, serving
from harness import expect, main, onions, output
from onions import HERE, Line, real_host, real_users, version
from sockets import Aiohttp

ADDRESS = "0x" + "ab" * 32
# The host says something each half a minute there.
SLOW = ("ping.interval",)
PROMPTS = {"prompt": "hello", "ask_prompt": "ask"}
# Newer hosts allow strangers no tool.
MORE_PROMPTS = {"tool_prompt": "add 2 3", "approval_prompt": "run", "long_prompt": "work"}

async def judge(name, protocol, role, *target, command=(), **values):
    """Runs all rows, and compares those that fail with the list."""
    prefix, known = f"{protocol}.{role}.", listed(name)
    options = [role, *target, "--protocol", protocol, *(f"--set={key}={value}" for key, value in values.items())]

    async def rows(patience, wanted):
        only = [f"--only={prefix}{row_id}" for row_id in wanted]
        how = ("--timeout", patience, "--json", "--jobs", "12")
        _, said, complaints = await output("wire", "check", *options, *only, *how, *command)
        expect(said, complaints)
        found = {row["id"].removeprefix(prefix): row for row in json.loads(said)["rows"]}
        return {row_id: found[row_id] for row_id in wanted}

    _, said, _ = await output("wire", "check", *options, "--list", *command)
    everything = re.findall(rf"^(?:MUST|SHOULD) +{re.escape(prefix)}(\S+):", said, re.MULTILINE)
    # The machine may be busy: those that shall hold have time for it, and those that shall fail need none. Rows end in
    # their order, so that those after a slow one would wait.
    slow = [row_id for row_id in everything if row_id in SLOW]
    others = [row_id for row_id in everything if row_id not in (*SLOW, *known)]
    groups = [rows(patience, wanted) for patience, wanted in ((5, [*known]), (30, slow), (30, others)) if wanted]
    found = {row_id: row for group in await asyncio.gather(*groups) for row_id, row in group.items()}
    failed = {row_id: row for row_id, row in found.items() if row["verdict"] == "fail"}
    passed = [row_id for row_id, row in found.items() if row["verdict"] == "pass"]
    print(f"      {name}: {len(found)} rows, {len(passed)} hold, {len(failed)} fail", flush=True)
    expect(passed, "no row holds")
    wrong = [f"{row_id}: at {row['step']}: {row['reason']}" for row_id, row in failed.items() if row_id not in known]
    wrong += [f"{row_id} holds by now" for row_id in passed if not known.get(row_id, True)]
    expect(not wrong, "\n      ".join(wrong))

def listed(name):
    """The rows that a peer is known to fail, and whether it depends."""
    lines = (Path(__file__).parent / "judged" / f"{name}.txt").read_text().splitlines()
    rows = (line.split("  # ")[0] for line in lines)
    return {row.removeprefix("? "): row.startswith("? ") for row in rows}

async def hosts_of_the_package(onion, folder):
    async with real_host(onion, "open", folder / "host") as host:
        values = PROMPTS | (MORE_PROMPTS if version(onion) == "1.2.1" else {})
        url = f"ws://127.0.0.1:{host.port}/ws"
        name = f"connectonion-host-{version(onion)}"
        await judge(name, "connectonion", "server", url, address=host.agent, **values)

class Front(Line):
    """The host that a row plays, which also answers who it is, to a client and in place of a relay."""

    async def answer(self, path, is_upgrade):
        said = {"address": ADDRESS, "name": "x", "online": True, "endpoints": [self.url]}
        return None if path.startswith("/ws") else ("application/json", json.dumps(said).encode())

async def clients_of_the_package(name, onion, folder):
    """`asker.py`, which a row starts, asks a user here. Python's take long to start: all rows have the same program.
    Node's ends at what it does not understand: each row has its own."""
    names = itertools.count()

    async def ask(users, order):
        async with Front(int(re.search(r":(\d+)", order["url"])[1])) as front:
            key = f"user{next(names)}"
            user = await users.open(key, ADDRESS, front.url, key)
            return await user.tell("input", prompt=order["prompt"], answer="red", approve=True)

    async def serve(reader, writer):
        async with contextlib.AsyncExitStack() as stack:
            users = shared or await stack.enter_async_context(real_users(None, folder))
            asking = asyncio.create_task(ask(users, json.loads(await reader.readline())))
            # A row may have seen enough.
            gone = asyncio.create_task(reader.read())
            await asyncio.wait([asking, gone], return_when=asyncio.FIRST_COMPLETED)
            for task in (asking, gone):
                task.cancel()
            answer, _ = await asyncio.gather(asking, gone, return_exceptions=True)
            if isinstance(answer, dict):
                writer.write(json.dumps(answer).encode() + b"\n")
            writer.close()

    async with contextlib.AsyncExitStack() as stack:
        shared = onion and await stack.enter_async_context(real_users(onion, folder / name, SEAL_TIMEOUT="0.2"))
        server = await stack.enter_async_context(await asyncio.start_server(serve, "127.0.0.1", 0))
        command = ("--", sys.executable, HERE / "asker.py", server.sockets[0].getsockname()[1], "{url}", "{prompt}")
        await judge(name, "connectonion", "client", command=command, prompt="What is 6 * 7?")

async def a_server_with_aiohttp():
    async with serving(Fake(), Aiohttp) as server:
        values = {"username": "bot", "password": "secret", "channel": "dm1"}
        await judge("snek-server-aiohttp", "snek", "server", f"{server.url}/rpc.ws", **values)

async def body(checks):
    # Six programs start at once, and one row takes a minute.
    checks.deadline = 300
    with tempfile.TemporaryDirectory() as folder:
        checks.beside(a_server_with_aiohttp)
        for onion in onions():
            place = Path(folder) / version(onion)
            checks.beside(hosts_of_the_package, onion, place)
            checks.beside(clients_of_the_package, f"connectonion-client-python-{version(onion)}", onion, place)
        checks.beside(clients_of_the_package, "connectonion-client-node", None, Path(folder) / "node")
        await checks.finished()

main(body)
