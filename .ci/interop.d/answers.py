"""The gateway between its clients and a provider: answers, failures and tools."""

import asyncio
import json
import socket
import tempfile
from pathlib import Path

from common import expect
from exoclaw import agent, events, failed, gateway, history, replied
from provider import KEY, UTF8, Provider
from wat import plugins

# --- providers ---------------------------------------------------------------------------------


async def answers_are_streamed(kind, running, provider):
    async with running.talk() as talk:
        replied(await talk.chat("hi", peer="s1"))
        chat = replied(await talk.chat("!slow 4", peer="s2"), "c0 c1 c2 c3 ", output_tokens=4)
        expect(events(chat).count("text") == 4, "pieces were put together")
        replied(await talk.chat("!crlf", peer="s3"))
        replied(await talk.chat("!utf8", peer="s4"), UTF8, output_tokens=1)
        replied(await talk.chat("!burst 5000", peer="s5"), "".join(f"c{n} " for n in range(5000)),
                output_tokens=5000)
    request = await provider.request("hi")
    expect(request.kind == kind and request.body["model"] == "stub", request.body)


async def refusals_of_the_provider_are_told(kind, running, provider):
    async with running.talk() as talk:
        for code in (400, 401, 403, 404, 413, 501):
            error = failed(await talk.chat(f"!http {code}", peer="h"), "provider error: ")
            expect(f"(HTTP {code})" in error and f" says: stub says {code}" in error, error)
            expect("{" not in error, error)
            asked = [one for one in provider.requests if one.text == f"!http {code}"]
            expect(len(asked) == 1, f"{code}: asked {len(asked)} times")
        # Ollama has got no key that it could name.
        if kind != "ollama":
            error = failed(await talk.chat("!leak 401", peer="h"), "provider error: ")
            expect("refused the key (HTTP 401): check " in error, error)
        error = failed(await talk.chat("!nomodel", peer="h"), "provider error: ")
        expect("does not have the model stub" in error, error)
        expect(kind != "ollama" or "run 'ollama pull stub'" in error, error)
        failed(await talk.chat("!redirect", peer="h"), "provider error: ")
        # Nothing of it is remembered, and the session goes on.
        expect(await history(talk, peer="h") == [("user", "!context")], "a failed turn is remembered")


async def an_overloaded_provider_is_asked_again(_, running, provider):
    async with running.talk() as talk:
        replied(await talk.chat("!flaky 1", peer="f"))
        expect(len([one for one in provider.requests if one.text == "!flaky 1"]) == 2, "not asked twice")
        for code, what in ((529, " is overloaded"), (429, " limits the requests"), (502, " has failed")):
            error = failed(await talk.chat(f"!http {code}", peer="f"), "provider error: ")
            expect(f"{what} (HTTP {code}); try again later" in error, error)
        tried = ("!http 529", "!http 429", "!http 502")
        asked = [one for one in provider.requests if one.text in tried]
        expect(3 < len(asked) <= 15, f"asked {len(asked)} times")


async def answers_that_break_off_are_errors(_, running, provider):
    async with running.talk() as talk:
        for how in ("!eof", "!cut", "!midstream"):
            failed(await talk.chat(how, peer=how), "provider error: ", "half")
            asked = [one for one in provider.requests if one.text == how]
            expect(len(asked) == 1, f"{how}: asked {len(asked)} times")
            # What came before the error was said, so it is remembered.
            turns = await history(talk, peer=how)
            expect(turns == [("user", how), ("assistant", "half"), ("user", "!context")], turns)
        for how in ("!garbage", "!huge"):
            failed(await talk.chat(how, peer=how), "provider error: ")
        replied(await talk.chat("hi", peer="whole"))


async def long_conversations_are_cut_with_a_notice(_, running, provider):
    async with running.talk() as talk:
        for number in range(3):
            replied(await talk.chat(f"{number} " + "long " * 50, peer="long"))
        chat = await talk.chat("!toolong", peer="long")
        notice, _, text = chat.text.partition("\n\n")
        expect(notice.startswith("*this conversation has grown too long for the model: "), chat.text)
        expect(text == "Hello world" and not chat.error, chat.frames)
        first, second = [len(one.messages) for one in provider.requests if one.text == "!toolong"]
        expect(second < first, f"{first} messages, then {second}")
        # The notice is not remembered.
        turns = await history(talk, peer="long")
        expect(("assistant", "Hello world") in turns, turns)
        # Alone, nothing can be left out.
        error = failed(await talk.chat("!toolong twice", peer="alone"), "provider error: the conversation is too long")
        expect("begin a new one, or lower [agent] context_tokens" in error, error)


