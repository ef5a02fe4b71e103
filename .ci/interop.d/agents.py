"""ConnectOnion's own clients against our host, and our client when that is killed.

    agents.py SWITCHBOARD NODE VENV..

NODE is the folder with the package for Node. Each VENV is named after the version of that for Python
in it, at the end.
"""

import asyncio
import base64
import contextlib
import json
import os
import re
import sys
from pathlib import Path

from aiohttp import web
from common import expect, title
from peers import START, Caller, Chat, Line, our_host, run, spoken

SWITCHBOARD, NODE, *VENVS = sys.argv[1:]
CALLER = Path(__file__).parent / "agents" / "caller.py"
CODE = "letmein"
#: Images are not looked into.
PIXEL = "data:image/png;base64,iVBORw0KGgo="
#: In seconds.
SILENCE = int(os.environ.get("INTEROP_SILENCE", 72))
#: What takes three seconds.
SLOW = "!slow 40 100"
COUNTED = " ".join(str(n) for n in range(1, 41))


class Peer:
    """A client, and a host of ours for it alone."""

    def __init__(self, name, caller, folder, relay):
        self.name, self.caller, self.folder, self.relay = name, caller, folder, relay

    @contextlib.asynccontextmanager
    async def host(self, *args):
        store = self.folder / "sessions.jsonl"
        args = ("--verbose", "--trust", "careful", "--invite", CODE, "--store", store, *args)
        async with our_host(SWITCHBOARD, self.folder / "home", *args) as host:
            self.line.to = host.port
            self.address = host.address
            self.relay.places[host.address] = self.line.url
            yield host

    async def user(self, name, key="ann", address=None):
        """A user in a session of its own. `ann` comes in, once she has given the code."""
        where = {"address": address or self.address, "relay": self.relay.url, "key": key}
        answer = await self.caller.tell("open", name, **where)
        expect("error" not in answer, answer)
        return User(self.caller, name)

    @contextlib.asynccontextmanager
    async def open_host(self, name, key):
        """A user at another host, which lets everybody in, over a line that is never cut."""
        async with our_host(SWITCHBOARD, self.folder / name) as host:
            self.relay.places[host.address] = host.url
            yield await self.user(name, key, host.address)

    @property
    def is_old(self):
        return self.name == "Python 1.2.1"

    @property
    def is_node(self):
        return self.name.startswith("Node")


class User:
    def __init__(self, caller, name):
        self.caller, self.name = caller, name

    async def text(self, prompt, **more):
        return await self.caller.text(self.name, prompt, **more)

    async def input(self, prompt, **more):
        return await self.caller.input(self.name, prompt, **more)

    async def error(self, do, **more):
        return await self.caller.error(do, self.name, **more)

    async def tell(self, do, **more):
        return await self.caller.tell(do, self.name, **more)

    async def items(self, kind):
        ui = (await self.tell("look"))["ui"]
        return [item for item in ui if item["type"] == kind]

    async def is_answered(self):
        """Waits until the agent is at work."""
        while not any(item["id"] != "__optimistic__" for item in await self.items("thinking")):
            await asyncio.sleep(0.05)

    async def said(self):
        """What the session holds, in words."""
        session = (await self.tell("look"))["session"]
        return [message.get("content") for message in session["messages"]]


class Relay:
    """Knows where hosts are. Prompts go to them without it."""

    def __init__(self):
        self.places = {}

    @classmethod
    @contextlib.asynccontextmanager
    async def listening(cls):
        relay = cls()
        app = web.Application()
        for path in ("/api/agents/{address}", "/api/relay/agents/{address}"):
            app.router.add_get(path, relay.tell)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        # Node's would ask `https` if this were `ws`.
        relay.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
        try:
            yield relay
        finally:
            await runner.cleanup()

    async def tell(self, request):
        place = self.places.get(request.match_info["address"])
        if place is None:
            raise web.HTTPNotFound
        return web.json_response({"online": True, "endpoints": [place]})


async def a_stranger_comes_in_with_a_code(peer):
    ann = await peer.user("stranger")
    # The one of Node says nothing then, and we pass over that.
    expect(await ann.text("What is 6 * 7?", code=CODE) == "42", "the answer")
    again = await peer.user("friend")
    expect(await again.text("What is 6 * 7?") == "42", "the next answer")
    expect(not await again.items("onboard_required"), "asked again")


async def a_wrong_code_is_refused(peer):
    user = await peer.user("guest", key="guest")
    error = await user.error("input", prompt="What is 6 * 7?", code="no such code")
    # The one of Node hangs up, and tells its user half a minute later that time is up.
    why = "Authentication timed out" if peer.is_node else "Invalid invite code"
    expect(why in error, error)


