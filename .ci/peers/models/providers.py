"""Our gateway with each provider of language models: answers, tools, failures, and providers that misbehave."""
# Needs: nothing.

import signal
import tempfile
from pathlib import Path

from gateways import ECHO, agent, failed, gateway, replied
from harness import expect, main, same, until
from provider import KEY, KINDS, UTF8, Provider
from sockets import Python

ERROR = "provider error: "

async def answers_are_streamed(kind, talk, provider):
    chat = await talk.start("!stall", peer="stream")
    same(await chat.event("text") or await chat.event("text"), "half", "the piece before the provider says more")
    request = await provider.request("!stall")
    same((request.kind, request.body["model"]), (kind, "stub"), "the request")
    request.go()
    replied(await chat.end(), "half done")
    for text, said, tokens in (
        ("hi", "Hello world", 2),
        ("!crlf", "Hello world", 2),
        ("!utf8", UTF8, 1),
        ("!burst 3000", "".join(f"c{number} " for number in range(3000)), 3000),
    ):
        replied(await talk.chat(text, peer=text), said, tokens)
    same((await talk.chat("!json", peer="at once")).text, "at once", "an answer that is no stream")

async def tools_are_used(_, talk, provider):
    asked = '!texttool echo {"message": "hi"}'
    chat = await talk.chat(asked, peer="tool")
    same(chat.events, ["text", "tool_use", "usage", "tool_result", "text", "text", "usage", "done"], "the events")
    same(chat.text, "let me look\n\nafter tool", "the text")
    same(chat.data("tool_use"), [{"id": "call_1", "name": "echo", "input": {"message": "hi"}}], "the call")
    same(chat.data("tool_result"), [{"tool_use_id": "call_1", "content": "hi", "is_error": False}], "the result")
    same([sum(usage.values()) for usage in chat.data("usage")], [13, 12], "the tokens")
    # The model is told what it said before the call, and offered the tool.
    follow_up = provider.asked(asked)[-1]
    same([text for role, text in follow_up.messages if role == "assistant"], ["let me look"], "the words of the model")
    same([tool.get("name") or tool["function"]["name"] for tool in follow_up.body["tools"]], ["echo"], "tools")
    # Remembered are the words, not the calls.
    same([role for role, _ in await talk.history(peer="tool")], ["user", "assistant"], "the history")

async def calls_are_told_apart(_, talk, provider):
    chat = await talk.chat("!tools echo nope echo", peer="wrong")
    same((chat.text, chat.error), ("after tool", ""), "the answer")
    found = [(it["tool_use_id"], it["content"], it["is_error"]) for it in chat.data("tool_result")]
    why = 'tool execution failed: there is no tool "nope"; there are: echo'
    same(found, [("call_1", "n1", False), ("call_2", why, True), ("call_3", "n3", False)], "the results")
    chat = await talk.chat("!tool echo not json", peer="no json")
    same((chat.text, chat.data("tool_use")[0]["input"]), ("after tool", {}), "a call with arguments that are none")
    chat = await talk.chat("!big echo 1000000", peer="big")
    expect(chat.data("tool_result")[0]["content"] == "x" * 1_000_000, "the result of a big call")

async def refusals_are_told_and_not_remembered(kind, talk, provider):
    for code in (400, 401, 403, 404, 413, 501):
        error = failed(await talk.chat(f"!http {code}", peer="refused"), ERROR)
        expect(f"(HTTP {code})" in error and f" says: stub says {code}" in error, error)
        same(len(provider.asked(f"!http {code}")), 1, f"requests after {code}")
    if kind != "ollama":
        # That one has no key that could be named.
        error = failed(await talk.chat("!leak 401", peer="refused"), ERROR)
        expect("refused the key (HTTP 401): check " in error, error)
    same(await talk.history(peer="refused"), [], "the history")

async def an_overloaded_provider_is_asked_again(_, talk, provider):
    replied(await talk.chat("!flaky 1", peer="flaky"))
    same(len(provider.asked("!flaky 1")), 2, "requests after one refusal")
    for code, what in ((529, " is overloaded"), (429, " limits the requests"), (502, " has failed")):
        error = failed(await talk.chat(f"!http {code}", peer="flaky"), ERROR)
        expect(f"{what} (HTTP {code}); try again later" in error, error)
        same(len(provider.asked(f"!http {code}")), 3, f"requests after {code}")