async def cut_answers_say_so(_, running, provider):
    async with running.talk() as talk:
        for how, why in (("!length", "cut at its length limit"), ("!refuse", "refuses to answer")):
            chat = await talk.chat(how, peer=how)
            expect(chat.text.startswith("half\n\n*") and why in chat.text, chat.text)
            expect(not chat.error, chat.frames)


async def odd_answers_are_understood(_, running, provider):
    async with running.talk() as talk:
        chat = await talk.chat("!json", peer="j")
        expect(chat.text == "at once" and not chat.error, chat.frames)
        # Results are told apart by the ids of their calls, whatever the model says.
        chat = await talk.chat("!twins echo", peer="j2")
        uses = [(use["id"], use["input"]["message"]) for use in chat.data("tool_use")]
        results = [(result["tool_use_id"], result["content"]) for result in chat.data("tool_result")]
        expect(uses == results and [said for _, said in uses] == ["one", "two"], f"{uses} {results}")
        expect(len({id for id, _ in uses}) == 2, uses)
        chat = await talk.chat("!big echo 1000000", peer="j3")
        expect(chat.data("tool_result")[0]["content"] == "x" * 1_000_000, "another content")
        failed(await talk.chat("!big echo 50000000", peer="j4"), "provider error: ")


async def connections_to_the_provider_are_kept(_, running, provider):
    before = provider.connections
    async with running.talk() as talk:
        for number in range(10):
            replied(await talk.chat("hi", peer=f"k{number}"))
    # The next question may come before the end of the last answer has been read.
    opened = provider.connections - before
    expect(opened < 5, f"{opened} connections for ten questions")


async def a_provider_that_is_not_there(kind):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        async with Provider() as provider:
            nowhere = {name: url for name in provider.env if "BASE_URL" in name or "HOST" in name}
            async with gateway(provider, config={"agent": agent(kind)}, **nowhere) as running:
                async with running.talk() as talk:
                    error = failed(await talk.chat("hi"), "provider error: connection refused: cannot connect to ")
                    expect(kind != "ollama" or error.endswith("; is 'ollama serve' running?"), error)
                    expect(await talk.result("ping") == "pong", "no pong")
                    failed(await talk.chat("hi"), "provider error: ")


async def a_silent_provider_is_given_up(kind):
    """Takes as long as the gateway is patient."""
    async with Provider() as provider, gateway(provider, config={"agent": agent(kind)}) as running:
        async with running.talk() as talk:
            silent, stalled = await talk.start("!silent", peer="a"), await talk.start("!stall", peer="b")
            failed(await silent.end(), "provider error: request timed out")
            failed(await stalled.end(), "provider error: stream idle timeout after 45s", "half")
            for text in ("!silent", "!stall"):
                request = await provider.request(text)
                await asyncio.wait_for(request.ended.wait(), 5)
                expect(request.end == "hung up", request)
            expect(len(provider.requests) == 2, "it was asked again")


async def without_a_key_nothing_is_asked(kind):
    async with Provider() as provider:
        async with gateway(None, config={"agent": agent(kind)}) as running:
            chat = await running.chat("hi")
            variable = f"{kind.upper()}_API_KEY"
            text = f"provider error: {kind} needs a key: set {variable}, or name a file with [agent] key_file"
            expect(chat.error == text, chat.frames)
            expect(not provider.requests, "the provider was asked")


