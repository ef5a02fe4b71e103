"""The gateway as a program: its configuration, its command line, its beginning and its end."""

import asyncio
import signal
import socket
import tempfile
from pathlib import Path

from common import expect
from exoclaw import TOKEN, Raw, agent, close_code, events, gateway, history, refused, replied, run
from provider import Provider
from websockets.asyncio.client import connect

# --- the configuration -------------------------------------------------------------------------


async def bindings_choose_the_agent():
    bindings = [
        {"agent_id": "work", "channel": "slack"},
        {"agent_id": "boss", "channel": "slack", "peer_id": "boss"},
        {"agent_id": "team", "team_id": "t1"},
        {"agent_id": "guild", "guild_id": "g1"},
        {"agent_id": "late", "team_id": "t1"},
    ]
    tables = {"agent": agent(catch_all=False), "bindings": bindings}
    async with Provider() as provider, gateway(provider, config=tables) as running:
        async with running.talk() as talk:
            def at(channel="other", account="acc", peer="main", **more):
                return {"channel": channel, "account": account, "peer": peer} | more

            # Each agent has its own sessions: who shares one sees the turn before.
            agents = {}
            for name, where in (
                ("work", at("slack")), ("boss", at("slack", peer="boss")), ("team", at(team="t1")),
                ("guild", at(guild="g1")), ("guild", at(guild="g1", team="t1")),
                ("guild", at(guild="g1", team="t2")), ("team", at(guild="g2", team="t1")),
                ("work", at("slack", guild="g2")),
            ):
                turns = await history(talk, **where)
                expect(len(turns) == 1 + 2 * agents.get(name, 0), f"{where} is not {name}: {turns}")
                agents[name] = agents.get(name, 0) + 1
            # All that a binding names must be equal, not only its most special part.
            for where in (at(peer="boss"), at(), at(team="t2")):
                chat = await talk.chat("hi", **where)
                frame = f"no agent configured for other:acc:{where['peer']}"
                refused(chat.frames[0], "no agent configured for ")
                expect(chat.error == frame, chat.frames)


async def the_soul_is_read_again():
    with tempfile.TemporaryDirectory() as folder:
        soul = Path(folder) / "soul.md"
        soul.write_text("You are a pirate.")
        tables = {"agent": agent(soul_path="soul.md", system_prompt="Be brief.")}
        async with Provider() as provider:
            async with gateway(provider, folder=folder, config=tables) as running:
                async with running.talk() as talk:
                    chat = await talk.chat("!system")
                    expect("pirate" in chat.text and "Be brief." in chat.text, chat.text)
                    soul.write_text("You are a monk, and no longer what you were.")
                    chat = await talk.chat("!system")
                    expect("monk" in chat.text and "pirate" not in chat.text, chat.text)


async def the_last_answers_are_finished(end):
    async with Provider() as provider, gateway(provider) as running:
        idle = await connect(running.url, proxy=None)
        async with running.talk() as talk:
            chat = await talk.start("!slow 6")
            await chat.event("text")
            running.program.process.send_signal(end)
            replied(await chat.end(), "".join(f"c{n} " for n in range(6)), output_tokens=6)
            await asyncio.wait_for(talk.socket.wait_closed(), 10)
            expect(talk.socket.close_code == 1001, f"closed with {talk.socket.close_code}")
        await asyncio.wait_for(idle.wait_closed(), 10)
        expect(idle.close_code == 1001, f"the idle one is closed with {idle.close_code}")
        expect(await asyncio.wait_for(running.program.end(), 10) == 0, "another exit code")


async def an_end_does_not_wait_for_ever():
    async with Provider() as provider, gateway(provider) as running:
        async with running.talk() as talk:
            chat = await talk.start("!long 60")
            await chat.event("text")
            running.program.process.send_signal(signal.SIGTERM)
            expect(await asyncio.wait_for(running.program.end(), 45) == 0, "another exit code")
        request = await provider.request("!long 60")
        await asyncio.wait_for(request.ended.wait(), 5)
        expect(request.end == "hung up", request)


async def a_second_signal_ends_at_once():
    async with Provider() as provider, gateway(provider) as running:
        async with running.talk() as talk:
            chat = await talk.start("!long 60")
            await chat.event("text")
            running.program.process.send_signal(signal.SIGINT)
            await running.program.line_with("Ctrl-C again ends at once")
            # Who is there may go on until then; nobody else comes in.
            try:
                async with await Raw.open(running) as raw:
                    expect(raw.status != 101, "somebody has come in")
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            running.program.process.send_signal(signal.SIGINT)
            expect(await asyncio.wait_for(running.program.end(), 5) == 130, "another exit code")


