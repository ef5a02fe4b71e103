"""What clients once said to the known gateway is said again to ours, and the answers are compared.

Frames of the server must be equal as JSON, in the order of their request, but for the differences below, each of which
must be met. Frames of different requests may come in another order: the recorded gateway did one thing at a time."""
# Needs: nothing.

import collections
import json
import re
import tempfile
from pathlib import Path

from gateways import TOKEN, agent, gateway
from harness import expect, json_lines, main, same
from provider import Provider
from sockets import Python
from wat import plugins

# The crate replays the same ones to its client.
RECORDINGS = Path(__file__).parents[3] / "exoclaw-proto/tests/transcripts"
PLUGINS = ["failing", "echo", "spin", "mute", "hookproxy", "hook", "trap"]
PARSE_ERROR = "parse error: "
PROVIDER_ERROR = "provider error: "

def own_id(asked):
    """The id of a request, as it comes back."""
    try:
        found = json.loads(asked)["id"]
    except (ValueError, TypeError, KeyError):
        return "0"
    return found if isinstance(found, str) else "0"

def a_parse_error_has_our_reason_and_the_id_of_its_request_if_there_is_one(asked, was, now):
    is_one = str(was.get("error")).startswith(PARSE_ERROR) and str(now.get("error")).startswith(PARSE_ERROR)
    return is_one and now == {"id": own_id(asked), "error": now["error"]}

def a_budget_error_does_not_name_the_agent_and_says_what_was_estimated(asked, was, now):
    told = str(now.get("error")).split("; estimates count too")[0]
    return now | {"error": told} == was | {"error": re.sub(r"\(session:\S+: ", "(session: ", str(was.get("error")))}

def an_error_of_the_provider_says_that_it_is_one_and_the_rest_in_our_words(asked, was, now):
    status = re.match(r"\d{3} ", str(was.get("data")))
    said = str(now.get("data"))
    is_one = was.get("event") == "error" and status and said.startswith(PROVIDER_ERROR)
    return is_one and f"(HTTP {status[0].strip()})" in said and now == was | {"data": said}

def an_answer_that_breaks_off_is_an_error_and_not_a_whole_one(asked, was, now):
    is_cut = '"!eof"' in asked and was.get("event") == "usage" and now["event"] == "error"
    return is_cut and now["id"] == was["id"] and now["data"].startswith(PROVIDER_ERROR)

def the_sessions_of_a_status_are_counted_each_ten_seconds(asked, was, now):
    is_one = "sessions" in (was.get("result") or ()) and now["result"]["sessions"] < was["result"]["sessions"]
    return is_one and now == was | {"result": was["result"] | {"sessions": now["result"]["sessions"]}}

def the_refusal_of_a_token_closes_with_a_code(asked, was, now):
    return (was, now) == ({"close": "no code"}, {"close": 4001})

def a_close_frame_is_answered_with_one(asked, was, now):
    return (was, now) == ({"close": "no frame"}, {"close": 1000})

DIFFERENCES = [
    a_parse_error_has_our_reason_and_the_id_of_its_request_if_there_is_one,
    a_budget_error_does_not_name_the_agent_and_says_what_was_estimated,
    an_error_of_the_provider_says_that_it_is_one_and_the_rest_in_our_words,
    an_answer_that_breaks_off_is_an_error_and_not_a_whole_one,
    the_sessions_of_a_status_are_counted_each_ten_seconds,
    the_refusal_of_a_token_closes_with_a_code,
    a_close_frame_is_answered_with_one,
]

class Line:
    """One connection. `asked` is the last text of the client, `close` how the recorded gateway has closed."""

    def __init__(self, socket, met):
        self.socket, self.met = socket, met
        self.asked, self.close = "", "no frame"
        # The text of each answer, which may come in fewer pieces.
        self.texts = collections.defaultdict(str)

    def compare(self, was, now):
        found = [difference for difference in DIFFERENCES if was != now and difference(self.asked, was, now)]
        expect(found or was == now, f"{self.asked!r}: {now} instead of {was}")
        self.met.update(found)

    async def step(self, kind, event):
        if kind == ("c2s", "text"):
            self.asked = event["data"].replace('"correct-horse"', f'"{TOKEN}"')
            await self.socket.send(self.asked)
        elif kind == ("s2c", "text") and (was := json.loads(event["data"])).get("event") == "text":
            self.texts[was["id"]] += was["data"]
        elif kind == ("s2c", "text"):
            ids = {was.get("id")}
            if str(was.get("error")).startswith(PARSE_ERROR):
                ids.add(own_id(self.asked))
            text = ""
            while (now := await self.socket.next(lambda frame: frame.get("id") in ids, event["data"])).get("event") == "text":
                text += now["data"]
            # Behind a call it begins a paragraph.
            same(text.lstrip("\n"), self.texts.pop(was.get("id"), ""), "the text before it")
            self.compare(was, now)
        elif kind == ("note", "silence"):
            # Nothing has come, also when a ping is answered.
            await self.socket.ping()
            same(self.socket.frames.items, [], "frames in the silence")
        elif kind == ("c2s", "close"):
            await self.socket.close(event["code"])
        elif kind == ("s2c", "close"):
            self.close = event["code"] or "no code"
        elif kind == ("s2c", "eof"):
            self.compare({"close": self.close}, {"close": (await self.socket.closed())[0]})
            same(self.socket.frames.items, [], "frames that nobody has recorded")
        else:
            expect(kind == ("s2c", "http"), f"an unknown line: {event}")

def setting(name, folder):
    """The configuration of a recording, and arguments."""
    tables = {"agent": agent("openai" if name.startswith("openai") else "anthropic")}
    if name.startswith("budget"):
        tables["budgets"] = {"session": 40, "daily": 60}
    if name.removeprefix("loopback.") in ("plugin_list", "status", "tool_use"):
        tables["plugins"] = plugins(folder, PLUGINS)
    return tables, ["--token", TOKEN] if name.startswith("loopback-token") else []

async def replay(file, met):
    path = Path(file)
    with tempfile.TemporaryDirectory() as folder:
        tables, args = setting(path.stem, Path(folder))
        async with Provider() as provider, Python() as peer:
            async with gateway(provider, *args, folder=folder, config=tables) as running:
                lines = {}
                for event in json_lines(path.read_text()):
                    kind = event["dir"], event["kind"]
                    if kind == ("c2s", "open"):
                        lines[event["conn"]] = Line(await peer.connect(running.url), met)
                    elif kind != ("note", "note"):
                        await lines[event["conn"]].step(kind, event)
                expect(all(line.socket.end.done() for line in lines.values()), "a line is open")

async def every_difference_is_met(met):
    same([difference.__name__ for difference in DIFFERENCES if difference not in met], [], "never met")

async def body(checks):
    recordings = sorted(RECORDINGS.glob("*.jsonl"))
    same(len(recordings), 14, "recordings")
    met = set()
    for path in recordings:
        await checks.run(replay, str(path), met, name=f"replay of {path.stem}")
    await checks.run(every_difference_is_met, met)

main(body)