async def the_key_of_the_environment_goes_first(kind):
    async with Provider() as provider:
        env = provider.env | {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
        async with gateway(None, config={"agent": agent(kind, api_key="wrong")}, **env) as running:
            replied(await running.chat("hi"))
        env |= {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": ""}
        async with gateway(None, config={"agent": agent(kind, api_key=KEY)}, **env) as running:
            replied(await running.chat("hi"))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "credentials" / f"{kind}.key"
            path.parent.mkdir()
            path.write_text(KEY + "\n")
            async with gateway(None, config={"agent": agent(kind)}, folder=folder, **env) as running:
                replied(await running.chat("hi"))
        provider.check()


# --- tools -------------------------------------------------------------------------------------


async def tools_are_used(_, running, provider):
    async with running.talk() as talk:
        chat = await talk.chat('!texttool echo {"message": "hi"}', peer="t")
        expect(events(chat) == ["text", "tool_use", "usage", "tool_result", "text", "usage", "done"], events(chat))
        expect(chat.text == "let me lookafter tool", chat.text)
        use = {"id": "call_1", "name": "echo", "input": {"message": "hi"}}
        expect(chat.data("tool_use") == [use], chat.data("tool_use"))
        result = {"tool_use_id": "call_1", "content": "hi", "is_error": False}
        expect(chat.data("tool_result") == [result], chat.data("tool_result"))
        expect(chat.tokens == 13 + 12, chat.data("usage"))
        # The follow-up has the text before the call.
        follow_up = provider.requests[-1]
        said = [text for role, text in follow_up.messages if role == "assistant"]
        expect(said == ["let me look"], follow_up.messages)
        offered = follow_up.body["tools"]
        names = [tool.get("name") or tool["function"]["name"] for tool in offered]
        expect(names == ["echo"], names)
        # Remembered are the words, not the calls.
        turns = await history(talk, peer="t")
        expect([role for role, _ in turns] == ["user", "assistant", "user"], turns)


async def a_wrong_call_is_an_error_for_the_model(_, running, provider):
    async with running.talk() as talk:
        chat = await talk.chat("!tools echo nope echo", peer="e")
        expect(chat.text == "after tool" and not chat.error, chat.frames)
        results = chat.data("tool_result")
        expect([result["tool_use_id"] for result in results] == ["call_1", "call_2", "call_3"], results)
        expect([result["is_error"] for result in results] == [False, True, False], results)
        expect(results[1]["content"] == "unknown tool: nope", results)
        chat = await talk.chat("!tool echo not json", peer="e2")
        expect(chat.text == "after tool" and chat.data("tool_use")[0]["input"] == {}, chat.frames)


async def tools_for_ever_are_stopped(_, running, provider):
    async with running.talk() as talk:
        chat = await talk.chat("!toolloop", peer="l")
        expect(chat.data("error") == ["tool-use loop exceeded max iterations"], chat.frames[-3:])
        expect(events(chat)[-2:] == ["error", "done"], events(chat))
        asked = [one for one in provider.requests if one.text == "!toolloop"]
        expect(len(asked) == 10, f"asked {len(asked)} times")
        replied(await talk.chat("hi", peer="l2"))


async def modules_may_fail():
    """Tools in WebAssembly that break down, run for ever and want everything."""
    with tempfile.TemporaryDirectory() as folder:
        made = plugins(Path(folder), ["echo", "failing", "trap", "spin", "hog"], timeout_seconds=1)
        missing = {"name": "gone", "path": "gone.wasm"}
        async with Provider() as provider:
            tables = {"agent": agent(), "plugins": [*made, missing]}
            async with gateway(provider, folder=folder, config=tables) as running:
                async with running.talk() as talk:
                    names = [plugin["name"] for plugin in await talk.result("plugin.list")]
                    expect(names == ["echo", "failing", "trap", "spin", "hog"], names)
                    expect(running.program.find("gone"), "no warning of a missing module")
                    chat = await talk.chat("!tools echo failing trap spin hog echo")
                    expect(chat.text == "after tool" and not chat.error, chat.frames)
                    results = chat.data("tool_result")
                    errors = [result["is_error"] for result in results]
                    expect(errors == [False, True, True, True, True, False], results)
                    said = [result["content"] for result in results]
                    expect(json.loads(said[0]) == {"message": "n1"}, said)
                    expect(said[1] == "no such file", said)
                    expect(said[2].startswith("tool execution failed: "), said)
                    expect(said[3] == "tool execution failed: timeout", said)
                    expect(said[4].startswith("tool execution failed: "), said)


FOR_EACH_PROVIDER = [
    answers_are_streamed,
    refusals_of_the_provider_are_told,
    an_overloaded_provider_is_asked_again,
    answers_that_break_off_are_errors,
    long_conversations_are_cut_with_a_notice,
    cut_answers_say_so,
    tools_are_used,
    a_wrong_call_is_an_error_for_the_model,
    tools_for_ever_are_stopped,
    odd_answers_are_understood,
    connections_to_the_provider_are_kept,
]
