"""The checks of four protocols and more once again, through `wire proxy --record`, and what is recorded decoded.

    recorded.py SWITCHBOARD NODE VENV..

Nothing may change for the peers, and no frame may be unknown or wrong, but for what `recorded.txt` lists.
"""

import asyncio
import collections
import fcntl
import fnmatch
import json
import os
import shutil
import sys
from pathlib import Path

from common import Checks, expect

SWITCHBOARD, NODE, *VENVS = map(os.path.abspath, sys.argv[1:])
HERE = Path(__file__).parent
FOLDER = Path(SWITCHBOARD).parents[1] / "interop-recordings"
#: In seconds.
DEADLINE = 300
#: A silent line says nothing more here.
SILENCE = "5"
ACOLYTE = "acolyte-proto/tests/vectors"
#: One after the other, beside the other rows.
RUNS = [
    [("hosts.py", *VENVS)],
    [("agents.py", NODE, *VENVS), ("servers.mjs",), ("gateways.py",)],
    [("clients.mjs",), ("daemon.mjs", ACOLYTE), ("clients.py",), ("routers.py",)],
    [("servers.py",), ("daemons.py",), ("acolytes.py", ACOLYTE)],
]


class Listed:
    """What is known to differ: lines of `WHERE | WHAT | REASON`, with patterns. Each must be met."""

    def __init__(self):
        lines = (HERE / "recorded.txt").read_text().splitlines()
        lines = (line for line in lines if line and not line.startswith("#"))
        self.lines = [tuple(part.strip() for part in line.split(" | ")) for line in lines]
        self.met = set()

    def has(self, where, what):
        fits = [line for line in self.lines if fnmatch.fnmatchcase(where, line[0]) and fnmatch.fnmatchcase(what, line[1])]
        self.met.update(fits)
        return bool(fits)

    def unmet(self):
        return [" | ".join(line) for line in self.lines if line not in self.met]


async def lines_of(*command, **env):
    pipe = asyncio.subprocess.PIPE
    how = {"stdout": pipe, "stderr": asyncio.subprocess.DEVNULL, "env": os.environ | env, "limit": 1 << 26}
    process = await asyncio.create_subprocess_exec(*map(str, command), **how)
    try:
        out = await process.stdout.read()
        await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    return process.returncode, out.decode().splitlines()


async def checks_through_a_proxy(script, args, listed):
    """Runs the checks of a script with the proxy in between. What has failed is tried once more: all rows at
    once are a heavy load, and checks have deadlines."""
    failed, _ = await ran_through_a_proxy(script, args, listed)
    if failed:
        print("      once more:", "\n      ".join(failed), flush=True)
        _, passed = await ran_through_a_proxy(script, args, listed)
        failed = [line for line in failed if not line.startswith(passed)]
    expect(not failed, "\n      ".join(failed))


async def ran_through_a_proxy(script, args, listed):
    """Returns the failures that are not listed, and the names of what has passed."""
    folder = FOLDER / script
    folder.mkdir(exist_ok=True)
    program = "node" if script.endswith(".mjs") else sys.executable
    script = Path(NODE) / script if script.endswith(".mjs") else HERE / script
    env = {"WIRED_PROGRAM": SWITCHBOARD, "WIRED_FOLDER": str(folder), "INTEROP_SILENCE": SILENCE}
    _, lines = await lines_of(program, script, HERE / "wired.py", *args, **env)
    expect(any(" checks, " in line for line in lines), f"it has not come to its end: {lines[-3:]}")
    failed = [line.removeprefix("FAIL").strip() for line in lines if line.startswith("FAIL")]
    passed = tuple(line.removeprefix("ok").strip() + ":" for line in lines if line.startswith("ok"))
    with open(folder / "lock") as lock:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
    return [line for line in failed if not listed.has(script.name, line)], passed


def problem(line):
    """What is unknown or wrong in a frame."""
    if "fault" in line:
        return f"{line['dir']} {line['kind']}: {line['fault']['error']}"
    unknown = ", ".join(line.get("unknown", [])) or "the kind"
    return f"{line['dir']} {line['kind']}: not known: {unknown}"


async def recordings_are_decoded(script, listed):
    """Decodes what was recorded."""
    files = sorted((FOLDER / script).glob("*.jsonl"))
    expect(files, "nothing was recorded")
    found = collections.Counter()
    frames = 0
    for file in files:
        code, lines = await lines_of(SWITCHBOARD, "wire", "decode", "--json", file)
        expect(code == 0, f"{file.name}: {lines[-1:]}")
        for line in map(json.loads, lines):
            frames += line.get("entry") in ("text", "sse")
            if line.get("fault") or line.get("unknown") or line.get("unknown_kind"):
                found[problem(line)] += 1
    expect(frames, "no frame was recorded")
    print(f"      {script}: {len(files)} recordings, {frames} frames", flush=True)
    new = [f"{count} times {what}" for what, count in found.items() if not listed.has(script, what)]
    expect(not new, "\n      ".join(new))


async def one_after_the_other(checks, row, listed):
    for script, *args in row:
        await checks.run(f"{script} through a proxy", checks_through_a_proxy(script, args, listed), DEADLINE)
        await checks.run(f"{script} decoded", recordings_are_decoded(script, listed), DEADLINE)


async def everything_listed_was_met(listed):
    expect(not listed.unmet(), "\n      ".join(listed.unmet()))


async def main():
    checks, listed = Checks(), Listed()
    await asyncio.gather(*(one_after_the_other(checks, row, listed) for row in RUNS))
    await checks.run("what is listed still differs", everything_listed_was_met(listed))
    checks.finish()


shutil.rmtree(FOLDER, ignore_errors=True)
FOLDER.mkdir()
asyncio.run(main())
