"""The real clients of ConnectOnion, two for Python and one for Node, against our host, which is killed in the end."""
# Needs: node, onion-old, onion.

import asyncio
import base64
import contextlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import call, expect, main, onions, same, until
from onions import NODE, Line, chat, our_host, real_users, version

CODE = "letmein"
# Nobody looks into images.
PIXEL = "data:image/png;base64,iVBORw0KGgo="
# Takes ten seconds, so that much can happen meanwhile.
SLOW = "!slow 40 250"
COUNTED = " ".join(str(number) for number in range(1, 41))
ENDLESS = "!slow 1000 500"
TWO, FIVE = "count to 2", "count to 5"
TO_TWO, TO_FIVE = "I count: 1 2 - done", "I count: 1 2 3 4 5 - done"
FILES = call("list_files")
ASK = call("ask_user", question="Which colour?", options=["red", "green"])
LETTERS = json.dumps({"message": "Grüße ✓ 𝄞 \x7f / \" \\"}, ensure_ascii=False)

class Client:
    """A real client, and our host with the line to it."""

    def __init__(self, name, users, host, line, files):
        self.name, self.users, self.host, self.line, self.files = name, users, host, line, files
        self.is_node, self.is_old = name == NODE, name.endswith("1.2.1")

    async def user(self, name, key="ann", host=None, line=None):
        """A user in a session of its own. Ann comes in, once she has given the code."""
        return await self.users.open(name, (host or self.host).agent, (line or self.line).url, key)

    def file(self, what):
        """The name of a file that no other client writes."""
        return f"{what}-{self.name.split()[-1].replace('.', '')}.txt"

async def is_at_work(user, prompt):
    """Waits until the agent thinks about a prompt."""

    async def works():
        ui = [item for item in (await user.tell("look"))["ui"] if item["id"] != "__optimistic__"]
        asked = [at for at, item in enumerate(ui) if item["type"] == "user" and item["content"] == prompt]
        return asked and "thinking" in [item["type"] for item in ui[asked[-1] :]]

    await until(works, f"the agent thinks about {prompt!r}")

async def said(user):
    """What the session holds, in words."""
    return [message.get("content") for message in (await user.session())["messages"]]

async def a_stranger_comes_in_with_a_code(client):
    ann = await client.user("stranger")
    # The one of Node says nothing then, and we pass over that.
    same(await ann.text(TWO, code=CODE), TO_TWO, "the answer")
    again = await client.user("friend")
    same(await again.text(TWO), TO_TWO, "the next answer")
    same(await again.items("onboard_required"), [], "what is asked of a friend")

async def is_refused(client, key, why, **more):
    user = await client.user(key, key=key)
    error = await user.error("input", prompt=TWO, **more)
    # The one of Node hangs up, and tells its user half a minute later that time is up.
    expect(("Authentication timed out" if client.is_node else why) in error, error)

async def a_wrong_code_is_refused(client):
    await is_refused(client, "guest", "Invalid invite code", code="no such code")

async def a_wrong_signature_is_refused(client):
    await is_refused(client, "wrong", "unauthorized: invalid signature")

async def an_unsigned_user_comes_in_at_an_open_host(client, host, line):
    user = await client.user("nobody", key=None, host=host, line=line)
    same(await user.text(TWO), TO_TWO, "the answer")

async def turns_and_tools_are_one_conversation(client):
    user = await client.user("turns")
    prompts = (f"!call echo {LETTERS}", FILES)
    await user.text(prompts[0])
    first = await user.session()
    answer = await user.text(prompts[1])
    expect(answer.startswith('{"found":'), answer)
    second = await user.session()
    same((second["session_id"], second["turn"]), (first["session_id"], 2), "the session and its turn")
    same(tuple(text for text in await said(user) if text in prompts), prompts, "the prompts")
    *_, call = await user.items("tool_call")
    same((call["name"], call["args"]), ("list_files", {}), "the call")
    # 1.2.1 does not find the call that a result belongs to.
    same((call["status"], call.get("result")), ("running", None) if client.is_old else ("done", answer), "its result")

async def a_file_and_an_image_arrive(client):
    user = await client.user("attached")
    data = "data:text/plain;base64," + base64.b64encode("buy tea ✓".encode()).decode()
    answer = await user.text("!call list_files", files=[{"name": client.file("note"), "data": data}])
    expect(client.file("note") in answer, answer)
    answer = await user.text("Look at this", images=[PIXEL])
    expect(answer.startswith("I see ") and "png" in answer, answer)

async def something_is_said_meanwhile(client):
    user = await client.user("meanwhile")
    first = asyncio.create_task(user.text(SLOW))
    await is_at_work(user, SLOW)
    same((await user.text(FIVE), await first), (TO_FIVE, TO_FIVE), "the answers")
    expect({COUNTED, FIVE} <= set(await said(user)), await said(user))

