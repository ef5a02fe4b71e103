"""The chat pages: what a user sees and does, against the gateway, one that is told what to do, and the agent.

    checks.py SWITCHBOARD BROWSER AXE [WORDS]

With WORDS, only the checks that have them in their name.
"""

import asyncio
import contextlib
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "interop.d"))

import access
import agents
import chats
import content
import providers
import real
import scripted_gateway
import streaming
import wire
from axe import PICTURES, Axe
from chrome import browser
from common import Checks, program
from page import TOKEN
from scene import Scene

DEADLINE = 60


@contextlib.asynccontextmanager
async def gateway(path, *args):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        config = Path(folder, "config.toml")
        config.touch()
        env = {"EXOCLAW_CONFIG": str(config), "HOME": folder}
        async with program(path, "gateway", "--port", "0", "--bind", "127.0.0.1", *args, **env) as running:
            line = await asyncio.wait_for(running.line_with("http://127.0.0.1:"), 20)
            yield re.search(r"http://127\.0\.0\.1:\d+", line)[0]


CHECKS = {
    "the page loads and connects, without a token": real.loads_and_connects,
    "the page's policy is in force": real.policy_is_in_force,
    "the gateway answers": real.answer,
    "a browser has a session of its own, shown again after a reload": real.session,
    "the gateway calls a tool": real.tool,
    "the gateway's model fails": real.failure,
    "the gateway stops with its client": real.stop,
    "what a reload left is shown again": real.left,
    "a token is asked for, refused, and accepted": real.token,
    "pages from elsewhere cannot connect": real.foreign_pages,
    "text shows up in pieces, tokens are summed": scripted_gateway.text_in_pieces,
    "Enter, Shift+Enter and Escape": scripted_gateway.keys,
    "typing goes on during an answer, sending waits": scripted_gateway.sending_waits,
    "tools and their results": scripted_gateway.tools,
    "markup stays text": scripted_gateway.markup_is_text,
    "noise is ignored": scripted_gateway.noise_is_ignored,
    "failures are shown and unlock the input": scripted_gateway.failures_are_shown,
    "Stop leaves and comes back": scripted_gateway.stop,
    "a cut line is replaced": scripted_gateway.cut,
    "attempts to reconnect are spread": scripted_gateway.waits_longer_each_time,
    "silence means that a token is wanted": scripted_gateway.silence_means_a_token,
    "a late hello needs no token": scripted_gateway.late_hello,
    "a silent answer ends": scripted_gateway.a_silent_answer_ends,
}


def everything():
    """All checks, by name."""
    yield from ((name, lambda scene, check=check: check(scene.chrome, scene.gateway, scene.guarded))
                for name, check in CHECKS.items())
    yield from ((name, lambda scene, check=check: check(scene.chrome, scene.switchboard))
                for name, check in agents.CHECKS.items())
    for part in (chats, content, access, providers, streaming, wire):
        yield from part.CHECKS.items()


async def main():
    switchboard, browser_program, axe = sys.argv[1:4]
    words = " ".join(sys.argv[4:])
    for name in list(os.environ):
        if name.startswith(("AGENT_", "EXOCLAW_", "ANTHROPIC_", "OLLAMA_", "OPENAI_", "VLLM_")) or name.lower().endswith("_proxy"):
            del os.environ[name]
    checks = Checks()
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
    async with (
        gateway(switchboard) as open_one,
        gateway(switchboard, "--token", TOKEN) as guarded,
        agents.agent(switchboard) as (host, _),
        browser(browser_program) as chrome,
    ):
        scene = Scene(chrome, Axe(Path(axe).read_text()), switchboard, open_one, guarded, host)
        for name, check in everything():
            if words in name:
                await checks.run(name, check(scene), DEADLINE, again=lambda: check(scene))
    checks.finish()


asyncio.run(main())
