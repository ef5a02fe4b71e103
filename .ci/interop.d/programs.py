"""Every program with each of its providers: an answer, and a provider that is not there. The gateway has
more in `answers.py`, the bot in `models.py`."""

import asyncio
import contextlib
import json
import sys
import tempfile

import aiohttp
from common import Checks, expect, program
from exoclaw import PROVIDERS
from fake import Fake, bot_at, chat
from provider import Provider
from websockets.asyncio.client import connect

SWITCHBOARD = sys.argv[1]


def model(kind):
    return ("--provider", kind, "--model", "stub")


async def ran(*args, env):
    """Runs a program to its end. Returns its exit code and all that it says."""
    async with program(SWITCHBOARD, *args, **env) as running:
        code = await asyncio.wait_for(running.end(), 40)
        return code, "\n".join(running.lines)


@contextlib.asynccontextmanager
async def served(*args, env):
    """A server on a free port, and its port."""
    async with program(SWITCHBOARD, *args, "--listen", "127.0.0.1:0", **env) as running:
        line = await asyncio.wait_for(running.line_with("http://"), 20)
        yield running, int(line.split("http://127.0.0.1:")[1].split("/")[0].split()[0])


async def bot(kind, env, expected):
    fake = Fake()
    async with bot_at(fake, *model(kind), **env) as running:
        line = await asyncio.wait_for(fake.opened.get(), 20)
        await line.send(chat("hi"))
        said = ""
        while not said:
            (_, text, is_final), _, _ = await fake.sent.get()
            said = text if is_final else ""
        if expected:
            expect(said == expected, said)
        else:
            expect(said == "sorry, I cannot think right now; please try again later", said)
            await running.line_with("connection refused: cannot connect to ")


async def agent(kind, env, expected):
    with tempfile.TemporaryDirectory() as home:
        env = env | {"HOME": home}
        async with served("agent", "host", "--home", f"{home}/host", *model(kind), env=env) as (_, port):
            chat = ("agent", "chat", f"http://127.0.0.1:{port}", "--home", f"{home}/user", "hi")
            code, text = await ran(*chat, env=env)
            expect(code == (0 if expected else 1), text)
            expect((expected or "connection refused: cannot connect to ") in text, text)


async def daemon(kind, env, expected):
    with tempfile.TemporaryDirectory() as folder:
        args = ("daemon", "serve", "--workspace", folder, *model(kind))
        async with served(*args, env=env) as (_, port):
            url = f"http://127.0.0.1:{port}"
            code, text = await ran("daemon", "run", "hi", "--url", url, "--model", "stub", env=env)
            expect(code == (0 if expected else 1), text)
            expect((expected or "connection refused: cannot connect to ") in text, text)


async def router(kind, env, expected):
    args = ("router", "--listen", "127.0.0.1:0", "--json", *model(kind))
    async with program(SWITCHBOARD, *args, **env) as running:
        listening = json.loads(await asyncio.wait_for(running.line_with('"listening"'), 20))
        socket = await connect(listening["url"])
        payload = {"name": "notes", "description": "Keeps notes."}
        await socket.send(json.dumps({"type": "registration", "payload": payload}))
        await socket.recv()
        ask = '!tool route_to_notes {"message": "milk"}' if expected else "milk"
        async with aiohttp.ClientSession() as session:
            async with session.post(listening["input"], json={"text": ask}) as answer:
                expect(answer.status < 300, await answer.text())
        if expected:
            frame = json.loads(await asyncio.wait_for(socket.recv(), 20))
            expect(frame["payload"]["text"] == "milk", frame)
        else:
            await running.line_with("cannot connect to ")
        await socket.close()


async def answers(run, kind):
    async with Provider() as provider:
        await run(kind, provider.env, "Hello world")
        provider.check()


async def nowhere(run, kind):
    """Nobody listens there."""
    async with Provider() as provider:
        env = provider.env
    await run(kind, env, None)


async def main():
    checks = Checks()
    for run in (bot, agent, daemon, router):
        for kind in PROVIDERS:
            await checks.run(f"{run.__name__}: answers with {kind}", answers(run, kind))
        # The router's waits are seven seconds in all.
        checks.beside(f"{run.__name__}: says that ollama does not run", nowhere(run, "ollama"), 60)
    await checks.others()
    checks.finish()


asyncio.run(main())