async def a_failed_run_is_told(client):
    user = await client.user("failed")
    error = await user.error("input", prompt="!fail no tea left")
    expect("no tea left" in error, error)
    same(await user.text(FIVE), TO_FIVE, "the next answer")

async def an_interrupted_run_ends(client):
    user = await client.user("interrupted")
    answer = asyncio.create_task(user.text(ENDLESS))
    await is_at_work(user, ENDLESS)
    await user.tell("stop")
    same(await answer, "What would you like me to do?", "the answer")
    same(await user.text(FIVE), TO_FIVE, "the next answer")

async def a_question_is_asked_again(client):
    """1.2.1 reads `text`, which hosts of the package do not send, and has no answer to a question."""
    user = await client.user("asked")
    for prompt in (ASK, "red"):
        answer = await user.input(prompt)
        same((answer["done"], answer["text"]), (False, "Which colour?"), "the answer")
    options = [item["options"] for item in await user.items("ask_user")]
    same(options, [["red", "green"]] * 2, "the options")

async def a_question_is_answered(client):
    user = await client.user("asked")
    same(await user.text(ASK, answer="green"), "green", "the answer")
    [asked] = await user.items("ask_user")
    same((asked["text"], asked["options"]), ("Which colour?", ["red", "green"]), "the question")

async def leave_is_given_and_refused(client):
    user = await client.user("leave")
    tea, coffee = client.file("tea"), client.file("coffee")
    write = call("write_file", path=tea, text="tea")
    same(await user.text(write, approve=True), f"wrote 3 bytes to {tea}", "the answer")
    answer = await user.text(call("write_file", path=coffee, text="coffee"), approve=False)
    expect(answer.startswith("I have not done it"), answer)
    same([(client.files / name).exists() for name in (tea, coffee)], [True, False], "the files")
    same([item["tool"] for item in await user.items("approval_needed")], ["write_file"] * 2, "what was asked")

async def what_is_asked_is_answered_later(client):
    user = await client.user("later")
    answer = await user.input(ASK)
    same((answer["done"], answer["text"]), (False, "Which colour?"), "the question")
    # Over another socket.
    same(await user.text("red"), "red", "the answer")
    milk = client.file("milk")
    error = await user.error("input", prompt=call("write_file", path=milk, text="milk"))
    expect(error.startswith("ApprovalPendingError") and not (client.files / milk).exists(), error)
    same((await user.tell("approve", approve=True)).get("text"), f"wrote 4 bytes to {milk}", "the answer")

async def a_mode_is_not_offered(client):
    """1.9.2 believes a host that tells its modes, and knows only those of its own: we tell none."""
    user = await client.user("moded")
    error = await user.error("mode", mode="auto")
    expect("does not support acknowledged OIP modes" in error, error)
    same(await user.text(FIVE), TO_FIVE, "the next answer")

async def a_mode_is_set(client):
    user = await client.user("moded")
    same(await user.text(TWO), TO_TWO, "the first answer")
    await user.tell("mode", mode="accept_edits")
    cake = client.file("cake")
    same(await user.text(call("write_file", path=cake, text="cake")), f"wrote 4 bytes to {cake}", "the answer")
    same((await user.session())["mode"], "accept_edits", "the mode")

@contextlib.asynccontextmanager
async def cut_at_work(client):
    """A user whose line was cut during a run, what comes of that prompt, and the line, which is there again."""
    async with Line(client.host.port) as line:
        user = await client.user("cut", line=line)
        first = asyncio.create_task(user.tell("input", prompt=SLOW))
        await is_at_work(user, SLOW)
        line.drop()
        yield user, first, line

async def the_next_prompt_finds_the_run(client):
    """1.2.1 does not come back by itself, and takes the next prompt's run for its own."""
    async with cut_at_work(client) as (user, first, _):
        expect("ConnectionClosed" in (await first)["error"], await first)
        same(await user.text(FIVE), TO_FIVE, "the answer")
        texts = await said(user)
        same((texts.count(SLOW), texts.count(COUNTED)), (1, 1), texts)

async def a_cut_line_comes_back_by_itself(client):
    async with cut_at_work(client) as (user, first, line):
        same((await first).get("text"), COUNTED, "the answer")
        same((line.sockets, (await said(user)).count(SLOW)), (2, 1), "sockets and prompts")

async def a_cut_line_is_made_anew(client):
    async with cut_at_work(client) as (user, first, _):
        expect("Connection closed before response" in (await first)["error"], await first)
        same((await user.tell("reconnect")).get("text"), COUNTED, "the answer")
        # It is told all of the run again, and shows it once.
        same(len(await user.items("agent")), 1, "the answers that are shown")
        same((await user.tell("status"))["found"], "connected", "the status")

