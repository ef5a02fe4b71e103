"""What clients once said to the known gateway, said again to ours, and the answers compared.

Each recording is a list of frames with their direction. Frames of the server are compared one by one
in the order of their request, and must be equal as JSON but for the differences in `ALLOWED`, each of
which must be met at least once.
"""

import asyncio
import json
import re
import tempfile
from pathlib import Path

from common import Checks, expect
from exoclaw import TOKEN, agent, gateway
from provider import Provider
from wat import plugins
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

# The crate replays the same ones.
RECORDINGS = Path(__file__).parents[2] / "exoclaw-proto/tests/transcripts"
# The plugins of the recorded gateway. Two of them took messages by HTTP, which no recording shows.
PLUGINS = ["failing", "echo", "spin", "mute", "hookproxy", "hook", "trap"]


class Difference:
    """A difference that is meant. `change` takes the request's text and a recorded frame, and returns
    what is expected in its place, or the frame itself."""

    def __init__(self, why, change):
        self.why, self.change, self.met = why, change, 0


class Text(str):
    """A text of which only the beginning is known, and perhaps a part."""

    def __new__(cls, start, part=""):
        text = super().__new__(cls, start)
        text.part = part
        return text

    def __eq__(self, other):
        return isinstance(other, str) and other.startswith(str(self)) and self.part in other

    __hash__ = str.__hash__


class Json(str):
    """A text that is JSON, however it is spaced."""

    def __eq__(self, other):
        return isinstance(other, str) and json.loads(other) == json.loads(str(self))

    __hash__ = str.__hash__


def own_id(request):
    """The id of a request that is JSON, as it comes back."""
    try:
        id = json.loads(request)["id"]
    except (ValueError, TypeError, KeyError):
        return "0"
    return id if isinstance(id, str) else "0"


def parse_error(request, frame):
    if not str(frame.get("error", "")).startswith("parse error: "):
        return frame
    return {"id": own_id(request), "error": Text("parse error: ")}


def budget(request, frame):
    if not re.search(r"\(session:\S+: ", str(frame.get("error", ""))):
        return frame
    return frame | {"error": re.sub(r"\(session:\S+: ", "(session: ", frame["error"])}


def provider_error(request, frame):
    found = re.match(r"\d{3} ", str(frame.get("data"))) if frame.get("event") == "error" else None
    return frame | {"data": Text("provider error: ", f"(HTTP {found[0].strip()})")} if found else frame


def broken_off(request, frame):
    if '"!eof"' not in request or frame.get("event") != "usage":
        return frame
    return {"id": frame["id"], "event": "error", "data": Text("provider error: ")}


def plugin_order(request, frame):
    if not isinstance(frame.get("result"), list):
        return frame
    return frame | {"result": [{"name": name} for name in PLUGINS]}


def tool_input(request, frame):
    if frame.get("event") != "tool_result" or not frame["data"]["content"].startswith("{"):
        return frame
    return frame | {"data": frame["data"] | {"content": Json(frame["data"]["content"])}}


def refusal(request, frame):
    return {"close": 4001} if frame == {"close": None} else frame


def goodbye(request, frame):
    return {"close": 1000} if frame == {"close": "none"} else frame


ALLOWED = [
    Difference("the reason of a parse error is ours, and its id the request's where it has one", parse_error),
    Difference("a budget error does not name the agent", budget),
    Difference("an error of the provider says that it is one, and the rest in our words", provider_error),
    Difference("an answer that breaks off is an error, not a whole one", broken_off),
    Difference("a tool gets its input as the model has spaced it, and the recorded tool repeats it", tool_input),
    Difference("plugins are listed in the order of the configuration", plugin_order),
    Difference("the refusal of a token closes with a code", refusal),
    Difference("a close frame is answered with one", goodbye),
]
# Beyond these: frames of different requests may come in another order. The recorded gateway did one
# thing at a time.


def expected(request, frame):
    for difference in ALLOWED:
        changed = difference.change(request, frame)
        difference.met += changed is not frame
        frame = changed
    return frame


class Answers:
    """The frames that answer one text of a client. The first one has no text: it is the greeting."""

    def __init__(self, request):
        self.request, self.frames = request, []
        self.over = asyncio.Event()
        try:
            parsed = json.loads(request)
            self.id = parsed.get("id") if isinstance(parsed, dict) else None
        except ValueError:
            self.id = None


