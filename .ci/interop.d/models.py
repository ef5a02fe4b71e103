"""Our bot with a language model: a provider in Python that streams, and then misbehaves."""

import asyncio
import base64
import contextlib
import json

from aiohttp import web
from common import Checks, expect
from fake import Fake, bot_at, chat

KEY = "sk-hunter2"
SORRY = {
    "broken off": "sorry, I lost my thread; please ask again",
    "later": "sorry, I cannot think right now; please try again later",
}
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="
)


def words(*texts, finish="stop"):
    """The events of an answer in words."""
    events = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}]
    events += [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    if finish:
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return events


def encode(events, done=True):
    text = "".join(f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events)
    return (text + "data: [DONE]\n\n" * done).encode()


class Provider:
    """Answers each request with the next of its behaviours, which are coroutines."""

    def __init__(self, *behaviours):
        self.behaviours = list(behaviours)
        self.requests = []
        self.images = 0

    async def on_request(self, request):
        expect(request.headers["authorization"] == f"Bearer {KEY}", "wrong key")
        body = await request.json()
        expect(body["model"] == "toy" and body["stream"] is True, body)
        self.requests.append(body)
        return await self.behaviours.pop(0)(request)

    async def on_image(self, request):
        self.images += 1
        return web.Response(body=DOT, content_type="text/plain")

    def messages(self):
        """The conversation of the last request."""
        return self.requests[-1]["messages"]


async def begin(request):
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    return response


def streams(data, size=None, pause=0.0):
    """Streams these bytes in chunks of this size."""

    async def behaviour(request):
        response = await begin(request)
        step = size or len(data)
        for start in range(0, len(data), step):
            await response.write(data[start : start + step])
            await asyncio.sleep(pause)
        return response

    return behaviour


def breaks(data):
    """Streams these bytes and cuts the line."""

    async def behaviour(request):
        response = await begin(request)
        await response.write(data)
        await asyncio.sleep(0.05)
        request.transport.abort()
        return response

    return behaviour


def hangs(data=b""):
    """Streams these bytes and is silent."""

    async def behaviour(request):
        response = await begin(request)
        await response.write(data)
        await asyncio.sleep(20)
        return response

    return behaviour


def refuses(status, message, **headers):
    async def behaviour(request):
        body = {"error": {"message": message, "type": "toy"}}
        return web.json_response(body, status=status, headers=headers)

    return behaviour


@contextlib.asynccontextmanager
async def talking(*behaviours, args=()):
    """The provider, the chat server, and the bot between them."""
    provider, fake = Provider(*behaviours), Fake()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", provider.on_request)
    app.router.add_get("/{name}.png", provider.on_image)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        provider.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        model = ["--provider", "openai", "--base-url", provider.url, "--model", "toy"]
        async with bot_at(fake, *model, *args, OPENAI_API_KEY=KEY) as bot:
            line = await fake.opened.get()
            fake.line = line

            async def ask(text):
                await line.send(chat(text))
                return await whole(fake)

            yield ask, provider, fake, bot
            leaked = [line for line in bot.lines if KEY in line]
            expect(not leaked, f"the key was shown: {leaked}")
    finally:
        await runner.cleanup()


async def whole(fake):
    """Reads an answer: parts that only grow, then the whole."""
    parts = []
    while True:
        (_, text, is_final), _, _ = await fake.sent.get()
        if is_final:
            expect(all(text.startswith(part) for part in parts), f"{parts} before {text!r}")
            expect(parts == sorted(parts, key=len), parts)
            return text, len(parts)
        parts.append(text)


async def streams_an_answer():
    async with talking(streams(encode(words("grüß ", "dich, ", "Ann")), 20, 0.01)) as (ask, provider, fake, _):
        text, parts = await ask("hallo")
        expect(text == "grüß dich, Ann", text)
        expect(parts > 1, "nothing was streamed")
        expect("set_typing" in fake.log, fake.log)
        roles = [message["role"] for message in provider.messages()]
        expect(roles == ["system", "user"], roles)
        expect(provider.messages()[1]["content"] == "Ann: hallo", provider.messages())
        names = {tool["function"]["name"] for tool in provider.requests[0]["tools"]}
        expect(names == {"search", "time", "dice"}, names)


async def survives_any_chunks():
    answers = [streams(encode(words("grüß ", "dich")), size) for size in (1, 3)]
    async with talking(*answers) as (ask, _, _, _):
        for _ in range(2):
            expect((await ask("hallo"))[0] == "grüß dich", "wrong answer")


async def runs_tools_whose_arguments_come_in_pieces():
    arguments = {"dice": '{"dice": "3d1000"}', "search": '{"query": "größe"}'}
    events = []
    for index, name in enumerate(arguments):
        call = {"index": index, "id": f"c{index}", "type": "function"}
        call["function"] = {"name": name, "arguments": ""}
        events.append({"choices": [{"delta": {"tool_calls": [call]}}]})
    for at in range(20):
        for index, text in enumerate(arguments.values()):
            call = {"index": index, "function": {"arguments": text[at : at + 1]}}
            events.append({"choices": [{"delta": {"tool_calls": [call]}}]})
    events.append({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    answers = [streams(encode(events), 7), streams(encode(words("thrown")))]
    async with talking(streams(encode(words("ok"))), *answers) as (ask, provider, _, _):
        await ask("die größe?")
        expect((await ask("dice!"))[0] == "thrown", "wrong answer")
        *_, asked, dice, search = provider.messages()
        given = [call["function"]["arguments"] for call in asked["tool_calls"]]
        expect(given == list(arguments.values()), given)
        expect([dice["tool_call_id"], search["tool_call_id"]] == ["c0", "c1"], "wrong ids")
        expect(dice["role"] == "tool" and " makes " in dice["content"], dice)
        expect(json.loads(search["content"]) == {"found": ["Ann: die größe?"]}, search)


async def asks_again_when_told_to_wait():
    busy = refuses(429, "slow down", **{"retry-after": "0"})
    async with talking(busy, busy, streams(encode(words("at last")))) as (ask, provider, _, _):
        expect((await ask("?"))[0] == "at last", "wrong answer")
        expect(len(provider.requests) == 3, provider.requests)


async def gives_up_after_three_failures():
    down = refuses(503, f"down, says {KEY}", **{"retry-after": "0"})
    async with talking(down, down, down, streams(encode(words("up")))) as (ask, provider, _, bot):
        expect((await ask("?"))[0] == SORRY["later"], "wrong answer")
        line = await bot.line_with("OpenAI has failed (HTTP 503); try again later. OpenAI says: ")
        expect("down, says ***" in line and "{" not in line, line)
        expect(len(provider.requests) == 3, provider.requests)
        expect((await ask("?"))[0] == "up", "wrong answer")


async def says_so_when_the_answer_breaks_off():
    start = encode(words("so far", finish=None), done=False)
    error = encode(words("so far", finish=None) + [{"error": {"message": "toy overload"}}])
    for behaviour in (breaks(start), streams(start), streams(error)):
        again = streams(encode(words("again")))
        async with talking(behaviour, again) as (ask, provider, _, _):
            text, _ = await ask("?")
            expect(text == f"so far\n\n{SORRY['broken off']}", text)
            expect(len(provider.requests) == 1, "it was asked again")
            expect((await ask("?"))[0] == "again", "wrong answer")


async def needs_no_end_mark():
    data = encode(words("all said"), done=False)
    async with talking(streams(data), breaks(data), hangs(data)) as (ask, _, _, _):
        for _ in range(3):
            expect((await ask("?"))[0] == "all said", "wrong answer")


async def gives_a_silent_provider_up():
    args = ["--model-timeout", "300ms"]
    behaviours = [hangs(), hangs(encode(words("well", finish=None), done=False))]
    async with talking(*behaviours, args=args) as (ask, _, _, bot):
        expect((await ask("?"))[0] == SORRY["later"], "wrong answer")
        expect((await ask("?"))[0] == f"well\n\n{SORRY['later']}", "wrong answer")
        await bot.line_with("stream idle timeout after 300ms")


async def ends_an_answer_when_it_is_ended():
    start = encode(words("so far", finish=None), done=False)
    async with talking(hangs(start)) as (_, _, fake, bot):
        await fake.line.send(chat("?"))
        (_, text, is_final), _, _ = await fake.sent.get()
        expect((text, is_final) == ("so far", False), text)
        bot.process.terminate()
        text, _ = await whole(fake)
        expect(text == "so far\n\n(interrupted)", text)
        expect(await bot.end() == 0, "wrong exit code")


async def survives_garbage():
    behaviours = [
        streams(b"data: {\"choices\": 7}\n\n"),
        streams(b"data: nonsense\n\n"),
        streams(b"data: " + b"x" * 3_000_000),
        streams(b"<html>no model here</html>"),
    ]
    async with talking(*behaviours, streams(encode(words("fine")))) as (ask, _, _, _):
        for _ in range(4):
            text, _ = await ask("?")
            expect(text in SORRY.values(), text)
        expect((await ask("?"))[0] == "fine", "wrong answer")


async def takes_an_answer_that_is_not_streamed():
    async def plain(request):
        message = {"role": "assistant", "content": "at once"}
        return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}]})

    async with talking(plain) as (ask, _, _, _):
        expect((await ask("?"))[0] == "at once", "wrong answer")


