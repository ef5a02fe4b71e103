"""Our clients in a page and in Node, compiled to WebAssembly: each talks, waits too long, loses its line, reconnects
and leaves."""

# Needs: node, browser, web.

import asyncio
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from aiohttp import ClientSession, web
from chrome import browser
from gateways import TOKEN, gateway
from harness import Proxy, expect, main, program, same, served, switchboard
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
  const lives = await import("/pkg/switchboard_web.js");
  await lives.default();
  await lives[%s](%s, async (word) => { await fetch(%s + word); });
  return "well lived";
})()"""


CHAT = """(async () => {
  const { default: init, Chat } = await import("/pkg/switchboard_web.js");
  await init();
  const chat = await Chat.connect(%s, %s);
  let answer = "";
  await chat.ask("hi", (piece) => { answer += piece; });
  return answer;
})()"""
STATE = "document.querySelector('#%s output').value"
HAS = "[...document.querySelectorAll('#%s %s')].map((it) => it.textContent).join('\\n')"
SECRETS = {"snek": "wonderland", "exoclaw": TOKEN}
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
        module = FOLDER / "pkg/switchboard_web"
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


async def the_example_shows_five_servers(site, urls, router, chromium):
    listening = await router.event("listening")
    urls = urls | {"smarthole": listening["url"]}
    said = {"snek": "*Hello", "exoclaw": "*few rules", "connectonion": "*42", "acolyte": "+"}
    async with chromium.page(f"{site.url}/index.html?{urlencode(urls)}") as page:
        for name in urls:
            await page.until(f"document.querySelector('#{name}') !== null")
            await page.run(f"document.querySelector('#{name} [name=secret]').value = {json.dumps(SECRETS.get(name, ''))}")
            await page.click(f"#{name} .connect button", f"{STATE % name} === 'connected'")
        for name, words in said.items():
            await page.click(f"#{name} .send button", f"/.{words}/.test({HAS % (name, '.answer')})")
        async with ClientSession() as user, user.post(listening["input"], json={"text": "page: milk", "wait": True}) as answer:
            same(answer.status, 200, await answer.text())
        await page.until(f"{HAS % ('smarthole', '.answer')}.includes('milk')")
        await page.click("#smarthole .send button", f"{HAS % ('smarthole', '.out')}.includes('Noted')")
        await router.event("notification", client="page")
        for name in urls:
            for way in (".in", ".out"):
                expect(await page.run(HAS % (name, way)), f"no frame {way} in {name}")
        text = await page.run("document.body.innerText")
        expect("wonderland" not in text and TOKEN not in text, "a secret is shown")


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
        with TemporaryDirectory() as folder:
            Path(folder, "hello.txt").touch()
            here = ("--allow-origin", site.url)
            async with (
                switchboard("router", "--listen", "127.0.0.1:0", "--json", *here) as router,
                served("agent", "host", HOME=folder) as agent,
                served("daemon", "serve", "--workspace", folder, *here, HOME=folder) as daemon,
                switchboard("gateway", "--port", "0", "--token", TOKEN, HOME=folder) as model,
            ):
                line = await model.line("listening")
                urls = {
                    "snek": f"ws://{chat.address}", "exoclaw": line[line.index("ws://") :].rstrip(")"),
                    "connectonion": f"ws://{agent.address}", "acolyte": f"ws://{daemon.address}",
                }
                await checks.run(the_example_shows_five_servers, site, urls, router, chromium)


main(body)