class Sorter:
    """Puts frames to the texts that they answer: by id, else to the first that has no answer yet."""

    def __init__(self):
        self.all = [Answers("")]

    def asked(self, text):
        self.all.append(Answers(text))

    def came(self, frame):
        waiting = [one for one in self.all[1:] if not one.over.is_set()]
        named = [one for one in waiting if one.id is not None and one.id == frame.get("id")]
        answers = (named or waiting or self.all)[0]
        answers.frames.append(frame)
        if frame.get("event") in (None, "done"):
            answers.over.set()
        return answers


class Line:
    """One connection, as recorded and again."""

    def __init__(self):
        self.recorded, self.again = Sorter(), Sorter()
        self.socket = self.reader = None
        self.closes = []

    async def open(self, url):
        self.socket = await connect(url, max_size=None, proxy=None)
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        try:
            while True:
                self.again.came(json.loads(await self.socket.recv()))
        except ConnectionClosed:
            self.closes.append({"close": self.socket.close_code})

    async def settled(self):
        """Waits until everything that was over in the recording by now is over again."""
        for number, answers in enumerate(self.recorded.all):
            if answers.over.is_set():
                waiting = asyncio.create_task(self.again.all[number].over.wait())
                await asyncio.wait({waiting, self.reader}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()

    def compare(self):
        for was, now in zip(self.recorded.all, self.again.all, strict=True):
            frames = [expected(was.request, frame) for frame in was.frames]
            # On the left, because a text of which the beginning is known decides.
            expect(frames == now.frames, f"{was.request!r}: {now.frames} instead of {frames}")


async def step(event, lines, url):
    """One line of a recording."""
    what = event["dir"], event["kind"]
    if what[0] == "note":
        if what[1] == "silence":
            await asyncio.sleep(0.3)
        return
    line = lines.setdefault(event["conn"], Line())
    if what == ("c2s", "open"):
        await line.open(url)
    elif what == ("c2s", "text"):
        # Nothing has come that had not come in the recording.
        await line.settled()
        line.recorded.asked(event["data"])
        line.again.asked(event["data"])
        await line.socket.send(event["data"])
    elif what == ("s2c", "text"):
        line.recorded.came(json.loads(event["data"]))
    elif what == ("c2s", "close"):
        await line.settled()
        await line.socket.close(event["code"])
    elif what == ("s2c", "close"):
        line.recorded.close = {"close": event["code"]}
    elif what == ("s2c", "eof"):
        # Without a close frame, so far.
        close = getattr(line.recorded, "close", {"close": "none"})
        await line.reader
        now, was = line.closes, [expected("", close)]
        expect(was == now, f"closed with {now} instead of {was}")
        line.compare()
    else:
        expect(what == ("s2c", "http"), f"an unknown line: {event}")


def setting(name, folder):
    """The configuration of a recording, and arguments."""
    tables = {"agent": agent("openai" if name.startswith("openai") else "anthropic")}
    if name.startswith("budget"):
        tables["budgets"] = {"session": 40, "daily": 60}
    if name.removeprefix("loopback.") in ("plugin_list", "status", "tool_use"):
        tables["plugins"] = plugins(folder, PLUGINS)
    return tables, ["--token", TOKEN] * name.startswith("loopback-token")


async def replay(path):
    events = [json.loads(line) for line in path.read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        tables, args = setting(path.stem, Path(folder))
        async with Provider() as provider:
            async with gateway(provider, *args, folder=folder, config=tables) as running:
                lines = {}
                for event in events:
                    await step(event, lines, running.url)
                expect(all(line.reader.done() for line in lines.values()), "a line is open")


async def every_difference_is_met():
    unmet = [difference.why for difference in ALLOWED if not difference.met]
    expect(not unmet, f"never met: {unmet}")


async def main():
    checks = Checks()
    recordings = sorted(RECORDINGS.glob("*.jsonl"))
    expect(len(recordings) == 14, f"{len(recordings)} recordings")
    for path in recordings:
        await checks.run(f"replay: {path.stem.replace('_', ' ')}", replay(path))
    await checks.run("replay: every difference is met", every_difference_is_met())
    checks.finish()


asyncio.run(main())
