"""Every program with each of its providers of language models: an answer, and one that does not run."""
# Needs: nothing.

import contextlib
import socket
import tempfile

import aiohttp
from fakesnek import Fake, bot_at, message
from harness import expect, main, output, same, served, switchboard
from provider import KINDS, Provider
from sockets import Python

SORRY = "sorry, I cannot think right now; please try again later"
NOBODY_THERE = "connection refused: cannot connect to "

def model(kind):
    return ("--provider", kind, "--model", "stub")

async def bot(kind, env, runs):
    fake = Fake()
    async with bot_at(fake, *model(kind), **env) as running:
        await (await fake.guest()).send(message("hi"))
        is_final = False
        while not is_final:
            text, is_final = await fake.post()
        same(text, "Hello world" if runs else SORRY, "what is posted")
        if not runs:
            await running.line(NOBODY_THERE)

async def chat_with(*args, env, runs):
    """Asks a server by its own client."""
    code, out, err = await output(*args, **env)
    same(code, 0 if runs else 1, f"the exit code after {out} {err}")
    expect(("Hello world" if runs else NOBODY_THERE) in out + err, out + err)

async def agent(kind, env, runs):
    with tempfile.TemporaryDirectory() as home:
        env = env | {"HOME": home}
        async with served("agent", "host", "--home", f"{home}/host", *model(kind), **env) as host:
            url = f"http://{host.address}"
            await chat_with("agent", "chat", url, "--home", f"{home}/user", "hi", env=env, runs=runs)

async def daemon(kind, env, runs):
    with tempfile.TemporaryDirectory() as folder:
        async with served("daemon", "serve", "--workspace", folder, *model(kind), **env) as running:
            url = f"http://{running.address}"
            await chat_with("daemon", "run", "hi", "--url", url, "--model", "stub", env=env, runs=runs)

async def router(kind, env, runs):
    args = ("router", "--listen", "127.0.0.1:0", "--json", *model(kind))
    async with switchboard(*args, **env) as running, Python() as peer:
        listening = await running.event("listening")
        client = await peer.connect(listening["url"])
        await client.send({"type": "registration", "payload": {"name": "notes", "description": "Keeps notes."}})
        await client.next()
        said = '!tool route_to_notes {"message": "milk"}'
        async with aiohttp.ClientSession() as session:
            async with session.post(listening["input"], json={"text": said}) as answer:
                expect(answer.status < 300, await answer.text())
        if runs:
            same((await client.next())["payload"]["text"], "milk", "what is routed")
        else:
            await running.line("cannot connect to ")

async def answers_with(kind, run):
    async with Provider() as provider:
        await run(kind, provider.env, runs=True)
        provider.check()

async def says_that_its_provider_does_not_run(run):
    # Nobody else gets the port, and nobody listens there.
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        await run("ollama", {"OLLAMA_HOST": f"127.0.0.1:{taken.getsockname()[1]}"}, runs=False)

async def body(checks):
    for run in (bot, agent, daemon, router):
        name = run.__name__
        # The router tries again for some seconds.
        checks.beside(says_that_its_provider_does_not_run, run, name=f"{name} says that its provider does not run")
        for kind in KINDS:
            await checks.run(answers_with, kind, run, name=f"{name} answers with")

main(body)
