"""Python clients against `bot serve`: `websockets` and `aiohttp`, as they come."""

import asyncio
import itertools
import json
import signal
import sys

import aiohttp
from common import Checks, Failed, expect, program
from websockets.asyncio.client import connect

SWITCHBOARD = sys.argv[1]
PASSWORDS = {"SNEK_PASSWORD_ALICE": "wonderland", "SNEK_PASSWORD_BOB": "builder"}


class WebsocketsLine:
    @classmethod
    async def open(cls, url):
        line = cls()
        line.socket = await connect(url, max_size=None, proxy=None)
        return line

    async def send(self, data):
        await self.socket.send(data)

    async def receive(self):
        return await self.socket.recv()

    async def close_code(self):
        await self.socket.wait_closed()
        return self.socket.close_code

    async def close(self):
        await self.socket.close()


class AiohttpLine:
    @classmethod
    async def open(cls, url):
        line = cls()
        line.session = aiohttp.ClientSession()
        line.socket = await line.session.ws_connect(url, heartbeat=30, max_msg_size=0)
        return line

    async def send(self, data):
        if isinstance(data, bytes):
            await self.socket.send_bytes(data)
        else:
            await self.socket.send_str(data)

    async def receive(self):
        return await self.socket.receive_str()

    async def close_code(self):
        while not self.socket.closed:
            await self.socket.receive()
        return self.socket.close_code

    async def close(self):
        await self.socket.close()
        await self.session.close()


class User:
    """A user of the protocol over either line. Answers and events are kept apart."""

    def __init__(self, line):
        self.line = line
        self.ids = itertools.count(1)
        self.waiting = {}
        self.events = asyncio.Queue()
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        try:
            while True:
                frame = json.loads(await self.line.receive())
                # The raw id decides: 1 and "1" are two different ids.
                future = self.waiting.pop(json.dumps(frame.get("callId")), None)
                if "callId" in frame and future:
                    future.set_result(frame)
                else:
                    self.events.put_nowait(frame)
        except Exception as error:
            for future in self.waiting.values():
                future.set_exception(Failed(f"the line has ended: {error!r}"))
            self.waiting.clear()

    async def ask(self, request):
        future = asyncio.get_running_loop().create_future()
        self.waiting[json.dumps(request["callId"])] = future
        await self.line.send(json.dumps(request))
        return await future

    async def call(self, method, *args):
        call_id = f"{next(self.ids):016x}"
        return await self.ask({"method": method, "args": args, "kwargs": {}, "callId": call_id})

    async def value(self, method, *args):
        answer = await self.call(method, *args)
        expect(answer.get("success", True), f"{method} failed: {answer}")
        return answer["data"]

    async def event(self, name):
        while True:
            event = await self.events.get()
            if event.get("event") == name:
                return event

    async def close(self):
        self.reader.cancel()
        await self.line.close()


async def user(kind, url, name="alice", password="wonderland"):
    user = User(await kind.open(url))
    if name:
        await user.value("login", name, password)
    return user


def refused(answer):
    return answer.get("success") is False and bool(answer["data"]["error"])


async def nobody_asks_before_the_login(kind, url):
    someone = await user(kind, url, None)
    expect(refused(await someone.call("get_channels")), "a call before the login was answered")
    await someone.value("login", "alice", "wonderland")
    await someone.close()


async def a_bad_login_leaves_the_socket_open(kind, url):
    someone = await user(kind, url, None)
    expect(refused(await someone.call("login", "alice", "wrong")), "a wrong password was accepted")
    record = await someone.value("login", "alice", "wonderland")
    expect(record["username"] == "alice" and record["nick"] == "Alice", record)
    await someone.close()


async def users_and_channels_are_told(kind, url):
    alice = await user(kind, url)
    for args in ([None], []):
        record = await alice.value("get_user", *args)
        expect((record["username"], record["nick"]) == ("alice", "Alice"), record)
    channels = await alice.value("get_channels")
    expect({"uid": "general", "name": "General", "tag": "public"} in channels, channels)
    await alice.close()


async def a_message_in_parts_comes_back_to_its_sender(kind, url):
    alice = await user(kind, url)
    await alice.value("send_message", "general", "one", False)
    await alice.value("send_message", "general", "one, twö ✓", True)
    for text, final in (("one", False), ("one, twö ✓", True)):
        event = await alice.event("message")
        expected = {
            "event": "message", "message": text, "username": "alice", "user_nick": "Alice",
            "channel_uid": "general", "is_final": final,
        }
        expect(event == expected, event)
    await alice.close()


async def typing_is_seen_by_another_client(kind, url):
    other = AiohttpLine if kind is WebsocketsLine else WebsocketsLine
    alice, bob = await user(kind, url), await user(other, url, "bob", "builder")
    await alice.value("set_typing", "general", "#FF6B35")
    event = await bob.event("set_typing")
    expect("alice" in event["data"].values() and "#FF6B35" in event["data"].values(), event)
    await alice.close()
    await bob.close()


async def ping_is_a_method(kind, url):
    alice = await user(kind, url)
    expect(await alice.value("ping") == {"pong": []}, "no pong")
    await alice.close()


async def an_unknown_method_is_refused(kind, url):
    alice = await user(kind, url)
    expect(refused(await alice.call("make_coffee", 1)), "an unknown method was carried out")
    expect(refused(await alice.call("send_message", "general")), "an argument is missing")
    await alice.value("ping")
    await alice.close()