async def a_wrong_signature_is_refused(peer):
    user = await peer.user("wrong", key="wrong")
    error = await user.error("input", prompt="What is 6 * 7?")
    why = "Authentication timed out" if peer.is_node else "unauthorized: invalid signature"
    expect(why in error, error)


async def two_turns_are_one_conversation(peer):
    user = await peer.user("turns")
    expect(await user.text("What is 6 * 7?") == "42", "the first answer")
    first = (await user.tell("look"))["session"]["session_id"]
    expect(await user.text("What is 2 + 3?") == "5", "the second answer")
    session = (await user.tell("look"))["session"]
    expect(session["session_id"] == first and session["turn"] == 2, session)
    said = await user.said()
    expect([it for it in said if it in ("What is 6 * 7?", "What is 2 + 3?")] == [
        "What is 6 * 7?", "What is 2 + 3?",
    ], said)


async def a_tool_is_called(peer):
    user = await peer.user("tool")
    expect(await user.text("Calculate 6 * 7") == "42", "the answer")
    [call] = await user.items("tool_call")
    expect(call["name"] == "calculate" and call["args"] == {"expression": "6 * 7"}, call)
    # 1.2.1 does not find the call that a result belongs to.
    expected = ("running", None) if peer.is_old else ("done", "42")
    expect((call["status"], call.get("result")) == expected, call)


async def a_file_and_an_image_arrive(peer):
    user = await peer.user("attached")
    data = "data:text/plain;base64," + base64.b64encode("buy tea ✓".encode()).decode()
    answer = await user.text("Read the file", files=[{"name": "note.txt", "data": data}])
    expect(answer == "buy tea ✓", answer)
    answer = await user.text("Look at this", images=[PIXEL])
    expect(answer.startswith("I see ") and "png" in answer, answer)


async def something_is_said_meanwhile(peer):
    user = await peer.user("meanwhile")
    first = asyncio.create_task(user.text(SLOW))
    await user.is_answered()
    second = asyncio.create_task(user.text("What is 2 + 3?"))
    expect((await first, await second) == ("5", "5"), "the answers")
    said = await user.said()
    expect(COUNTED in said and "What is 2 + 3?" in said, said)


async def any_letters_arrive(peer):
    user = await peer.user("letters")
    text = "Grüße ✓ 𝄞 \x7f / \" \\"
    prompt = f"!tool echo {json.dumps({'message': text}, ensure_ascii=False)}"
    await user.text(prompt)
    expect(prompt in await user.said(), await user.said())


async def a_failed_run_is_told(peer):
    user = await peer.user("failed")
    error = await user.error("input", prompt="!fail no tea left")
    expect("no tea left" in error, error)
    expect(await user.text("What is 2 + 3?") == "5", "the next answer")


async def a_question_is_asked_again(peer):
    # 1.2.1 reads `text`, which hosts of the package do not send, takes the next prompt for another
    # one, and has no answer to a question: it is asked again.
    user = await peer.user("asked")
    answer = await user.input("Ask me which colour (red, green)")
    expect(answer == answer | {"done": False, "text": "Which colour?"}, answer)
    [asked] = await user.items("ask_user")
    expect(asked["options"] == ["red", "green"], asked)
    answer = await user.input("red")
    expect(answer == answer | {"done": False, "text": "Which colour?"}, answer)


async def nobody_gives_leave(peer):
    # 1.2.1 passes over what it is asked for, and waits.
    user = await peer.user("leave")
    error = await user.error("input", prompt="Write tea to tea.txt", timeout=1)
    expect(error.startswith("TimeoutError"), error)
    expect(not (peer.folder / "home" / "files" / "tea.txt").exists(), "the file")


async def the_next_prompt_finds_the_run(peer):
    # 1.2.1 does not come back by itself, and takes the next prompt's run for its own.
    user = await peer.user("cut")
    first = asyncio.create_task(user.error("input", prompt=SLOW))
    await user.is_answered()
    peer.line.cut()
    expect("ConnectionClosed" in await first, await first)
    expect(await user.text("What is 2 + 3?") == "5", "the answer")
    said = await user.said()
    expect(said.count(SLOW) == 1 and COUNTED in said, said)


async def a_question_is_answered(peer):
    user = await peer.user("asked")
    answer = await user.text("Ask me which colour (red, green)", answer="green")
    expect(answer == "green", answer)
    [asked] = await user.items("ask_user")
    expect((asked["text"], asked["options"]) == ("Which colour?", ["red", "green"]), asked)


