"""What our client does at a real host, whatever the version of that."""

import contextlib
import itertools

from harness import expect, same, until
from onions import Line, chat, real_host, version

CODE = "OpenOnion"
LONG = "Übergröße ✓ 𝄞 \x7f " * 20000
# Nobody looks into images.
PIXEL = b"\x89PNG\r\n\x1a\n"

class Site:
    """A real host, a line to it, and people with homes."""

    def __init__(self, host, line, name, folder):
        self.host, self.line, self.name, self.folder = host, line, name, folder / "host"
        self.homes = (folder / f"home-{number}" for number in itertools.count())
        # Whom the host knows after the first check.
        self.friend = self.home()

    @property
    def is_old(self):
        return self.name == "1.2.1"

    def home(self):
        return next(self.homes)

    def chat(self, *args, home=None, leave=("--yes",), line=None):
        where = ("--endpoint", (line or self.line).url, "--home", home or self.friend)
        return chat(self.host.agent, *where, *leave, *args)

    async def steps(self, count):
        """Lets the agent take steps."""
        for _ in range(count):
            await self.host.write("go")

    async def allow_for_the_session(self, chat):
        """Newer hosts ask before they run any tool that they do not know."""
        if not self.is_old:
            await chat.step("approval_needed")
            await chat.write("s")

@contextlib.asynccontextmanager
async def site(onion, folder):
    name = version(onion)
    async with real_host(onion, "careful", folder / "host") as host, Line(host.port) as line:
        yield Site(host, line, name, folder)

async def a_stranger_comes_in_with_a_code(site):
    async with site.chat() as chat:
        gate = await chat.event("gate")
        expect("invite_code" in gate["methods"], gate)
        await chat.write("no such code")
        same((await chat.event("error"))["message"], "Invalid invite code", "the refusal")
        await chat.write(CODE)
        await chat.event("onboarded")
        same(await chat.ask("hello"), "hello to you", "the answer")
    async with site.chat("hello") as chat:
        same(await chat.output(), "hello to you", "the answer to who is known by now")
        expect(not chat.find('"gate"'), chat.tail())
        same(await chat.end(), 0, "the exit code")
    async with site.chat("--invite", CODE, "hello", home=site.home()) as chat:
        same(await chat.output(), "hello to you", "the answer to who had a code ready")
        same(await chat.end(), 0, "the exit code")

async def turns_and_tools_are_one_conversation(site):
    async with site.chat() as chat:
        expect(await chat.ask(LONG) == f"echo: {LONG.rstrip()}", "another answer")
        await chat.write("add 2 3")
        call = await chat.step("tool_call", name="add", args={"a": 2, "b": 3})
        result = await chat.step("tool_result", tool_id=call["frame"]["tool_id"])
        same(result["frame"]["result"], "5", "the result")
        same(await chat.output(), "sum: 5", "the second answer")
        # 1.2.1 forgets the system's message in a new session.
        roles = await chat.ask("history")
        expect(roles.endswith("user,assistant,user,assistant,tool,assistant,user"), roles)

async def questions_are_answered_and_outlive_the_line(site):
    async with site.chat() as chat:
        await chat.write("ask")
        question = await chat.step("ask_user", question="Which colour?")
        same(question["event"], "question", "the event")
        await chat.write("2")
        same(await chat.output(), "you said blue", "the answer")
        await chat.write("plan")
        await chat.step("plan_review", plan_content="1. tea")
        await chat.write("very good")
        same(await chat.output(), "you say very good", "the answer to a plan")
        await chat.write("ask")
        await chat.step("ask_user")
        site.line.drop()
        await chat.event("lost")
        await chat.event("back")
        await chat.write("red")
        same(await chat.output(), "you said red", "the answer over another line")

async def leave_is_given_and_refused(site):
    async with site.chat(leave=()) as chat:
        await chat.write("run")
        asked = await chat.step("approval_needed", tool="bash")
        same(asked["frame"]["arguments"], {"command": "make tea"}, "the arguments")
        await chat.write("y")
        same(await chat.output(), "result: did make tea", "the answer")
        await chat.write("run")
        await chat.step("approval_needed", tool="bash")
        site.line.drop()
        await chat.event("back")
        await chat.write("n coffee is better")
        answer = await chat.output()
        expect("coffee is better" in answer, answer)
        expect("did make tea" not in str(chat.results()[1:]), chat.results())

async def something_is_said_meanwhile(site):
    async with site.chat() as chat:
        await chat.write("steps 2")
        await chat.step("tool_call")
        await chat.write("/say be quick")
        await chat.event("queued")
        await site.steps(1)
        await chat.step("user_input", runtime_input=True)
        await site.steps(1)
        answer = await chat.output()
        expect(answer.startswith("2 steps") and "be quick" in answer, answer)

async def an_interrupted_agent_stops(site):
    async with site.chat() as chat:
        await chat.write("steps 1000 0.1")
        await chat.step("tool_result")
        await chat.write("/interrupt")
        await chat.output()
        expect(len(chat.results()) < 1000, "it has taken all of its steps")
        same(await chat.ask("hello"), "hello to you", "the next answer")

