"""Our client against hosts of ConnectOnion's Python package: hosts.py SWITCHBOARD VENV..

Each VENV is named after the version in it, at the end.
"""

import asyncio
import contextlib
import itertools
import os
import re
import sys
from pathlib import Path

from common import expect, title
from peers import START, Chat, Line, Spoken, run, spoken

SWITCHBOARD, *VENVS = sys.argv[1:]
STUB = Path(__file__).parent / "agents" / "stub.py"
CODE = "OpenOnion"
STEPS = 4
#: In seconds.
SILENCE = int(os.environ.get("INTEROP_SILENCE", 72))
#: Images are not looked into.
PIXEL = b"\x89PNG\r\n\x1a\n"


class Real(Spoken):
    """A host of the package."""

    async def started(self, version, folder):
        self.version, self.folder = version, folder
        self.homes = (folder.parent / f"home-{n}" for n in itertools.count())
        self.home = next(self.homes)
        line = await self.line_with("port ")
        self.port = int(line.removeprefix("port "))
        self.address = await self.address_at(self.port)
        return self

    @property
    def is_old(self):
        return self.version == "1.2.1"

    def chat(self, *args, line=None, home=None, leave="--yes"):
        """Our client, which the host knows unless it has another home."""
        url = f"http://127.0.0.1:{line.port if line else self.port}"
        args = ("chat", self.address, "--endpoint", url, "--json", *args)
        leave = [leave] if leave else []
        return spoken(Chat, SWITCHBOARD, "agent", *args, "--home", home or self.home, *leave)

    @contextlib.asynccontextmanager
    async def chat_on_a_line(self, **how):
        async with Line.lead(self.port) as line, self.chat(line=line, **how) as chat:
            yield chat, line

    async def allow_for_the_session(self, chat):
        """Newer hosts ask before they run any tool that they do not know."""
        if not self.is_old:
            await chat.step("approval_needed")
            await chat.write("s")


async def a_stranger_comes_in_with_a_code(real):
    async with real.chat() as chat:
        gate = await chat.event("gate")
        expect("invite_code" in gate["methods"], gate)
        await chat.write("no such code")
        error = await chat.event("error")
        expect(error["message"] == "Invalid invite code", error)
        await chat.write(CODE)
        await chat.event("onboarded")
        expect(await chat.ask("hello") == "hello to you", "the answer")
    # It is known from now on.
    async with real.chat() as chat:
        await chat.event("connected", status="new")
        expect(not chat.skipped, f"before that: {chat.skipped}")


async def a_code_is_given_in_advance(real):
    async with real.chat("--invite", CODE, "hello", home=next(real.homes)) as chat:
        expect(await chat.output() == "hello to you", "the answer")
        expect(await chat.end() == 0, "the exit code")


async def a_forged_signature_is_refused(real):
    async with Line.lead(real.port) as line:
        line.forges = True
        async with real.chat("hello", line=line, leave=None) as chat:
            expect(await chat.end() == 3, f"the exit code: {chat.told()}")
            expect(chat.find("unauthorized: invalid signature"), chat.told())


async def another_host_is_not_talked_to(real):
    address = "0x" + "ab" * 32
    url = f"http://127.0.0.1:{real.port}"
    args = (SWITCHBOARD, "agent", "chat", address, "--endpoint", url, "--home", real.home, "hello")
    async with spoken(Chat, *args) as chat:
        expect(await chat.end() == 3, f"the exit code: {chat.told()}")
        expect(chat.find("no agent at"), chat.told())


async def two_turns_are_one_conversation(real):
    async with real.chat() as chat:
        expect(await chat.ask("hello") == "hello to you", "the first answer")
        roles = await chat.ask("history")
        # 1.2.1 forgets the system's message in a new session.
        expect(roles.endswith("user,assistant,user"), roles)


async def a_tool_is_called(real):
    async with real.chat() as chat:
        await chat.write("add 2 3")
        call = await chat.step("tool_call", name="add", args={"a": 2, "b": 3})
        result = await chat.step("tool_result", tool_id=call["frame"]["tool_id"])
        expect(result["frame"]["result"] == "5", result)
        expect(await chat.output() == "sum: 5", "the answer")


async def a_question_is_answered(real):
    async with real.chat() as chat:
        await chat.write("ask")
        question = await chat.step("ask_user", question="Which colour?")
        expect(question["event"] == "question", question)
        await chat.write("2")
        expect(await chat.output() == "you said blue", "the answer")


