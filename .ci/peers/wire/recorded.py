"""Scripts of other folders once more through `wire proxy --record`, and what was recorded decoded.

Nothing may change for the peers, and no frame may be unknown or wrong, but for what `recorded.txt` lists; and all that it
lists has to be met."""

# Needs: node, onion-old, onion.

import asyncio
import collections
import fcntl
import fnmatch
import json
import os
import sys
import tempfile
from pathlib import Path

from harness import SWITCHBOARD, Program, expect, main, output

HERE = Path(__file__).parent
# The longest ones first.
SCRIPTS = (
    "connectonion/client", "connectonion/client_old", "connectonion/host", "acolyte/daemon", "acolyte/client",
    "smarthole/router", "smarthole/client", "snek/server", "snek/bot", "exoclaw/gateway", "exoclaw/client",
)


class Listed:
    """What is known to differ: lines of `SCRIPT | WHAT | REASON`, with patterns."""

    def __init__(self):
        lines = (HERE / "recorded.txt").read_text().splitlines()
        self.lines = [tuple(line.split(" | ")) for line in lines if line and not line.startswith("#")]
        self.met = set()

    def has(self, script, what):
        fits = [it for it in self.lines if fnmatch.fnmatchcase(script, it[0]) and fnmatch.fnmatchcase(what, it[1])]
        self.met.update(fits)
        return bool(fits)

    async def all_that_is_listed_is_met(self):
        expect(self.met == set(self.lines), "\n      ".join(" | ".join(it) for it in set(self.lines) - self.met))


async def nothing_changes_for(script, folder, listed):
    """Runs the checks of a script with proxies in between."""
    env = {"SWITCHBOARD": str(HERE / "wired.py"), "WIRED_PROGRAM": SWITCHBOARD, "WIRED_FOLDER": str(folder)}
    running = await Program([sys.executable, HERE.parent / f"{script}.py"], env=env).start()
    try:
        await running.end()
    finally:
        await running.kill()
    # Those who write the recordings have it until they are complete.
    with open(folder / "lock", "a") as lock:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
    expect(running.find(" checks, "), f"it has not come to its end: {running.tail()}")
    failed = [line.removeprefix("FAIL").strip() for line in running.lines if line.startswith("FAIL")]
    new = [line for line in failed if not listed.has(script, line)]
    expect(not new, "\n      ".join(new))


async def all_frames_are_known_of(script, folder, listed):
    """Decodes what was recorded."""
    recordings = sorted(folder.glob("*.jsonl"))
    expect(recordings, "nothing was recorded")
    frames, problems = 0, collections.Counter()
    for recording in recordings:
        code, said, complaints = await output("wire", "decode", "--json", recording)
        expect(code == 0, f"{recording.name}: {complaints}")
        for line in map(json.loads, said.splitlines()):
            frames += line.get("entry") in ("text", "sse")
            if problem := problem_of(line):
                problems[problem] += 1
    print(f"      {script}: {len(recordings)} recordings, {frames} frames", flush=True)
    expect(frames, "no frame was recorded")
    new = [f"{count} times {problem}" for problem, count in problems.items() if not listed.has(script, problem)]
    expect(not new, "\n      ".join(new))


def problem_of(line):
    """What is unknown or wrong in a frame, if anything."""
    if line.get("fault"):
        return f"{line['dir']} {line['kind']}: {line['fault']['error']}"
    if line.get("unknown") or line.get("unknown_kind"):
        return f"{line['dir']} {line['kind']}: not known: {', '.join(line.get('unknown') or ['the kind'])}"
    return None


async def body(checks):
    # Seconds for all checks of a script, each of which has a deadline of its own.
    checks.deadline = 900
    listed, places = Listed(), asyncio.Semaphore(os.cpu_count())

    async def both(script, folder):
        folder.mkdir(parents=True)
        async with places:
            await checks.run(nothing_changes_for, script, folder, listed)
            await checks.run(all_frames_are_known_of, script, folder, listed)

    with tempfile.TemporaryDirectory() as folder:
        await asyncio.gather(*(both(script, Path(folder) / script) for script in SCRIPTS))
    await checks.run(listed.all_that_is_listed_is_met)


main(body)
