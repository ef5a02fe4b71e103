"""Our bot with a language model: it streams, uses tools, shows images, and bears with a provider that misbehaves."""

# Needs: nothing.

import base64
import contextlib
import json
import signal

from fakesnek import Fake, bot_at, message
from harness import expect, main, same
from provider import DOT, KEY, Provider

LATER = "sorry, I cannot think right now; please try again later"
BROKEN_OFF = "sorry, I lost my thread; please ask again"


class Talk:
    """The chat server with the bot and its provider."""

    def __init__(self, bot, fake, guest, provider):
        self.bot, self.fake, self.guest, self.provider = bot, fake, guest, provider

    async def say(self, text):
        await self.guest.send(message(text))

    async def ask(self, text):
        await self.say(text)
        return await self.answer()

    async def answer(self):
        """Reads an answer: parts that only grow, then the whole."""
        part = ""
        while True:
            text, is_final = await self.fake.post()
            expect(text.startswith(part), f"{text!r} behind {part!r}")
            if is_final:
                return text
            part = text

    def results(self):
        """What tools have told the model."""
        return [told["content"] for told in self.provider.requests[-1].body["messages"] if told["role"] == "tool"]


@contextlib.asynccontextmanager
async def talking(*args):
    fake = Fake()
    async with Provider() as provider:
        model = ("--provider", "openai", "--base-url", provider.url, "--model", "toy")
        async with bot_at(fake, *model, *args, OPENAI_API_KEY=KEY) as running:
            yield Talk(running, fake, await fake.guest(), provider)
            shown = [line for line in running.lines if KEY in line or "panicked" in line]
            expect(not shown, f"the bot has said {shown}")
        provider.check()


async def an_answer_is_streamed():
    async with talking() as talk:
        await talk.say("!stall")
        # The provider has not said more yet.
        same(await talk.fake.post(), ("half", False), "the first part")
        expect("set_typing" in talk.fake.log, talk.fake.log)
        request = await talk.provider.request("Ann: !stall")
        same((request.body["model"], request.messages), ("toy", [("user", "Ann: !stall")]), "the request")
        expect(request.system, "no instructions")
        same({tool["function"]["name"] for tool in request.body["tools"]}, {"search", "time", "dice"}, "the tools")
        request.go()
        same(await talk.answer(), "half done", "the answer")


async def tools_are_run():
    async with talking() as talk:
        same(await talk.ask("die größe?"), "Hello world", "the answer")
        same(await talk.ask('!tool dice {"dice": "3d1000"}'), "after tool", "the answer after a tool")
        expect(" makes " in talk.results()[-1], talk.results())
        same(await talk.ask('!tool search {"query": "größe"}'), "after tool", "the answer after a tool")
        expect("Ann: die größe?" in json.loads(talk.results()[-1])["found"], talk.results())


async def answers_that_are_none_are_told():
    async with talking() as talk:
        for how in ("!cut", "!eof", "!midstream"):
            same(await talk.ask(how), f"half\n\n{BROKEN_OFF}", f"the answer to {how}")
            same(len(talk.provider.asked(f"Ann: {how}")), 1, f"requests for {how}")
            same(await talk.ask("hi"), "Hello world", f"the answer after {how}")
        same(await talk.ask("!garbage"), LATER, "the answer to garbage")
        same(await talk.ask("!json"), "at once", "the answer that is no stream")


async def a_silent_provider_is_given_up():
    async with talking("--model-timeout", "5s") as talk:
        same(await talk.ask("!silent"), LATER, "the answer")
        same(await talk.ask("!stall"), f"half\n\n{LATER}", "the answer")
        await talk.bot.line("stream idle timeout after 5s")


async def an_answer_is_ended_with_the_bot():
    async with talking() as talk:
        await talk.say("!stall")
        same(await talk.fake.post(), ("half", False), "the first part")
        talk.bot.signal(signal.SIGTERM)
        same(await talk.answer(), "half\n\n(interrupted)", "the answer")
        same(await talk.bot.end(), 0, "the exit code")


async def images_are_shown():
    data = "data:image/png;base64," + base64.b64encode(DOT).decode()
    picture = {"type": "image_url", "image_url": {"url": data}}
    text = {"type": "text", "text": f"Ann: what is [image: {data}] ?"}
    for args, expected in ((["--image-format", "deepseek"], [text]), ([], [picture])):
        async with talking("--allow-private-images", *args) as talk:
            await talk.ask(f"what is {talk.provider.url}/dot.png ?")
            content = talk.provider.requests[-1].body["messages"][-1]["content"]
            same(content[-1:], expected, "the image")
            expect(content[0]["text"].startswith("Ann: what is ") and "http" not in content[0]["text"], content[0])
    async with talking() as talk:
        await talk.ask(f"what is {talk.provider.url}/dot.png ?")
        same(talk.provider.images, 0, "requests to this machine")
        said = talk.provider.requests[-1].body["messages"][-1]["content"]
        expect(f"{talk.provider.url}/dot.png" in said, said)


async def body(checks):
    for check in (
        an_answer_is_streamed, tools_are_run, answers_that_are_none_are_told, a_silent_provider_is_given_up,
        an_answer_is_ended_with_the_bot, images_are_shown,
    ):
        checks.beside(check)


main(body)
