"""Runs a script with `wire proxy --record` between our programs and all others: wired.py SCRIPT FOLDER.

What a program of ours listens on is told as the address of a proxy, and what it is to connect to becomes one: the checks
need not know."""

import itertools
import re
import runpy
import sys
from pathlib import Path

from harness import SWITCHBOARD, Program

SCRIPT, FOLDER = sys.argv[1], Path(sys.argv[2])
LOCAL = re.compile(r"((?:ws|http)://)(127\.0\.0\.1:\d+)")
TARGETS = ("--url", "--endpoint")
COMMANDS = {"bot": "snek", "gateway": "exoclaw", "router": "smarthole", "agent": "connectonion", "daemon": "acolyte"}
# The proxy has its own list of pages that may connect.
ORIGINS = ("http://localhost:3000", "app://obsidian.md")
NUMBERS = itertools.count()
START, READ, READ_ALL = Program.start, Program.read, Program.read_all

def protocol(program):
    """What a program of ours speaks, if anything."""
    return COMMANDS.get(program.argv[1]) if program.argv[0] == SWITCHBOARD and len(program.argv) > 1 else None

async def replaced(program, text):
    """A text with the address of a proxy in place of another one."""
    if found := LOCAL.search(text):
        if found[2] not in program.proxies:
            name = f"{protocol(program)}-{next(NUMBERS)}.jsonl"
            argv = [SWITCHBOARD, "wire", "proxy", "--listen", "127.0.0.1:0", "--to", f"ws://{found[2]}", "--drain", "1s"]
            argv += ["--record", FOLDER / name, "--protocol", protocol(program)]
            argv += [f"--allow-origin={origin}" for origin in ORIGINS]
            program.proxies[found[2]] = await Program(argv).start()
        listens = await program.proxies[found[2]].line("listening")
        text = text.replace(found[2], LOCAL.search(listens)[2])
    return text

async def start(self):
    self.proxies = {}
    given = self.argv
    if protocol(self):
        targets = [before in TARGETS for before in ["", *given]]
        self.argv = [await replaced(self, arg) if is_target else arg for is_target, arg in zip(targets, given)]
    try:
        return await START(self)
    finally:
        self.argv = given

async def read(self, number, stream):
    async def lines():
        async for line in stream:
            if b"listening" in line and protocol(self):
                line = (await replaced(self, line.decode())).encode()
            yield line

    await READ(self, number, lines())

async def read_all(self, streams):
    await READ_ALL(self, streams)
    # Their recordings are complete when they have ended.
    for proxy in self.proxies.values():
        await proxy.stop()

Program.start, Program.read, Program.read_all = start, read, read_all
sys.argv = [SCRIPT]
sys.path[0] = str(Path(SCRIPT).parent)
runpy.run_path(SCRIPT, run_name="__main__")
