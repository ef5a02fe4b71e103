"""Our bot against Python servers that speak the protocol, and then misbehave."""

import asyncio
import contextlib
import time

from aiohttp import web
from common import Checks, expect, program
from fake import SWITCHBOARD, Fake, bot_at, chat


async def talks_to_aiohttp_and_answers_its_pings():
    fake = Fake()
    app = web.Application()
    app.router.add_get("/rpc.ws", fake.serve_aiohttp)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        url = ["--url", f"ws://127.0.0.1:{port}", "--username", "bot"]
        async with program(SWITCHBOARD, "bot", *url, SNEK_PASSWORD="secret"):
            line = await fake.opened.get()
            await asyncio.sleep(1)
            expect(await fake.asked(line, "ping hello") == "pong hello", "wrong answer")
            expect(fake.logins == 1, "the line was lost meanwhile")
    finally:
        await runner.cleanup()


async def reads_nested_messages():
    fake = Fake()
    async with bot_at(fake):
        line = await fake.opened.get()
        data = {"uid": "m7", "message": "echo nested", "user_uid": "u2", "username": "ann"}
        await line.send({"event": "new_message", "channel_uid": "dm1", "data": data})
        expect(await fake.answered() == "nested", "wrong answer")


async def survives_answers_out_of_order_and_twice():
    held = []

    class Reversed(Fake):
        async def on_send(self, line, request):
            held.append(request)
            if len(held) == 2:
                for request in reversed(held):
                    await line.answer(request, "once")
                    await line.answer(request, "twice")
                await line.send({"callId": "never asked", "data": None})

    fake = Reversed()
    async with bot_at(fake):
        line = await fake.opened.get()
        await line.send(chat("echo one"))
        await line.send(chat("echo two"))
        texts = {await fake.answered(), await fake.answered()}
        expect(texts == {"one", "two"}, texts)
        expect(await fake.asked(line, "echo three") == "three", "wrong answer")
        expect(fake.logins == 1, "the line was lost meanwhile")


async def drops_late_answers():
    class Late(Fake):
        async def on_send(self, line, request):
            if "late" not in request["args"][1]:
                await super().on_send(line, request)

    fake = Late()
    async with bot_at(fake, "--request-timeout", "300ms", "--retry", "off") as bot:
        line = await fake.opened.get()
        await line.send(chat("echo late"))
        _, _, request = await fake.sent.get()
        await bot.line_with("no answer came in time")
        await line.answer(request)
        expect(await fake.asked(line, "echo next") == "next", "wrong answer")
        expect(fake.logins == 1, "the line was lost meanwhile")


async def skips_corrupt_frames():
    fake = Fake()
    async with bot_at(fake) as bot:
        line = await fake.opened.get()
        for odd in (
            '{"event":', "[1]", '"x"', "", b"\x00\xff", {}, {"event": "message"}, {"event": 7},
            {"event": "join"}, {"event": "set_typing"}, {"event": "party", "data": {"a": [1]}},
            chat(None), chat("echo part", is_final=False), {"callId": 5, "data": 1},
        ):
            await line.send(odd)
        expect(await fake.asked(line, "echo fine") == "fine", "wrong answer")
        expect(fake.logins == 1, "the line was lost meanwhile")
        await bot.line_with("a frame was skipped")


async def keeps_events_that_come_before_the_login():
    class Early(Fake):
        async def on_login(self, line, request):
            await line.send(chat("echo early"))
            await super().on_login(line, request)

    fake = Early()
    async with bot_at(fake):
        expect(await fake.answered() == "early", "wrong answer")
        expected = ["login", "get_user", "get_channels", "send_message"]
        expect(fake.log == expected, fake.log)


async def comes_back(lose, *args):
    """Loses the line with `lose`; the bot logs in again after a second and answers."""
    fake = Fake()
    async with bot_at(fake, *args) as bot:
        line = await fake.opened.get()
        expect(await fake.asked(line, "echo before") == "before", "wrong answer")
        fake.log.clear()
        start = time.monotonic()
        await lose(line)
        line = await fake.opened.get()
        expect(time.monotonic() - start > 0.9, "it came back without a wait")
        expect(fake.log == ["login", "get_user", "get_channels"], fake.log)
        expect(await fake.asked(line, "echo after") == "after", "wrong answer")
        await bot.line_with("logged in again")


