"""A Snek server for one bot, with any library that sockets.py has, and the bot that comes to it.

    async with bot_at(fake) as bot:
        guest = await fake.guest()
        text = await fake.ask(guest, "echo hello")
"""

import asyncio
import contextlib

from harness import Failed, Inbox, switchboard
from sockets import Python

PASSWORD = "secret"
CHANNELS = [{"uid": "dm1", "name": "Ann", "tag": "dm", "color": "#123456", "new_count": 0}]

def message(text, **more):
    """What the bot is told when Ann has said something."""
    event = {"event": "message", "message": text, "username": "ann", "user_nick": "Ann"}
    return event | {"channel_uid": "dm1", "is_final": True} | more

async def answer(guest, request, data=None, success=True):
    await guest.send({"callId": request["callId"], "success": success, "data": data})

class Fake:
    """The server. What a subclass overrides is what it does otherwise."""

    def __init__(self):
        # The methods that were called, and the arguments of each login.
        self.log, self.logins = [], []
        # Sockets on which a bot has logged in and asked for its channels.
        self.guests = Inbox()
        # Pairs: a socket, and the request `send_message` that came on it.
        self.posts = Inbox()

    async def on_login(self, guest, request):
        await answer(guest, request, {"username": "bot", "nick": "Botty", "uid": "u1"})

    async def on_post(self, guest, request):
        await answer(guest, request, {"uid": "m1"})

    async def on_request(self, guest, request):
        method = request["method"]
        self.log.append(method)
        if method == "login":
            self.logins.append(request["args"])
            await self.on_login(guest, request)
        elif method == "get_user":
            await answer(guest, request, {"username": "bot", "nick": "Botty"})
        elif method == "get_channels":
            await answer(guest, request, CHANNELS)
            await self.guests.put(guest)
        elif method == "send_message":
            await self.posts.put((guest, request))
            await self.on_post(guest, request)
        else:
            await answer(guest, request)

    async def attend(self, guest):
        try:
            while True:
                await self.on_request(guest, await guest.next(what="a request"))
        except (Failed, OSError):
            # The line has ended.
            pass
        except (KeyError, TypeError, ValueError):
            # It knows no more than what our bot says, and nobody else suffers from that.
            await guest.cut()

    async def welcome(self, server):
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(self.attend(await server.accepted()))

    async def guest(self):
        """Waits for the next line on which a bot is ready."""
        return await self.guests.next(what="a bot that has logged in")

    async def post(self):
        """Takes what the bot posts next: the text, and whether it is final."""
        _, request = await self.posts.next(what="a post of the bot")
        channel, text, is_final = request["args"]
        if channel != "dm1":
            raise Failed(f"posted to another channel: {request}")
        return text, is_final

    async def answered(self):
        """Takes the next answer of the bot, which must be whole."""
        text, is_final = await self.post()
        if is_final is not True:
            raise Failed(f"not final: {text!r}")
        return text

    async def ask(self, guest, text):
        """Says something to the bot and returns what it posts."""
        await guest.send(message(text))
        return await self.answered()

@contextlib.asynccontextmanager
async def serving(fake, library=Python):
    """The server on a free port: it has `port` and `url`."""
    async with library() as peer, peer.serve() as server:
        welcome = asyncio.create_task(fake.welcome(server))
        try:
            yield server
        finally:
            welcome.cancel()
            await asyncio.gather(welcome, return_exceptions=True)

@contextlib.asynccontextmanager
async def bot_at(fake, *args, library=Python, **env):
    """The server, and the bot that connects to it."""
    async with serving(fake, library) as server:
        async with bot(server.url, *args, **env) as running:
            yield running

def bot(url, *args, **env):
    return switchboard("bot", "--url", url, "--username", "bot", *args, SNEK_PASSWORD=PASSWORD, **env)