async def a_question_outlives_the_line(real):
    async with real.chat_on_a_line() as (chat, line):
        await chat.write("ask")
        await chat.step("ask_user")
        line.cut()
        await chat.event("lost")
        await chat.event("back")
        await chat.write("red")
        expect(await chat.output() == "you said red", "the answer")


async def leave_is_given_and_refused(real):
    async with real.chat_on_a_line(leave=None) as (chat, line):
        await chat.write("run")
        asked = await chat.step("approval_needed", tool="bash")
        expect(asked["frame"]["arguments"] == {"command": "make tea"}, asked)
        await chat.write("y")
        expect(await chat.output() == "result: did make tea", "the answer")
        await chat.write("run")
        await chat.step("approval_needed", tool="bash")
        line.cut()
        await chat.event("back")
        await chat.write("n coffee is better")
        result = await chat.step("tool_result", name="bash")
        expect("did make tea" not in str(result["frame"].get("result")), result)
        answer = await chat.output()
        expect("coffee is better" in answer, answer)


async def a_plan_is_reviewed(real):
    async with real.chat() as chat:
        await chat.write("plan")
        await chat.step("plan_review", plan_content="1. tea")
        await chat.write("very good")
        expect(await chat.output() == "you say very good", "the answer")


async def something_is_said_meanwhile(real):
    async with real.chat() as chat:
        await chat.write(f"steps {STEPS} 0.3")
        await chat.step("tool_call")
        await chat.write("/say be quick")
        await chat.event("queued")
        await chat.step("user_input", runtime_input=True)
        answer = await chat.output()
        expect(answer.startswith(f"{STEPS} steps") and "be quick" in answer, answer)


async def an_interrupted_agent_stops(real):
    async with real.chat() as chat:
        await chat.write("steps 40 0.2")
        await chat.step("tool_result")
        await chat.write("/interrupt")
        await chat.output()
        expect(await chat.ask("hello") == "hello to you", "the next answer")


def results(chat):
    frames = (it.get("frame", {}) for it in [*chat.skipped, *chat.said])
    return [it["result"] for it in frames if it.get("type") == "tool_result"]


async def a_cut_line_comes_back_in_a_run(real):
    async with real.chat_on_a_line() as (chat, line):
        await chat.write(f"steps {STEPS} 0.4")
        await chat.step("tool_result", result="step 1 done")
        line.cut()
        await chat.event("lost")
        await chat.event("back")
        answer = await chat.output()
        expect(answer.startswith(f"{STEPS} steps"), answer)
        # Neither lost nor twice.
        expected = [f"step {n} done" for n in range(2, STEPS + 1)]
        expect(results(chat) == expected, f"{results(chat)}")
        expect(await chat.ask("hello") == "hello to you", "the next answer")


async def a_line_is_cut_again_and_again(real):
    async with real.chat_on_a_line() as (chat, line):
        await chat.write("steps 8 0.4")
        for n in (1, 3):
            await chat.step("tool_result", result=f"step {n} done")
            line.cut()
            await chat.event("back")
        expect((await chat.output()).startswith("8 steps"), "the answer")
        expect(results(chat) == [f"step {n} done" for n in range(4, 9)], f"{results(chat)}")


async def a_killed_client_takes_up_the_run(real):
    home = next(real.homes)
    async with real.chat("--invite", CODE, home=home, leave=None) as chat:
        await chat.write(f"steps {STEPS} 1")
        await real.allow_for_the_session(chat)
        await chat.step("tool_result", result="step 1 done")
        await chat.stopped()
    async with real.chat("--resume", home=home) as chat:
        await chat.event("connected", status="running")
        # It had kept nothing of this run, so it is told all of it.
        await chat.step("tool_result", result="step 1 done")
        answer = await chat.output()
        expect(answer.startswith(f"{STEPS} steps"), answer)
        expect((await chat.ask("history")).endswith("assistant,user"), "the next answer")


