"""`wire load` against a gateway in Python that misbehaves, and against hosts of ConnectOnion's Python
package: loads.py SWITCHBOARD VENV.."""

import json
import re
import sys
from pathlib import Path

from common import expect, program, title
from exoclaw import HELLO
from peers import START, Spoken, run, spoken
from websockets.asyncio.server import serve

SWITCHBOARD, *VENVS = sys.argv[1:]
STUB = Path(__file__).parent / "agents" / "stub.py"
CALLS = 40


async def load(port, protocol, *args):
    """The report of a run of 40 calls."""
    url = f"ws://127.0.0.1:{port}"
    how = ("--warmup", "0", "--rate", "20", "--duration", "2s", "--connections", "8")
    command = ("wire", "load", url, "--protocol", protocol, *how, *args, "--json")
    async with program(SWITCHBOARD, *command) as running:
        code = await running.end()
        expect(code == 0, f"the exit code {code}: {running.lines}")
        return json.loads(running.find("{"))


async def all_are_answered(port, scenario):
    # Each prompt needs a while there: nobody may give up.
    report = await load(port, "connectonion", "--scenario", scenario, "--timeout", "30s")
    sent, unsent = report["sent"], report["behind"]["unsent"]
    expect((report["ok"], sent + unsent) == (sent, CALLS), report)
    expect(report["failed"] == {} and report["lost"] == {}, report)


async def what_a_gateway_does_is_counted():
    async def handler(socket):
        await socket.send(json.dumps(HELLO))
        async for text in socket:
            call = json.loads(text)
            kind = int(call["id"]) % 4
            if kind == 0:
                await socket.send(json.dumps({"error": "too busy", "id": call["id"]}))
            elif kind > 1:
                await socket.send(json.dumps({"id": call["id"], "result": {"pong": True}}))

    async with serve(handler, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        report = await load(port, "exoclaw", "--timeout", "1s")
    expect(report["ok"] == CALLS // 2, report)
    wanted = {"error answer: too busy": CALLS // 4, "timed out": CALLS // 4}
    expect(report["failed"] == wanted, report)


async def main(checks, folder):
    await checks.run(title(what_a_gateway_does_is_counted), what_a_gateway_does_is_counted())
    for venv in VENVS:
        version = re.search(r"[\d.]+$", venv)[0]
        command = (Spoken, Path(venv) / "bin" / "python", STUB, "open", folder / version)
        async with spoken(*command) as host:
            port = int((await host.line_with("port ")).removeprefix("port "))
            await host.address_at(port)
            for scenario in ("echo", "chat", "connect"):
                await checks.run(f"{version}: {scenario}", all_are_answered(port, scenario), START)


run(main)