async def answers_that_break_off_are_errors(_, talk, provider):
    for how in ("!eof", "!cut", "!midstream"):
        failed(await talk.chat(how, peer=how), ERROR, "half")
        same(len(provider.asked(how)), 1, f"requests after {how}")
        # What came before the error was said, so that it is remembered.
        (asked, (role, said)) = await talk.history(peer=how)
        same((asked, role, said[:4]), (("user", how), "assistant", "half"), "the history")
    failed(await talk.chat("!garbage", peer="garbage"), ERROR)
    for how, why in (("!length", "cut at its length limit"), ("!refuse", "refuses to answer")):
        chat = await talk.chat(how, peer=how)
        expect(chat.text.startswith("half\n\n*") and why in chat.text and not chat.error, chat.text)

async def long_conversations_are_cut_with_a_notice(_, talk, provider):
    for number in range(3):
        replied(await talk.chat(f"{number} " + "long " * 50, peer="long"))
    chat = await talk.chat("!toolong", peer="long")
    notice, _, text = chat.text.partition("\n\n")
    expect(notice.startswith("*this conversation has grown too long for the model: "), notice)
    same((text, chat.error), ("Hello world", ""), "the answer")
    first, second = [len(request.messages) for request in provider.asked("!toolong")]
    expect(second < first, f"{first} messages, then {second}")
    # The notice is not remembered.
    same((await talk.history(peer="long"))[-1], ("assistant", "Hello world"), "the last turn")
    # Alone, nothing can be left out.
    error = failed(await talk.chat("!toolong twice", peer="alone"), f"{ERROR}the conversation is too long")
    expect("begin a new one, or lower [agent] context_tokens" in error, error)

async def connections_are_kept(_, talk, provider):
    used = set()

    async def is_used_again():
        replied(await talk.chat("hi", peer="kept"))
        connection = provider.asked("hi")[-1].connection
        was_used = connection in used
        used.add(connection)
        return was_used

    await until(is_used_again, "a second request on one connection")

async def a_silent_provider_is_given_up_with(kind, peer):
    config = {"agent": agent(kind, model_timeout="5s")}
    async with Provider() as provider, gateway(provider, config=config) as running, running.talk(peer) as talk:
        silent, stalled = await talk.start("!silent", peer="silent"), await talk.start("!stall", peer="stalled")
        failed(await silent.end(), f"{ERROR}request timed out")
        failed(await stalled.end(), f"{ERROR}stream idle timeout after 5s", "half")
        for text in ("!silent", "!stall"):
            await (await provider.request(text)).was_hung_up()
            same(len(provider.asked(text)), 1, f"requests after {text}")

async def a_key_is_looked_for_in_three_places(kind, peer):
    blank = {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": ""}
    places = (({}, {"api_key": "wrong"}, "wrong"), (blank, {"api_key": KEY}, "wrong"), (blank, {}, KEY))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"credentials/{kind}.key"
        file.parent.mkdir()
        for env, table, text in places:
            file.write_text(f"{text}\n")
            config = {"agent": agent(kind, **table)}
            async with Provider() as provider, gateway(provider, folder=folder, config=config, **env) as running:
                async with running.talk(peer) as talk:
                    replied(await talk.chat("hi"))

async def an_end_does_not_wait_for_a_provider_for_ever(peer):
    async with Provider() as provider, gateway(provider) as running, running.talk(peer) as talk:
        await (await talk.start("!stall")).event("text")
        same(await running.program.stop(signal.SIGTERM), 0, "the exit code")
        await (await provider.request("!stall")).was_hung_up()

CHECKS = (
    answers_are_streamed, tools_are_used, calls_are_told_apart, refusals_are_told_and_not_remembered,
    an_overloaded_provider_is_asked_again, answers_that_break_off_are_errors,
    long_conversations_are_cut_with_a_notice, connections_are_kept,
)

async def body(checks):
    async with Python() as peer:
        checks.beside(an_end_does_not_wait_for_a_provider_for_ever, peer)
        for kind in ("anthropic", "openai"):
            checks.beside(a_key_is_looked_for_in_three_places, kind, peer)
        for kind in KINDS:
            checks.beside(a_silent_provider_is_given_up_with, kind, peer)
        for kind in KINDS:
            config = {"agent": agent(kind), "plugins": [ECHO]}
            async with Provider() as provider, gateway(provider, config=config) as running, running.talk(peer) as talk:
                await checks.each(CHECKS, kind, talk, provider)
        await checks.finished()

main(body)