async def a_question_outlives_the_line(client):
    async with Line(client.host.port) as line:
        user = await client.user("outlived", line=line)
        first = asyncio.create_task(user.error("input", prompt=ASK))
        await until(lambda: user.items("ask_user"), "the question is there")
        line.drop()
        await first
        # It is asked again.
        same((await user.tell("reconnect", answer="green")).get("text"), "green", "the answer")

async def a_silent_line_stays_open(client):
    """Node's client hangs up when it has not been asked for a minute whether it is still there."""
    user = await client.user("silent")
    same(await user.text(TWO), TO_TWO, "the first answer")
    before = await user.tell("look")

    async def was_asked():
        now = await user.tell("look")
        expect(now["connected"], "it has hung up")
        return now["asked"] > before["asked"]

    await until(was_asked, "the host has asked")
    same(await user.text(FIVE), TO_FIVE, "the next answer")

async def a_killed_host_has_lost_nothing(clients, folder, start):
    """All clients, ours as well, are in the middle of a run."""
    host, line = clients[0].host, clients[0].line
    users = [await client.user("killed") for client in clients]
    same([await user.text(TWO) for user in users], [TO_TWO] * len(users), "the first answers")
    broken = [asyncio.create_task(user.error("input", prompt=ENDLESS)) for user in users]
    async with chat(host.agent, "--endpoint", line.url, "--home", folder, "--invite", CODE) as ours:
        same(await ours.ask(TWO), TO_TWO, "the first answer of our client")
        await ours.write(ENDLESS)
        # It has begun to count: what is said now does not take the place of that.
        await ours.step("assistant_delta", content="1 ")
        for text in ("count to 3", "count to 4"):
            await ours.write(f"/say {text}")
            await ours.event("queued")
        begun = f"prompt={ENDLESS}"
        await until(lambda: sum(begun in line for line in host.lines) > len(users), "all runs have begun")
        for client, user in zip(clients, users):
            # Those for Python do not show it if it is among the last three items.
            if client.is_node:
                await is_at_work(user, ENDLESS)
        await host.kill()
        async with start() as again:
            line.target = again.port
            await asyncio.gather(*broken)
            for client, user in zip(clients, users):
                if client.is_node:
                    # It has had half of the run, and does not say what is missing.
                    await user.tell("reconnect")
                same(await user.text(FIVE), TO_FIVE, f"{client.name}: the next answer")
                expected = [TWO, TO_TWO, ENDLESS, FIVE, TO_FIVE]
                same([text for text in await said(user) if text in expected], expected, f"{client.name}: what was said")
            await ours.event("back", status="new", newer=True)
            await ours.line("its answer is lost")
            same(await ours.ask(FIVE), TO_FIVE, "the next answer of our client")
            await ours.write("/quit")
            # What has failed is told at the end.
            same(await ours.end(), 1, "the exit code of our client")
    [kept] = (folder / "sessions").glob("*.json")
    messages = json.loads(kept.read_text())["session"]["messages"]
    prompts = [message["content"] for message in messages if message["role"] == "user"]
    expected = [TWO, ENDLESS, "count to 3", "count to 4", FIVE]
    same(prompts, expected, "what was said to our client")

COMMON = (
    a_wrong_code_is_refused, a_wrong_signature_is_refused,
    turns_and_tools_are_one_conversation, a_file_and_an_image_arrive, something_is_said_meanwhile, a_failed_run_is_told,
)
OLD = (a_question_is_asked_again, the_next_prompt_finds_the_run)
NEW = (
    an_interrupted_run_ends, a_question_is_answered, leave_is_given_and_refused, what_is_asked_is_answered_later,
    a_mode_is_not_offered, a_cut_line_comes_back_by_itself,
)
NODES = (
    an_interrupted_run_ends, a_question_is_answered, leave_is_given_and_refused, a_mode_is_set,
    a_cut_line_is_made_anew, a_question_outlives_the_line, a_silent_line_stays_open,
)

async def body(checks):
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))

        def start():
            return our_host(folder / "home", "--trust", "careful", "--invite", CODE)

        host = await stack.enter_async_context(start())
        line = await stack.enter_async_context(Line(host.port))
        open_host = await stack.enter_async_context(our_host(folder / "open"))
        open_line = await stack.enter_async_context(Line(open_host.port))
        clients = []
        for onion, own in ((None, NODES), (onions()[0], OLD), (onions()[1], NEW)):
            name = f"Python {version(onion)}" if onion else NODE
            users = await stack.enter_async_context(real_users(onion, folder / name))
            client = Client(name, users, host, line, folder / "home" / "files")
            clients.append(client)
            await checks.run(a_stranger_comes_in_with_a_code, client)
            for check in COMMON + own:
                checks.beside(check, client)
            if onion:
                checks.beside(an_unsigned_user_comes_in_at_an_open_host, client, open_host, open_line)
        await checks.finished()
        await checks.run(a_killed_host_has_lost_nothing, clients, folder / "ours", start)

main(body)
