"""Our clients in a page and in Node, compiled to WebAssembly: their lives, and the line that each of them has.

    async with Page() as line, served(.., "--allow-origin", line.url) as server:
        line.target = server.port
        await lives_in_node(line, "snek", "/rpc.ws")"""

import json
import mimetypes
import os
from pathlib import Path

from aiohttp import ClientSession
from harness import Front, expect, program, until

# Passes a word on. A computer sleeps like this: its clock jumps, and all timers that are due come before any message.
TELL = """
const [start, stop, now] = [setTimeout, clearTimeout, performance.now.bind(performance)];
const timers = new Map();
let slept = 0;
performance.now = () => now() + slept;
globalThis.setTimeout = (callback, delay) => {
  const timer = start(() => { timers.delete(timer); callback(); }, delay);
  timers.set(timer, [performance.now() + delay, callback]);
  return timer;
};
globalThis.clearTimeout = (timer) => { timers.delete(timer); stop(timer); };
const sleep = async () => {
  await null;
  slept += 300_000;
  for (const [timer, [at, callback]] of timers) {
    if (at < performance.now()) { clearTimeout(timer); callback(); }
  }
  await new Promise((then) => start(then));
};
const tell = async (word) => {
  if (word === "sleep") await sleep();
  return (await fetch(%s + word)).text();
};
"""
NODE = TELL + """
import init, { live } from %s;
import { readFileSync } from "node:fs";
await init({ module_or_path: readFileSync(%s) });
const life = live(%s, %s, tell);
console.log(await life.then(() => "well lived", (error) => `${error.stack}\\n${error}`));
process.exit();
"""
PAGE = "(async () => {" + TELL + """
  const { default: init, live } = await import("/pkg/switchboard_web.js");
  await init();
  await live(%s, %s, tell);
})()"""

class Page(Front):
    """A line to a server, which has the page of its clients, and does to itself what they tell it."""

    def __init__(self, input=None):
        super().__init__(None)
        # Where a router takes messages.
        self.input = input
        self.folder = Path(os.environ["WEB"])
        self.busy = set()

    async def answer(self, path, is_upgrade):
        file = self.folder / path[1:]
        if path.startswith("/line/"):
            return "text/plain", (await self.told(path[6:])).encode()
        if path == "/" and not is_upgrade:
            return "text/html", b"<!doctype html><title>Lives</title><link rel=icon href=data:,>"
        return (mimetypes.guess_type(path)[0], file.read_bytes()) if file.is_file() else None

    async def told(self, word):
        if word == "ask":
            async with ClientSession() as user, user.post(self.input, json={"text": "page: milk", "wait": True}) as answer:
                return await answer.text()
        if word == "hangs-up":
            self.busy = set(self.transports)
        if word == "hung-up":
            await until(lambda: self.busy - self.transports, "the end of a request")
        {"hold": self.flows.clear, "release": self.flows.set, "sleep": self.flows.set, "drop": self.drop}.get(word, str)()
        return ""

async def lives_in_node(line, life, path):
    module = line.folder / "pkg/switchboard_web"
    words = (f"{line.url}/line/", module.with_suffix(".js").as_uri(), f"{module}_bg.wasm", life, line.url + path)
    # Node 20 has a WebSocket behind this option, and later ones anyway.
    script = NODE % tuple(map(json.dumps, words))
    async with program("node", "--experimental-websocket", "--input-type=module", "--eval", script) as node:
        await node.end()
        expect(node.find("well lived"), f"Node says {node.tail()}")

async def lives_in_a_page(line, life, path, chromium):
    async with chromium.page(line.url) as page:
        await page.run(PAGE % tuple(map(json.dumps, ("/line/", life, line.url + path))))
        # What the browser says of lines that were cut and refused.
        page.problems = [it for it in page.problems if "WebSocket" not in it and "Failed to load" not in it]
