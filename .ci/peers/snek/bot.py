"""Our bot against Snek servers of Python's websockets and aiohttp, and of Node's ws."""
# Needs: node.

from fakesnek import PASSWORD, Fake, bot, bot_at, message, serving
from harness import Proxy, expect, main, same, until
from sockets import Aiohttp, Node, Python

TOO_LARGE = 16 * 1024 * 1024
OPENING = ["login", "get_user", "get_channels"]

async def a_bot_talks_and_answers_pings(library):
    fake = Fake()
    async with bot_at(fake, library=library):
        guest = await fake.guest()
        same((fake.logins, fake.log), ([["bot", PASSWORD]], OPENING), "the opening")
        same(await fake.ask(guest, "ping größe ✓"), "pong größe ✓", "the answer")
        await guest.ping()
        same((await fake.ask(guest, "echo again"), len(fake.logins)), ("again", 1), "the next answer, and logins")

async def restart_in_mid_message(guest):
    await guest.send(message("echo lost?", is_final=False))
    await guest.send('{"event":"mess')
    await guest.close(1012, "restart")

async def send_too_much(guest):
    await guest.send("x" * TOO_LARGE)
    same((await guest.closed())[0], 1009, "the code that the bot closes with")

async def a_bot_comes_back_however_its_line_ends(library):
    fake = Fake()
    async with bot_at(fake, library=library):
        for lose in (lambda it: it.cut(), lambda it: it.close(), restart_in_mid_message, send_too_much):
            guest = await fake.guest()
            same(await fake.ask(guest, "echo before"), "before", "the answer before it")
            fake.log.clear()
            await lose(guest)
        guest = await fake.guest()
        same(fake.log, OPENING, "what it does after it came back")
        same(await fake.ask(guest, "echo after"), "after", "the answer")

async def a_bot_leaves_a_server_that_has_gone_deaf(library):
    fake = Fake()
    times = ("--heartbeat", "200ms", "--pong-timeout", "2s")
    async with serving(fake, library) as server, Proxy(server.port) as line:
        async with bot(f"ws://127.0.0.1:{line.port}", *times, "--json") as running:
            await fake.guest()
            line.flows.clear()
            await running.event("lost")
            line.flows.set()
            same(await fake.ask(await fake.guest(), "echo after"), "after", "the answer")

class Silent(Fake):
    """Takes messages and never answers."""

    async def on_post(self, guest, request):
        pass

async def an_unanswered_message_is_sent_three_times():
    fake = Silent()
    async with bot_at(fake, "--request-timeout", "1s") as running:
        await (await fake.guest()).send(message("echo anybody"))
        for attempt in (2, 3):
            await running.line(f"sending again, attempt {attempt}; the last one may have arrived")
        await running.line("gave up after 3 attempts")
        same([await fake.answered() for _ in range(3)], ["anybody"] * 3, "the posts")
        same(len(fake.logins), 3, "logins: each attempt has a connection of its own")
        expect(not fake.posts.items, "there was a fourth attempt")

async def what_may_have_arrived_is_not_repeated_if_so_wanted():
    fake = Silent()
    async with bot_at(fake, "--request-timeout", "1s", "--retry", "unsent") as running:
        guest = await fake.guest()
        for count, text in enumerate(("one", "two"), 1):
            same(await fake.ask(guest, f"echo {text}"), text, "the post")
            # A repeat of the first would come before the second is given up.
            await until(lambda: str(running.lines).count("no answer came in time") == count, "the answer is given up")
        await running.stop()
        same((fake.posts.items, len(fake.logins)), ([], 1), "more posts, and logins")

async def body(checks):
    for library in (Python, Aiohttp, Node):
        checks.beside(a_bot_talks_and_answers_pings, library)
        checks.beside(a_bot_comes_back_however_its_line_ends, library)
    checks.beside(a_bot_leaves_a_server_that_has_gone_deaf, Python)
    checks.beside(an_unanswered_message_is_sent_three_times)
    checks.beside(what_may_have_arrived_is_not_repeated_if_so_wanted)

main(body)