async def a_run_ends_while_the_client_is_away(real):
    home = next(real.homes)
    async with real.chat("--invite", CODE, home=home, leave=None) as chat:
        # 1.2.1 takes the turn with more steps for the newer one, unless the client sees to it.
        await chat.write("steps 5 0.01")
        await real.allow_for_the_session(chat)
        await chat.output()
        await chat.write("steps 2 0.5")
        await chat.step("tool_result", result="step 1 done")
        await chat.stopped()
    await asyncio.sleep(1.5)
    async with real.chat("--resume", home=home) as chat:
        await chat.event("connected", status="connected", newer=True)
        roles = await chat.ask("history")
        steps = ["user" + ",assistant,tool" * count + ",assistant" for count in (5, 2)]
        expect(roles.endswith(",".join([*steps, "user"])), roles)


async def a_file_and_an_image_arrive(real):
    folder = next(real.homes)
    folder.mkdir()
    (folder / "note.txt").write_text("buy tea ✓")
    (folder / "dot.png").write_bytes(PIXEL)
    files = ("--file", folder / "note.txt", "--image", folder / "dot.png")
    async with real.chat(*files, "seen by you") as chat:
        answer = await chat.output()
        expect("image_url" in answer, answer)
        expect("note.txt" in answer, answer)
    kept = list((real.folder / ".co" / "uploads").glob("*note.txt"))
    expect([file.read_text() for file in kept] == ["buy tea ✓"], f"{kept}")


async def a_long_answer_and_any_letters_arrive(real):
    async with real.chat() as chat:
        text = "Übergröße ✓ 𝄞 \x7f " * 20000
        expect(await chat.ask(text) == f"echo: {text.rstrip()}", "the answer")


async def a_failed_run_is_told(real):
    async with real.chat() as chat:
        await chat.write("fail")
        error = await chat.event("error")
        # 1.9.2 does not say why.
        why = "ordered to fail" if real.is_old else "Unable to run agent"
        expect(why in error["message"], error)
        if real.is_old:
            # Its session is lost then: it takes every later prompt, and forgets it.
            await chat.write("/new")
            await chat.event("new")
        expect(await chat.ask("hello") == "hello to you", "the next answer")


async def a_silent_line_stays_open(real):
    async with real.chat_on_a_line() as (chat, line):
        await chat.event("connected")
        # Hosts ask twice in that time whether it is still there, and so does their WebSocket.
        await asyncio.sleep(SILENCE)
        expect(await chat.ask("hello") == "hello to you", "the answer")
        expect(line.opened == 1, f"{line.opened} sockets")


CHECKS = [
    a_code_is_given_in_advance,
    a_forged_signature_is_refused,
    another_host_is_not_talked_to,
    two_turns_are_one_conversation,
    a_tool_is_called,
    a_question_is_answered,
    a_question_outlives_the_line,
    leave_is_given_and_refused,
    a_plan_is_reviewed,
    something_is_said_meanwhile,
    an_interrupted_agent_stops,
    a_cut_line_comes_back_in_a_run,
    a_line_is_cut_again_and_again,
    a_killed_client_takes_up_the_run,
    a_run_ends_while_the_client_is_away,
    a_file_and_an_image_arrive,
    a_long_answer_and_any_letters_arrive,
    a_failed_run_is_told,
]


async def a_run_that_a_killed_host_forgets_is_told(real, again):
    async with real.chat_on_a_line(leave=None) as (chat, line):
        await chat.write("steps 40 0.2")
        await real.allow_for_the_session(chat)
        await chat.step("tool_result", result="step 1 done")
        await real.stopped()
        await chat.event("lost")
        async with again as new:
            await new.started(real.version, real.folder)
            line.to = new.port
            await chat.event("connected")
            await chat.line_with("does not know of it any more")
            expect(await chat.ask("hello") == "hello to you", "the next answer")


async def check_version(checks, venv, folder):
    version = re.search(r"[\d.]+$", venv)[0]
    place = folder / version / "host"
    command = (Real, Path(venv) / "bin" / "python", STUB, "careful", place)
    async with spoken(*command) as real:
        started = asyncio.wait_for(real.started(version, place), START)
        await checks.run(f"{version}: a host is there", started, START)

        def run_check(check, *more):
            return checks.run(f"{version}: {title(check)}", check(real, *more), SILENCE + 60)

        await run_check(a_stranger_comes_in_with_a_code)
        silent = asyncio.create_task(run_check(a_silent_line_stays_open))
        for check in CHECKS:
            await run_check(check)
        await silent
        await run_check(a_run_that_a_killed_host_forgets_is_told, spoken(*command))


async def main(checks, folder):
    await asyncio.gather(*(check_version(checks, venv, folder) for venv in VENVS))


run(main)