async def names_and_pages_can_be_allowed():
    own = {"allowed_hosts": ["my.example"], "allowed_origins": ["https://ok.example"]}
    async with gateway(config={"gateway": own}) as running:
        for headers, status in (
            ({"host": "my.example"}, 101), ({"host": "localhost"}, 101), ({}, 101),
            ({"host": "other.example"}, 403), ({"origin": "https://ok.example"}, 101),
            ({"origin": "http://ok.example"}, 403), ({"origin": "https://ok.example:444"}, 403),
            ({"origin": "http://localhost:1"}, 101),
        ):
            async with await Raw.open(running, **headers) as raw:
                expect(raw.status == status, f"{headers}: {raw.status}")


async def connections_are_bounded():
    async with gateway(config={"gateway": {"max_connections": 3}}) as running:
        taken = [await Raw.open(running) for _ in range(3)]
        async with await Raw.open(running) as raw:
            expect(raw.status == 503, raw.status)
        for raw in taken:
            await raw.hello()
            await raw.send(8, close_code(1000))
            expect(await raw.closed() == 1000, "another code")
        async with await Raw.open(running) as raw:
            expect(raw.status == 101, raw.status)


async def without_a_configuration_it_answers_by_rules():
    async with gateway(config="") as running, running.talk() as talk:
        chat = await talk.chat("hi")
        expect(chat.text and not chat.error, chat.frames)
        expect(events(chat)[-1] == "done", events(chat))
        chat = await talk.chat("!fail", peer="x")
        expect(chat.error.startswith("provider error: "), chat.frames)
        # A content may be empty.
        chat = await talk.chat("", peer="y")
        expect(events(chat)[-1] == "done", events(chat))


# --- the command line --------------------------------------------------------------------------


async def a_public_address_needs_a_token():
    for host in ("0.0.0.0", "::"):
        code, text = await run("--bind", host, "--port", "0")
        expect(code == 2, f"{host}: exit code {code}, {text}")
        expect("Auth token required when binding to non-loopback address" in text, text)
    for args, env in ((["--token", ""], {}), ([], {"EXOCLAW_TOKEN": ""})):
        for bind in ([], ["--bind", "0.0.0.0"]):
            code, text = await run("--port", "0", *args, *bind, **env)
            expect(code == 2 and "token" in text, f"{args} {env} {bind}: {code} {text}")


async def a_token_may_come_from_the_environment():
    for args, env in ((["--token", TOKEN], {}), ([], {"EXOCLAW_TOKEN": TOKEN})):
        async with gateway(None, *args, config="", **env) as running:
            async with running.talk(TOKEN) as talk:
                expect(await talk.result("ping") == "pong", "no pong")


async def mistakes_in_the_file_are_told():
    for text, found in (
        ("[agent]\nprovider = \"nope\"\n", ["nope", ":2:"]),
        ("[agent]\nmax_tokens = 0\n", ["max_tokens", ":2:"]),
        ("[gateway]\n\nport = \"x\"\n", ["port", ":3:"]),
        ("[gateway\nport = 1\n", [":1:"]),
        ("[[bindings]]\nagent_id = \"a\"\n", ["bindings"]),
        ("[agent]\nprovider = \"nope\"\nmax_tokens = 0\n", ["nope", "max_tokens"]),
    ):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "config.toml"
            path.write_text(text)
            for args, env in ((["--config", str(path)], {}), ([], {"EXOCLAW_CONFIG": str(path)})):
                code, said = await run("--port", "0", *args, **env)
                expect(code == 2, f"{text!r}: exit code {code}, {said}")
                expect("config.toml" in said, said)
                missing = [word for word in found if word not in said]
                expect(not missing, f"{text!r}: no {missing} in {said}")
                expect("panicked" not in said, said)


async def other_mistakes_are_told():
    code, text = await run("--config", "/nowhere/at/all.toml")
    expect(code == 2 and "/nowhere/at/all.toml" in text, f"{code} {text}")
    code, text = await run("--nonsense")
    expect(code == 2 and "--nonsense" in text, f"{code} {text}")
    code, text = await run("--help")
    expect(code == 0 and "--token" in text and "--bind" in text, f"{code} {text}")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, text = await run("--port", port)
        expect(code == 1 and port in text and "in use" in text, f"{code} {text}")


async def unknown_keys_are_warned_of():
    text = "[gateway]\nallowed_origin = []\n"
    async with gateway(config=text) as running:
        expect(running.program.find("allowed_origins"), f"no hint in {running.program.lines}")


SETTINGS = [
    bindings_choose_the_agent,
    the_soul_is_read_again,
    a_second_signal_ends_at_once,
    names_and_pages_can_be_allowed,
    connections_are_bounded,
    without_a_configuration_it_answers_by_rules,
    a_public_address_needs_a_token,
    a_token_may_come_from_the_environment,
    mistakes_in_the_file_are_told,
    other_mistakes_are_told,
    unknown_keys_are_warned_of,
]
