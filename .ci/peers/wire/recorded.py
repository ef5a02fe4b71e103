"""Scripts of other folders once more through `wire proxy --record`, and what was recorded decoded.

Nothing may change for the peers, and no frame may be unknown or wrong, but for what `recorded.txt` lists; and all that it
lists has to be met."""
# Needs: node, onion-old, onion.

import asyncio
import collections
import fnmatch
import os
import sys
import tempfile
from pathlib import Path

from harness import expect, json_lines, main, output, program

HERE = Path(__file__).parent
# The longest ones first.
SCRIPTS = (
    "connectonion/client", "connectonion/client_old", "connectonion/host", "acolyte/daemon", "acolyte/client",
    "smarthole/router", "smarthole/client", "snek/server", "snek/bot", "exoclaw/gateway", "exoclaw/client",
)
# Lines of `SCRIPT | WHAT | REASON`, with patterns.
LISTED = [line for line in (HERE / "recorded.txt").read_text().splitlines() if not line.startswith("#")]
MET = set()

def differs(script, what):
    """Whether this is known to differ."""
    met = [line for line in LISTED if all(map(fnmatch.fnmatchcase, (script, what), line.split(" | ")))]
    MET.update(met)
    return bool(met)

async def nothing_changes_for_its_peers(script, folder):
    async with program(sys.executable, HERE / "wired.py", HERE.parent / f"{script}.py", folder) as running:
        await running.end()
    expect(running.find(" checks, "), f"it has not come to its end: {running.tail()}")
    failed = [line.removeprefix("FAIL").strip() for line in running.lines if line.startswith("FAIL")]
    new = [line for line in failed if not differs(script, line)]
    expect(not new, "\n      ".join(new))

async def all_of_its_frames_are_known(script, folder):
    frames, problems = 0, collections.Counter()
    files = list(Path(folder).iterdir())
    for file in files:
        code, said, complaints = await output("wire", "decode", "--json", file)
        expect(code == 0, f"{file.name}: {complaints}")
        for line in json_lines(said):
            frames += line.get("entry") in ("text", "sse")
            if problem := problem_of(line):
                problems[problem] += 1
    print(f"      {script}: {len(files)} recordings, {frames} frames", flush=True)
    expect(frames, "no frame was recorded")
    new = [problem for problem in problems if not differs(script, problem)]
    expect(not new, "\n      ".join(f"{problems[problem]} times {problem}" for problem in new))

def problem_of(line):
    """What is unknown or wrong in a frame, if anything."""
    if line.get("fault"):
        return f"{line['dir']} {line['kind']}: {line['fault']['error']}"
    if line.get("unknown") or line.get("unknown_kind"):
        return f"{line['dir']} {line['kind']}: not known: {', '.join(line.get('unknown') or ['the kind'])}"
    return None

async def all_that_is_listed_is_met():
    expect(MET == set(LISTED), "\n      ".join(set(LISTED) - MET))

async def body(checks):
    # Seconds for all checks of a script, each of which has a deadline of its own.
    checks.deadline = 900
    places = asyncio.Semaphore(os.cpu_count())

    async def both(script):
        async with places:
            with tempfile.TemporaryDirectory() as folder:
                for check in (nothing_changes_for_its_peers, all_of_its_frames_are_known):
                    await checks.run(lambda: check(script, folder), name=f"{script}: {check.__name__.replace('_', ' ')}")

    await asyncio.gather(*map(both, SCRIPTS))
    await checks.run(all_that_is_listed_is_met)

main(body)
