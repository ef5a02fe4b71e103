"""`wire load` on a gateway in Python that answers badly, and on hosts of ConnectOnion's Python package."""

# Needs: onion-old, onion.

import asyncio
import contextlib
import json
import tempfile

from gateways import HELLO
from harness import Failed, expect, main, onions, output, same
from onions import real_host, version
from sockets import Python

CALLS = 40


async def load(url, protocol, *args):
    """The report of a run of so many calls."""
    how = ("--warmup", "0", "--rate", "20", "--duration", "2s", "--connections", "8", "--json")
    code, said, complaints = await output("wire", "load", url, "--protocol", protocol, *how, *args)
    same(code, 0, f"the exit code, with {complaints}")
    return json.loads(said)


async def answer(socket):
    """Refuses each fourth call, leaves another one without an answer, and answers the others."""
    await socket.send(HELLO)
    with contextlib.suppress(Failed, OSError):
        while True:
            call_id = (await socket.next())["id"]
            kind = int(call_id) % 4
            if kind == 0:
                await socket.send({"error": "too busy", "id": call_id})
            elif kind > 1:
                await socket.send({"id": call_id, "result": {"pong": True}})


async def what_a_gateway_does_is_counted():
    async def attend(server):
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(answer(await server.accepted()))

    async with Python() as peer, peer.serve() as server:
        attending = asyncio.create_task(attend(server))
        report = await load(server.url, "exoclaw", "--timeout", "20s")
        attending.cancel()
        await asyncio.gather(attending, return_exceptions=True)
    sent = report["sent"]
    same(sent + report["behind"]["unsent"], CALLS, "calls")
    same(report["failed"], {"error answer: too busy": sent // 4, "timed out": (sent + 3) // 4}, "failures")
    same(report["ok"] + sum(report["failed"].values()), sent, "outcomes")


async def all_calls_of_a_host_are_answered(name, host, scenario):
    # Each prompt needs a while there: nobody may give up.
    report = await load(f"ws://127.0.0.1:{host.port}", "connectonion", "--scenario", scenario, "--timeout", "100s")
    same((report["ok"], report["sent"] + report["behind"]["unsent"]), (report["sent"], CALLS), "calls")
    expect(report["failed"] in ({}, {"never sent": report["behind"]["unsent"]}) and not report["lost"], report)


async def body(checks):
    checks.beside(what_a_gateway_does_is_counted)
    for onion in onions():
        name = version(onion)
        with tempfile.TemporaryDirectory() as folder:
            async with real_host(onion, "open", f"{folder}/host") as host:
                for scenario in ("echo", "chat", "connect"):
                    await checks.run(all_calls_of_a_host_are_answered, name, host, scenario)


main(body)