async def leave_is_given_and_refused(peer):
    user = await peer.user("leave")
    answer = await user.text("Write tea to tea.txt", approve=True)
    expect(answer == "wrote 3 bytes to tea.txt", answer)
    answer = await user.text("Write coffee to coffee.txt", approve=False)
    expect(answer.startswith("I have not done it"), answer)
    files = peer.folder / "home" / "files"
    expect((files / "tea.txt").exists() and not (files / "coffee.txt").exists(), "the files")
    expect([it["tool"] for it in await user.items("approval_needed")] == ["write_file"] * 2, "asked")


async def a_question_is_answered_later(peer):
    user = await peer.user("later")
    answer = await user.input("Ask me which colour (red, green)")
    expect(answer == answer | {"done": False, "text": "Which colour?"}, answer)
    # Over another socket.
    expect(await user.text("red") == "red", "the answer")
    error = await user.error("input", prompt="Write milk to milk.txt")
    expect(error.startswith("ApprovalPendingError"), error)
    answer = await user.tell("approve", approve=True)
    expect(answer.get("text") == "wrote 4 bytes to milk.txt", answer)


async def a_cut_line_comes_back_by_itself(peer):
    user, opened = await peer.user("cut"), peer.line.opened
    answer = asyncio.create_task(user.text(SLOW))
    await user.is_answered()
    peer.line.cut()
    expect(await answer == COUNTED, "the answer")
    expect(peer.line.opened == opened + 2, f"{peer.line.opened - opened} sockets")
    expect((await user.said()).count(SLOW) == 1, await user.said())


async def a_cut_line_is_made_anew(peer):
    user = await peer.user("cut")
    first = asyncio.create_task(user.error("input", prompt=SLOW))
    await user.is_answered()
    peer.line.cut()
    expect("Connection closed before response" in await first, await first)
    answer = await user.tell("reconnect")
    expect(answer.get("text") == COUNTED, answer)
    # It is told all of the run again, and shows it once.
    expect(len(await user.items("agent")) == 1, await user.items("agent"))
    expect((await user.tell("status"))["found"] == "connected", "the status")


async def a_question_outlives_the_line(peer):
    user = await peer.user("outlived")
    first = asyncio.create_task(user.error("input", prompt="Ask me which colour (red, green)"))
    while not await user.items("ask_user"):
        await asyncio.sleep(0.05)
    peer.line.cut()
    await first
    # It is asked again.
    answer = await user.tell("reconnect", answer="green")
    expect(answer.get("text") == "green", answer)


async def a_mode_is_not_offered(peer):
    # It believes a host that tells its modes, and knows only those of its own: we tell none.
    user = await peer.user("moded")
    error = await user.error("mode", mode="auto")
    expect("does not support acknowledged OIP modes" in error, error)
    expect(await user.text("What is 2 + 3?") == "5", "the next answer")


async def a_mode_is_set(peer):
    user = await peer.user("moded")
    expect(await user.text("What is 6 * 7?") == "42", "the first answer")
    await user.tell("mode", mode="accept_edits")
    answer = await user.text("Write cake to cake.txt")
    expect(answer == "wrote 4 bytes to cake.txt", answer)
    expect((await user.tell("look"))["session"]["mode"] == "accept_edits", "the mode")


async def an_interrupted_run_ends(peer):
    user = await peer.user("interrupted")
    answer = asyncio.create_task(user.text("!slow 1000 50"))
    await user.is_answered()
    stopped = await user.tell("stop")
    expect(stopped.get("stopped") is True, stopped)
    expect(await answer == "What would you like me to do?", "the answer")
    expect(await user.text("What is 2 + 3?") == "5", "the next answer")


async def a_silent_line_stays_open(peer):
    async with peer.open_host("silent", "ann") as user:
        expect(await user.text("What is 6 * 7?") == "42", "the first answer")
        # It hangs up when it has not been asked for a minute whether it is still there.
        await asyncio.sleep(SILENCE)
        expect((await user.tell("look"))["connected"], "hung up")
        expect(await user.text("What is 2 + 3?") == "5", "the next answer")


async def a_killed_host_has_lost_nothing(peer, host):
    user = await peer.user("killed")
    expect(await user.text("What is 6 * 7?") == "42", "the first answer")
    broken = asyncio.create_task(user.error("input", prompt="!slow 1000 50"))
    await host.line_with("prompt=!slow 1000")
    await asyncio.sleep(0.3)
    await host.stopped()
    async with peer.host():
        expect(await broken, "no error")
        if peer.is_node:
            # It has had half of the run, and does not say what is missing.
            await user.tell("reconnect")
        expect(await user.text("What is 2 + 3?") == "5", "the next answer")
        said = await user.said()
        # A tool says the sum before the model does.
        expected = ["What is 6 * 7?", "42", "42", "!slow 1000 50", "What is 2 + 3?", "5", "5"]
        expect([it for it in said if it in expected] == expected, said)


