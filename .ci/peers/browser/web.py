"""Our clients in a page and in Node, compiled to WebAssembly: each talks, waits too long, loses its line, reconnects
and leaves."""

# Needs: node, browser, web.

import asyncio
import json
import os
from pathlib import Path

from aiohttp import web
from chrome import browser
from gateways import TOKEN, gateway
from harness import Proxy, expect, main, program, served
from provider import Provider

FOLDER = Path(os.environ["WEB"])
NODE = """
import init, * as lives from %s;
import { readFileSync } from "node:fs";
await init({ module_or_path: readFileSync(%s) });
await lives[%s](%s, async (word) => { await fetch(%s + word); });
console.log("well lived");
process.exit(0);
"""
PAGE = """(async () => {
  const lives = await import("/switchboard_web.js");
  await lives.default();
  await lives[%s](%s, async (word) => { await fetch(%s + word); });
  return "well lived";
})()"""


CHAT = """(async () => {
  const { default: init, Chat } = await import("/switchboard_web.js");
  await init();
  const chat = await Chat.connect(%s, %s);
  let answer = "";
  await chat.ask("hi", (piece) => { answer += piece; });
  return answer;
})()"""
GUIDE = Path(__file__).resolve().parents[3]


class Site:
    """Serves the module, and does to lines what a page tells it."""

    def __init__(self):
        self.lines = {}

    async def __aenter__(self):
        site = web.Application()
        site.router.add_get("/", lambda _: web.Response(text="<!doctype html><title>Lives</title>", content_type="text/html"))
        site.router.add_get("/favicon.ico", lambda _: web.Response())
        site.router.add_get("/line/{name}/{word}", self.told)
        site.router.add_static("/", FOLDER)
        self.runner = web.AppRunner(site)
        await self.runner.setup()
        socket = web.TCPSite(self.runner, "127.0.0.1", 0)
        await socket.start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_):
        await self.runner.cleanup()

    async def told(self, request):
        line, word = self.lines[request.match_info["name"]], request.match_info["word"]
        {"hold": line.flows.clear, "release": line.flows.set, "drop": line.drop}[word]()
        return web.Response()


async def lives_in_node(site, life, port, path):
    async with Proxy(port) as line:
        site.lines[f"node-{life}"] = line
        module = FOLDER / "switchboard_web"
        words = (module.with_suffix(".js").as_uri(), f"{module}_bg.wasm", life, f"ws://127.0.0.1:{line.port}{path}",
                 f"{site.url}/line/node-{life}/")
        script = NODE % tuple(map(json.dumps, words))
        # Node 20 has a WebSocket behind this option, and later ones anyway.
        async with program("node", "--experimental-websocket", "--input-type=module", "--eval", script) as node:
            await node.end()
            expect(node.find("well lived"), f"Node says {node.tail()}")


async def lives_in_a_page(site, life, port, path, chromium):
    async with Proxy(port) as line, chromium.page(site.url) as page:
        site.lines[f"page-{life}"] = line
        words = (life, f"ws://127.0.0.1:{line.port}{path}", f"{site.url}/line/page-{life}/")
        await page.run(PAGE % tuple(map(json.dumps, words)))
        # What the browser says of lines that were cut and refused.
        page.problems = [it for it in page.problems if "WebSocket" not in it]


async def the_page_of_the_guide_chats(site, url, chromium):
    code = (GUIDE / "fuzz/web/src/chat.rs").read_text().split("\n\n", 1)[1]
    expect(code in (GUIDE / "rpc-core/src/guide/browser.md").read_text(), "the guide has another program")
    async with chromium.page(site.url) as page:
        expect(await page.run(CHAT % (json.dumps(url), json.dumps(TOKEN))), "no answer")


async def body(checks):
    env = {"SNEK_PASSWORD_ALICE": "wonderland"}
    async with (
        Site() as site, browser() as chromium, Provider() as provider, gateway(provider, "--token", TOKEN) as running,
        served("bot", "serve", "--user", "alice:Alice", "--allow-origin", site.url, **env) as chat,
    ):
        for life, port, path in (("snek", chat.port, "/rpc.ws"), ("exoclaw", running.port, "/ws")):
            await checks.run(lives_in_node, site, life, port, path)
            await checks.run(lives_in_a_page, site, life, port, path, chromium)
        await checks.run(the_page_of_the_guide_chats, site, running.url, chromium)


main(body)
