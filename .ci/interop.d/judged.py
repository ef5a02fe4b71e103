"""`wire check` of ConnectOnion's own hosts and clients, and of a server in Python: what they fail is known.

    judged.py SWITCHBOARD NODE VENV..

The rows that a peer fails are listed in the file of its name in `judged`, with a reason; another one that
fails is a failure, and so is one that holds by now, unless `? ` in front says that it depends. ACCEPT=1 writes
the lists, with the reasons that they had.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import os
import re
import sys
from pathlib import Path

import aiohttp
from aiohttp import web
from common import Failed, expect
from fake import Fake
from peers import START, Caller, Line, Spoken, run, spoken

SWITCHBOARD, NODE, *VENVS = sys.argv[1:]
HERE = Path(__file__).parent
LISTS = HERE / "judged"
AGENTS = HERE / "agents"
#: How long all rows of a peer may take, in seconds.
DEADLINE = 150
ADDRESS = "0x" + "ab" * 32
HOST = {"prompt": "hello", "ask_prompt": "ask"}
#: Newer ones allow strangers no tool.
OLD_HOST = {"tool_prompt": "add 2 3", "approval_prompt": "run", "long_prompt": "steps 4 0.4"}


def listed(name):
    """The rows that a peer is known to fail, with the reasons."""
    file = LISTS / f"{name}.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    rows = (line.split("  # ", 1) for line in lines)
    return {row.removeprefix("? "): (row.startswith("? "), why) for row, why in rows}


async def check(name, protocol, *args, jobs="12", timeout="5", **values):
    values = [f"--set={key}={value}" for key, value in values.items()]
    role, *args = args
    target, command = (args, []) if role == "server" else ([], ["--", *args])
    options = ["--protocol", protocol, "--json", "--timeout", timeout, "--jobs", jobs, *values]
    async with spoken(Spoken, SWITCHBOARD, "wire", "check", role, *target, *options, *command) as judge:
        report = await judge.hear(lambda it: "rows" in it, "report")
    rows = {row["id"].removeprefix(f"{protocol}.{role}."): row for row in report["rows"]}
    failed = {id: row for id, row in rows.items() if row["verdict"] == "fail"}
    holds = sum(row["verdict"] == "pass" for row in rows.values())
    print(f"      {name}: {len(rows)} rows, {holds} hold, {len(failed)} fail", flush=True)
    known = listed(name)
    if os.environ.get("ACCEPT"):
        accept(name, failed, known)
        return
    expect(holds, f"no row holds: {judge.told()}")
    new = [f"{id}: at {row['step']}: {row['reason']}" for id, row in failed.items() if id not in known]
    gone = [f"{id} does not fail any more" for id, (may, _) in known.items() if id not in failed and not may]
    expect(not new and not gone, "\n      ".join([*new, *gone]))


def accept(name, failed, known):
    LISTS.mkdir(exist_ok=True)
    lines = [f"? {id}  # {why}" for id, (may, why) in known.items() if may]
    for id, row in failed.items():
        may, why = known.get(id, (False, f"{row['says']} {row['reason'][:80]}"))
        lines += [] if may else [f"{id}  # {why}"]
    (LISTS / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))


async def a_host(name, venv, folder):
    async with spoken(Spoken, Path(venv) / "bin" / "python", AGENTS / "stub.py", "open", folder / name) as host:
        port = (await asyncio.wait_for(host.line_with("port "), START)).removeprefix("port ")
        async with aiohttp.ClientSession() as session:
            while True:
                with contextlib.suppress(aiohttp.ClientError):
                    async with session.get(f"http://127.0.0.1:{port}/info") as info:
                        address = (await info.json())["address"]
                        break
                expect(not host.is_over(), f"the host has ended: {host.told()}")
                await asyncio.sleep(0.1)
        values = HOST | (OLD_HOST if name.endswith("-1.2.1") else {})
        await check(name, "connectonion", "server", f"ws://127.0.0.1:{port}/ws", address=address, **values)


class Front(Line):
    """The host that is checked with: it also answers who it is, to the client and in place of a relay."""

    async def request(self, head, reader, writer):
        if b"upgrade: websocket" in head.lower():
            return await super().request(head, reader, writer)
        told = {"address": ADDRESS, "name": "stub", "online": True, "endpoints": [self.url]}
        body = json.dumps(told).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        writer.close()


async def a_client(name, *command):
    """Its program takes seconds to start: all users are in one."""
    names = itertools.count()

    async def ask(caller, order):
        async with Front.lead(int(re.search(r":(\d+)", order["url"])[1])) as front:
            user = f"user {next(names)}"
            answer = await caller.tell("open", user, address=ADDRESS, relay=front.url, key=user)
            if "error" not in answer:
                answer = await caller.tell("input", user, prompt=order["prompt"], answer="red", approve=True)
            return answer

    async def serve(reader, writer):
        with contextlib.suppress(ConnectionError):
            asked = asyncio.create_task(ask(caller, json.loads(await reader.readline())))
            # The row may have seen enough.
            gone = asyncio.create_task(reader.read())
            await asyncio.wait([asked, gone], return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                writer.write(json.dumps(asked.result()).encode() + b"\n")
            asked.cancel()
            gone.cancel()
            writer.close()

    async with spoken(Caller, *command, SEAL_TIMEOUT="0.2") as caller:
        await asyncio.wait_for(caller.hear(lambda it: it.get("ready"), "sign that it is there"), START)
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            asker = (sys.executable, AGENTS / "asker.py", port, "{url}", "{prompt}")
            await check(name, "connectonion", "client", *asker, jobs="4", timeout="12", prompt="What is 6 * 7?")


async def a_server(name):
    # It knows no more than our bot needs, and ends a connection that wants more.
    logging.disable()
    fake = Fake()
    app = web.Application()
    app.router.add_get("/rpc.ws", fake.serve_aiohttp)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"ws://127.0.0.1:{runner.addresses[0][1]}/rpc.ws"
        await check(name, "snek", "server", url, username="bot", password="secret", channel="dm1")
    finally:
        await runner.cleanup()


async def main(checks, folder):
    judged = {"snek-server-aiohttp": a_server("snek-server-aiohttp")}
    for venv in VENVS:
        version = re.search(r"[\d.]+$", venv)[0]
        name = f"connectonion-host-{version}"
        judged[name] = a_host(name, venv, folder)
        name = f"connectonion-client-python-{version}"
        command = (f"{venv}/bin/python", AGENTS / "caller.py", folder / name)
        judged[name] = a_client(name, *command)
    name = "connectonion-client-node"
    judged[name] = a_client(name, "node", f"{NODE}/caller.mjs")
    await asyncio.gather(*(checks.run(name, one, DEADLINE) for name, one in judged.items()))


run(main)