async def shows_images():
    data = "data:image/png;base64," + base64.b64encode(DOT).decode()
    answer = streams(encode(words("a dot")))
    allowed = ["--allow-private-images"]
    async with talking(answer, args=allowed) as (ask, provider, _, _):
        await ask(f"what is {provider.url}/dot.png ?")
        text, image = provider.messages()[-1]["content"]
        expect("http" not in text["text"] and text["text"].startswith("Ann: what is"), text)
        expect(image == {"type": "image_url", "image_url": {"url": data}}, image)
    async with talking(answer, args=[*allowed, "--image-format", "deepseek"]) as (ask, provider, _, _):
        await ask(f"what is {provider.url}/dot.png ?")
        (block,) = provider.messages()[-1]["content"]
        expect(block["text"] == f"Ann: what is [image: {data}] ?", block)
    async with talking(answer) as (ask, provider, _, _):
        await ask(f"what is {provider.url}/dot.png ?")
        expect(provider.images == 0, "an address of this machine was asked")
        expect(f"{provider.url}/dot.png" in provider.messages()[-1]["content"], "no address left")


CHECKS = {
    "streams an answer": streams_an_answer,
    "survives any chunks": survives_any_chunks,
    "runs tools whose arguments come in pieces": runs_tools_whose_arguments_come_in_pieces,
    "asks again when told to wait": asks_again_when_told_to_wait,
    "gives up after three failures": gives_up_after_three_failures,
    "says so when the answer breaks off": says_so_when_the_answer_breaks_off,
    "needs no end mark": needs_no_end_mark,
    "gives a silent provider up": gives_a_silent_provider_up,
    "ends an answer when it is ended": ends_an_answer_when_it_is_ended,
    "survives garbage": survives_garbage,
    "takes an answer that is not streamed": takes_an_answer_that_is_not_streamed,
    "shows images": shows_images,
}


async def main():
    checks = Checks()
    for name, check in CHECKS.items():
        await checks.run(name, check())
    checks.finish()


asyncio.run(main())