async def args_kwargs_and_call_id_may_be_missing(kind, url):
    alice = await user(kind, url)
    answer = await alice.ask({"method": "get_user", "callId": "x"})
    expect(answer["data"]["username"] == "alice", answer)
    by_name = {"channel_uid": "general", "message_text": "by name", "is_final": True}
    await alice.line.send(json.dumps({"method": "send_message", "kwargs": by_name}))
    event = await alice.event("message")
    expect(event["message"] == "by name", event)
    await alice.value("ping")
    expect(alice.events.empty(), "a request without callId was answered")
    await alice.close()


async def a_numeric_call_id_comes_back_as_a_number(kind, url):
    alice = await user(kind, url)
    answer = await alice.ask({"method": "ping", "args": [], "kwargs": {}, "callId": 17})
    expect(answer["callId"] == 17 and type(answer["callId"]) is int, answer)
    await alice.close()


async def what_is_no_request_is_ignored(kind, url):
    alice = await user(kind, url)
    for odd in (b"\x00\xff", '{"method":', "[1, 2]", '"ping"', "{}", '{"method": 7}', ""):
        await alice.line.send(odd)
    await alice.value("ping")
    expect(alice.events.empty(), "there was an answer")
    await alice.close()


async def a_huge_frame_closes_only_its_sender(kind, url):
    bob, alice = await user(kind, url, "bob", "builder"), User(await kind.open(url))
    alice.reader.cancel()
    try:
        await alice.line.send("x" * (16 * 1024 * 1024))
    except Exception:
        pass  # A library may give up sending once it is told that this is too much.
    code = await alice.line.close_code()
    expect(code == 1009, f"closed with {code}")
    await bob.value("ping")
    await bob.close()
    await alice.close()


async def an_idle_client_with_a_short_heartbeat_lives(url):
    line = AiohttpLine()
    line.session = aiohttp.ClientSession()
    line.socket = await line.session.ws_connect(url, heartbeat=0.8)
    alice = User(line)
    await alice.value("login", "alice", "wonderland")
    await asyncio.sleep(2)
    await alice.value("ping")
    await alice.close()


async def clients_work_at_the_same_time(url):
    users = [await user(WebsocketsLine, url), await user(AiohttpLine, url, "bob", "builder")]
    calls = [someone.value("get_user", None) for _ in range(200) for someone in users]
    names = [record["username"] for record in await asyncio.gather(*calls)]
    expect(names == ["alice", "bob"] * 200, "answers were mixed up")
    for someone in users:
        await someone.close()


async def a_foreign_origin_is_refused(url):
    async with aiohttp.ClientSession() as session:
        for origin in ("https://evil.example", "null"):
            try:
                await session.ws_connect(url, headers={"Origin": origin})
            except aiohttp.WSServerHandshakeError as error:
                expect(error.status == 403, error)
            else:
                raise Failed(f"{origin} was let in")


async def a_foreign_host_is_refused(url):
    async with aiohttp.ClientSession() as session:
        try:
            await session.ws_connect(url, headers={"Host": "evil.example"})
        except aiohttp.WSServerHandshakeError as error:
            expect(error.status in (403, 421), error)
        else:
            raise Failed("the name was let in")


async def a_plain_get_is_answered(url):
    async with aiohttp.ClientSession() as session:
        async with session.get(url.replace("ws://", "http://")) as response:
            expect(response.status == 426, response.status)
            expect(await response.text(), "no explanation")


async def the_end_of_the_server_is_told(server, url):
    lines = [await WebsocketsLine.open(url), await AiohttpLine.open(url)]
    server.process.send_signal(signal.SIGTERM)
    for line in lines:
        code = await line.close_code()
        expect(code == 1001, f"closed with {code}")
        await line.close()
    expect(await server.end() == 0, "the server failed")


PER_CLIENT = [
    nobody_asks_before_the_login,
    a_bad_login_leaves_the_socket_open,
    users_and_channels_are_told,
    a_message_in_parts_comes_back_to_its_sender,
    typing_is_seen_by_another_client,
    ping_is_a_method,
    an_unknown_method_is_refused,
    args_kwargs_and_call_id_may_be_missing,
    a_numeric_call_id_comes_back_as_a_number,
    what_is_no_request_is_ignored,
    a_huge_frame_closes_only_its_sender,
]
ONCE = [
    an_idle_client_with_a_short_heartbeat_lives,
    clients_work_at_the_same_time,
    a_foreign_origin_is_refused,
    a_foreign_host_is_refused,
    a_plain_get_is_answered,
]


async def main():
    checks = Checks()
    args = ["serve", "--listen", "127.0.0.1:0", "--user", "alice:Alice", "--user", "bob:Bob"]
    async with program(SWITCHBOARD, "bot", *args, **PASSWORDS) as server:
        line = await asyncio.wait_for(server.line_with("listening on "), 30)
        url = line.removeprefix("listening on ")
        for kind, library in ((WebsocketsLine, "websockets"), (AiohttpLine, "aiohttp")):
            for check in PER_CLIENT:
                await checks.run(f"{library}: {check.__name__.replace('_', ' ')}", check(kind, url))
        for check in ONCE:
            await checks.run(check.__name__.replace("_", " "), check(url))
        await checks.run("the end of the server is told", the_end_of_the_server_is_told(server, url))
    checks.finish()


asyncio.run(main())