async def cut(line):
    line.cut()


async def close(line):
    await line.close()


async def close_in_mid_conversation(line):
    await line.send(chat("echo lost?", is_final=False))
    await line.send('{"event":"mess')
    await line.close(1012, "restart")


async def send_a_huge_frame(line):
    with contextlib.suppress(Exception):
        await line.send("x" * (16 * 1024 * 1024))


async def go_deaf(line):
    """Half-open: the line stands, but nobody reads it, so pings stay unanswered."""
    line.transport.pause_reading()


async def comes_back_when_the_line_is_cut_during_the_login():
    class Fragile(Fake):
        async def on_login(self, line, request):
            if self.logins == 1:
                line.cut()
            else:
                await super().on_login(line, request)

    fake = Fragile()
    async with bot_at(fake):
        line = await fake.opened.get()
        expect(await fake.asked(line, "echo here") == "here", "wrong answer")
        expect(fake.logins == 2, fake.logins)


async def ends_when_the_login_is_refused():
    class Strict(Fake):
        async def on_login(self, line, request):
            await line.answer(request, {"error": "no such user"}, success=False)

    fake = Strict()
    async with bot_at(fake) as bot:
        expect(await bot.end() == 3, "wrong exit code")
        expect(bot.find("refused the login") and bot.find("no such user"), bot.lines)
        expect(not any("secret" in line for line in bot.lines), "the password was shown")
        expect(fake.logins == 1, "it tried again")


class Silent(Fake):
    """Takes messages and never answers."""

    async def on_send(self, line, request):
        pass


async def sends_again_as_the_protocol_orders():
    fake = Silent()
    async with bot_at(fake, "--request-timeout", "300ms") as bot:
        line = await fake.opened.get()
        await line.send(chat("echo anybody"))
        for _ in range(3):
            expect(await fake.answered() == "anybody", "wrong message")
        await bot.line_with("sending again, attempt 2; the last one may have arrived")
        await bot.line_with("sending again, attempt 3; the last one may have arrived")
        await bot.line_with("gave up after 3 attempts")
        expect(fake.logins == 3, f"{fake.logins} logins: each repeat has a connection of its own")
        expect(fake.sent.empty(), "there was a fourth attempt")


async def repeats_nothing_that_may_have_arrived():
    fake = Silent()
    args = ["--request-timeout", "300ms", "--retry", "unsent", "--once", "--within", "3s"]
    async with bot_at(fake, *args) as bot:
        line = await fake.opened.get()
        await line.send(chat("echo anybody"))
        await bot.line_with("no answer came in time")
        expect(await bot.end() == 1, "wrong exit code")
        expect((fake.sent.qsize(), fake.logins) == (1, 1), "it was sent again")


HEARTBEAT = ["--heartbeat", "200ms", "--pong-timeout", "200ms"]
CHECKS = {
    "talks to aiohttp and answers its pings": talks_to_aiohttp_and_answers_its_pings,
    "reads nested messages": reads_nested_messages,
    "survives answers out of order and twice": survives_answers_out_of_order_and_twice,
    "drops late answers": drops_late_answers,
    "skips corrupt frames": skips_corrupt_frames,
    "keeps events that come before the login": keeps_events_that_come_before_the_login,
    "comes back when the line is cut": lambda: comes_back(cut),
    "comes back when the server closes": lambda: comes_back(close),
    "comes back when the server restarts": lambda: comes_back(close_in_mid_conversation),
    "comes back after a huge frame": lambda: comes_back(send_a_huge_frame),
    "comes back when the server goes deaf": lambda: comes_back(go_deaf, *HEARTBEAT),
    "comes back when the line is cut during the login":
        comes_back_when_the_line_is_cut_during_the_login,
    "ends when the login is refused": ends_when_the_login_is_refused,
    "sends again as the protocol orders": sends_again_as_the_protocol_orders,
    "repeats nothing that may have arrived": repeats_nothing_that_may_have_arrived,
}


async def main():
    checks = Checks()
    for name, check in CHECKS.items():
        await checks.run(name, check())
    checks.finish()


asyncio.run(main())