async def an_unsigned_user_comes_in_at_an_open_host(peer):
    async with peer.open_host("nobody", None) as user:
        expect(await user.text("What is 6 * 7?") == "42", "the answer")


COMMON = [
    two_turns_are_one_conversation,
    a_tool_is_called,
    a_file_and_an_image_arrive,
    something_is_said_meanwhile,
    any_letters_arrive,
    a_failed_run_is_told,
]
OWN = {
    "Python 1.2.1": [
        a_question_is_asked_again,
        nobody_gives_leave,
        the_next_prompt_finds_the_run,
        an_unsigned_user_comes_in_at_an_open_host,
    ],
    "Python 1.9.2": [
        a_question_is_answered,
        a_question_is_answered_later,
        leave_is_given_and_refused,
        a_mode_is_not_offered,
        a_cut_line_comes_back_by_itself,
        an_interrupted_run_ends,
        an_unsigned_user_comes_in_at_an_open_host,
    ],
    "Node 0.1.4": [
        a_question_is_answered,
        leave_is_given_and_refused,
        a_mode_is_set,
        a_cut_line_is_made_anew,
        a_question_outlives_the_line,
        an_interrupted_run_ends,
    ],
}


async def check_peer(checks, name, command, folder, relay):
    async with spoken(Caller, *command, cwd=folder) as caller, Line.lead(0) as line:
        peer = Peer(name, caller, folder, relay)
        peer.line = line
        async with peer.host() as host:
            ready = caller.hear(lambda it: it.get("ready"), "sign that it is there")
            await checks.run(f"{name}: a client is there", ready, START)

            def check(one, *more):
                return checks.run(f"{name}: {title(one)}", one(peer, *more), SILENCE + 30)

            await check(a_stranger_comes_in_with_a_code)
            # Those who wait for long do it beside the others.
            beside = [a_wrong_code_is_refused, a_wrong_signature_is_refused]
            if peer.is_node:
                beside.append(a_silent_line_stays_open)
            beside = asyncio.gather(*map(check, beside))
            for one in [*COMMON, *OWN[name]]:
                await check(one)
            await beside
            await check(a_killed_host_has_lost_nothing, host)


async def nothing_is_lost_with_a_killed_host(folder):
    home, store = folder / "home", folder / "sessions.jsonl"
    async with Line.lead(0) as line:
        async with our_host(SWITCHBOARD, folder / "host", "--store", store) as host:
            line.to = host.port
            args = (host.address, "--endpoint", line.url, "--home", home, "--json")
            async with spoken(Chat, SWITCHBOARD, "agent", "chat", *args) as chat:
                expect(await chat.ask("What is 6 * 7?") == "42", "the first answer")
                await chat.write("!slow 1000 50")
                await chat.step("llm_call")
                for text in ("What is 1 + 1?", "What is 1 + 2?"):
                    await chat.write(f"/say {text}")
                    await chat.event("queued")
                await host.stopped()
                await chat.event("lost")
                async with our_host(SWITCHBOARD, folder / "host", "--store", store) as host:
                    line.to = host.port
                    await chat.event("connected", status="new", newer=True)
                    await chat.line_with("does not know of it any more")
                    expect(await chat.ask("What is 2 + 3?") == "5", "the next answer")
                    await chat.write("/quit")
                    # What has failed is told at the end.
                    expect(await chat.end() == 1, "the exit code")
    [kept] = (home / "sessions").glob("*.json")
    session = json.loads(kept.read_text())["session"]
    said = [message["content"] for message in session["messages"] if message["role"] == "user"]
    expected = ["What is 6 * 7?", "!slow 1000 50", "What is 1 + 1?", "What is 1 + 2?", "What is 2 + 3?"]
    expect(said == expected, said)


async def main(checks, folder):
    clients = [("Node 0.1.4", ["node", f"{NODE}/caller.mjs"])]
    for venv in VENVS:
        name = "Python " + re.search(r"[\d.]+$", venv)[0]
        clients.append((name, [f"{venv}/bin/python", CALLER, folder / name / "caller"]))
    async with Relay.listening() as relay:
        one = nothing_is_lost_with_a_killed_host
        all_of_them = [checks.run(f"our client: {title(one)}", one(folder / "ours"))]
        for name, command in clients:
            (folder / name).mkdir()
            all_of_them.append(check_peer(checks, name, command, folder / name, relay))
        await asyncio.gather(*all_of_them)


run(main)