async def a_line_that_is_cut_again_and_again_loses_no_step(site):
    async with site.chat() as chat:
        await chat.write("steps 5")
        for number in range(1, 6):
            if number % 2 == 0:
                site.line.cut()
                await chat.event("lost")
            await site.steps(1)
            if number % 2 == 0:
                site.line.mend()
                await chat.event("back")
            await chat.step("tool_result", result=f"step {number} done")
        answer = await chat.output()
        expect(answer.startswith("5 steps"), answer)
        same(chat.results(), [f"step {number} done" for number in range(1, 6)], "the steps")
        same(await chat.ask("hello"), "hello to you", "the next answer")

async def a_killed_client_takes_up_its_run(site):
    home = site.home()
    async with site.chat("--invite", CODE, home=home, leave=()) as chat:
        await chat.write("steps 3")
        await site.allow_for_the_session(chat)
        await site.steps(1)
        await chat.step("tool_result", result="step 1 done")
        await chat.kill()
    async with site.chat("--resume", home=home) as chat:
        await chat.event("connected", status="running")
        # It had kept nothing of this run, so it is told all of it.
        await chat.step("tool_result", result="step 1 done")
        await site.steps(2)
        answer = await chat.output()
        expect(answer.startswith("3 steps"), answer)
        roles = await chat.ask("history")
        expect(roles.endswith("assistant,user"), roles)

async def a_run_that_ends_meanwhile_is_in_the_conversation(site):
    home = site.home()
    async with site.chat("--invite", CODE, home=home, leave=()) as chat:
        session = (await chat.event("connected"))["sessionId"]
        # 1.2.1 takes the turn with more steps for the newer one, unless the client sees to it.
        await chat.write("steps 5 0.01")
        await site.allow_for_the_session(chat)
        await chat.output()
        await chat.write("steps 2")
        await site.steps(1)
        await until(lambda: len(chat.results()) == 6, "the first step of the second run")
        await chat.kill()
    await site.steps(1)
    await until(lambda: "2 steps" in stored(site, session), "the run has ended")
    async with site.chat("--resume", home=home) as chat:
        await chat.event("connected", status="connected", newer=True)
        roles = await chat.ask("history")
        expected = ["user" + ",assistant,tool" * count + ",assistant" for count in (5, 2)]
        expect(roles.endswith(",".join([*expected, "user"])), roles)

def stored(site, session):
    """What a host has stored of a session last, as text."""
    lines = (site.folder / ".co" / "session_results.jsonl").read_text().splitlines()
    found = [line for line in lines if session in line]
    return found[-1] if found else ""

async def a_file_and_an_image_arrive(site):
    folder = site.home()
    folder.mkdir()
    (folder / "note.txt").write_text("buy tea ✓")
    (folder / "dot.png").write_bytes(PIXEL)
    async with site.chat("--file", folder / "note.txt", "--image", folder / "dot.png", "seen by you") as chat:
        answer = await chat.output()
        expect("image_url" in answer and "note.txt" in answer, answer)
    kept = (site.folder / ".co" / "uploads").glob("*note.txt")
    same([file.read_text() for file in kept], ["buy tea ✓"], "the uploads")

async def a_failed_run_is_told(site):
    async with site.chat() as chat:
        await chat.write("fail")
        error = await chat.event("error")
        # 1.9.2 does not say why.
        expect(("ordered to fail" if site.is_old else "Unable to run agent") in error["message"], error)
        if site.is_old:
            # Its session is lost then: it takes every later prompt, and forgets it.
            await chat.write("/new")
            await chat.event("new")
        same(await chat.ask("hello"), "hello to you", "the next answer")

async def a_run_that_a_killed_host_forgets_is_told(site):
    async with site.chat("--invite", CODE) as chat:
        await chat.write("steps 2")
        await site.steps(1)
        await chat.step("tool_result", result="step 1 done")
        await site.host.kill()
        await chat.event("lost")
        await site.host.start()
        await site.host.ready()
        site.line.target = site.host.port
        await chat.event("back")
        await chat.line("its answer is lost")
        same(await chat.ask("hello"), "hello to you", "the next answer")

async def a_silent_line_stays_open(site):
    """The host asks less often than our client loses its patience."""
    async with Line(site.host.port) as line, site.chat("-vv", line=line) as chat:
        await chat.event("connected")
        await chat.line("(15 bytes)")  # its PONG
        same(await chat.ask("hello"), "hello to you", "the answer")
        same(line.sockets, 1, "sockets")

# The first lets everybody else in.
CHECKS = (
    a_stranger_comes_in_with_a_code, turns_and_tools_are_one_conversation, questions_are_answered_and_outlive_the_line,
    leave_is_given_and_refused, something_is_said_meanwhile, an_interrupted_agent_stops,
    a_line_that_is_cut_again_and_again_loses_no_step, a_killed_client_takes_up_its_run,
    a_run_that_ends_meanwhile_is_in_the_conversation, a_file_and_an_image_arrive, a_failed_run_is_told,
)
