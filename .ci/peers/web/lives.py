"""Our clients in a page and in Node, compiled to WebAssembly: each talks, waits too long, loses its line, reconnects
and leaves; the machines and codecs keep their rules there; and the page that shows five clients works."""
# Needs: node, browser, web.

import base64
import contextlib
import json
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from urllib.parse import urlencode

from chrome import browser
from gateways import TOKEN, gateway
from harness import expect, main, program, same, served, switchboard
from provider import Provider
from webs import Page, lives_in_a_page, lives_in_node

CHAT = """(async () => {
  const { default: init, Chat } = await import("/pkg/switchboard_web.js");
  await init();
  const chat = await Chat.connect(%s, %s);
  let answer = "";
  await chat.ask("hi", (piece) => { answer += piece; });
  return answer;
})()"""
# What a page would send that is written by hand, with the ids of what was sent.
WRITTEN = """import("/frames.mjs").then((written) => %s.map((text, at) => {
  const sent = JSON.parse(text);
  return JSON.stringify(written[%s](sent.id ?? sent.callId ?? sent.payload?.messageId, sent)[at]);
}))"""
TARGETS = """
import init, { run_vectors, target, watch } from %s;
import { readFileSync } from "node:fs";
globalThis.read_text = (path) => readFileSync(path, "utf8");
await init({ module_or_path: readFileSync(%s) });
watch();
let last = "vectors";
try {
  const count = run_vectors();
  for (last of JSON.parse(readFileSync(%s))) target(last[0], Buffer.from(last[1], "base64"));
  console.log(`${count} tests, all kept`);
} catch (error) {
  console.log(`${last}: ${error.stack}`);
}
process.exit();
"""
STATE = "document.querySelector('#%s output').value"
HAS = "[...document.querySelectorAll('#%s %s')].map((it) => it.textContent).join('\\n')"
USERS = {"SNEK_PASSWORD_ALICE": "wonderland", "SNEK_PASSWORD_BOB": "builder"}
SECRETS = {"snek": "wonderland", "exoclaw": TOKEN, "acolyte": TOKEN}
ROOT = Path(__file__).resolve().parents[3]

async def the_page_of_the_guide_chats(line, url, chromium):
    code = (ROOT / "fuzz/web/src/chat.rs").read_text().split("\n\n", 1)[1]
    expect(code in (ROOT / "rpc-core/src/guide/browser.md").read_text(), "the guide has another program")
    async with chromium.page(line.url) as page:
        expect(await page.run(CHAT % (json.dumps(url), json.dumps(TOKEN))), "no answer")

def texts(value):
    """Every text in a value of JSON."""
    if isinstance(value, (dict, list)):
        yield json.dumps(value)
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)
    elif isinstance(value, str):
        yield value

def inputs():
    """The fuzz targets with their seeds, and with what is in the vectors. One target needs files."""
    for seed in (ROOT / "fuzz/seeds").glob("*/*"):
        if seed.parent.name != "connectonion_jsonl":
            yield seed.parent.name, seed.read_bytes()
    for file in ROOT.glob("*-proto/tests/vectors/*.json*"):
        protocol, text = file.relative_to(ROOT).parts[0].removesuffix("-proto"), file.read_text()
        values = text.splitlines() if file.suffix == ".jsonl" else [text]
        for part in set(part for value in values for part in texts(json.loads(value))):
            for side in ("client", "server"):
                yield f"{protocol}_{side}_frames", part.encode(errors="replace")

async def the_machines_and_codecs_keep_their_rules(line):
    module = line.folder / "pkg/switchboard_web"
    with NamedTemporaryFile("w") as file:
        json.dump(found := [(name, base64.b64encode(data).decode()) for name, data in inputs()], file)
        file.flush()
        expect(len(found) > 5_000, f"{len(found)} inputs")
        words = (module.with_suffix(".js").as_uri(), f"{module}_bg.wasm", file.name)
        async with program("node", "--input-type=module", "--eval", TARGETS % tuple(map(json.dumps, words))) as node:
            await node.end()
            kept = node.find("tests, all kept")
            expect(kept and int(kept.split()[0]) >= 50, f"Node says {node.tail()}")

async def the_example_shows_five_servers(site, urls, hole, router, chromium):
    said = {"snek": "*Hello", "exoclaw": "scripted model", "connectonion": "scripted model", "acolyte": "+"}
    async with chromium.page(f"{site.url}/index.html?{urlencode(urls)}") as page:
        for name in urls:
            await page.until(f"document.querySelector('#{name}') !== null")
            await page.run(f"document.querySelector('#{name} [name=secret]').value = {json.dumps(SECRETS.get(name, ''))}")
            await page.click(f"#{name} .connect button", f"{STATE % name} === 'connected'")
        for name, words in said.items():
            await page.click(f"#{name} .send button", f"/.{words}/.test({HAS % (name, '.answer')})")
        expect("page" in await hole.told("ask"), "nobody takes milk")
        await page.until(f"{HAS % ('smarthole', '.answer')}.includes('milk')")
        await page.click("#smarthole .send button", f"{HAS % ('smarthole', '.out')}.includes('Noted')")
        await router.event("notification", client="page")
        for name in urls:
            expect(await page.run(HAS % (name, ".in")), f"no frame comes in {name}")
            sent = (await page.run(HAS % (name, ".out"))).splitlines()
            same(await page.run(WRITTEN % (json.dumps(sent), json.dumps(name))), sent, f"what {name} sends, and what is written by hand")
        text = await page.run("document.body.innerText")
        expect("wonderland" not in text and TOKEN not in text, "a secret is shown")

async def body(checks):
    async with browser() as chromium, Provider() as provider, contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        folder = stack.enter_context(TemporaryDirectory())
        Path(folder, "hello.txt").touch()
        site, chat, llm, onion, hole, code = [await enter(Page()) for _ in range(6)]

        def origins(line):
            return "--allow-origin", line.url, "--allow-origin", site.url

        await checks.run(the_machines_and_codecs_keep_their_rules, site)
        users = ("--user", "alice:Alice", "--user", "bob:Bob")
        chat.target = (await enter(served("bot", "serve", *users, *origins(chat), **USERS))).port
        llm.target = (await enter(gateway(provider, "--token", TOKEN))).port
        onion.target = (await enter(served("agent", "host", HOME=folder))).port
        router = await enter(switchboard("router", "--listen", "127.0.0.1:0", "--json", *origins(hole)))
        listening = await router.event("listening")
        hole.target, hole.input = int(listening["url"].rsplit(":", 1)[1]), listening["input"]
        daemon = served("daemon", "serve", "--workspace", folder, *origins(code), HOME=folder, ACOLYTE_API_KEY=TOKEN)
        code.target = (await enter(daemon)).port

        for line, life, path in (
            (chat, "snek", "/rpc.ws"), (chat, "bot", "/rpc.ws"), (llm, "exoclaw", "/ws"), (onion, "connectonion", ""),
            (hole, "smarthole", ""), (hole, "plugin", ""), (code, "acolyte", ""), (code, "sse", ""),
        ):
            await checks.run(lives_in_node, line, life, path)
            await checks.run(lives_in_a_page, line, life, path, chromium)
        await checks.run(the_page_of_the_guide_chats, llm, f"ws://127.0.0.1:{llm.target}/ws", chromium)
        model = await enter(switchboard("gateway", "--port", "0", "--token", TOKEN, HOME=folder))
        scripted = (await model.line("listening")).split("ws://")[1].rstrip(")")
        urls = {name: f"ws://127.0.0.1:{line.target}" for name, line in (
            ("snek", chat), ("connectonion", onion), ("acolyte", code), ("smarthole", hole),
        )} | {"exoclaw": f"ws://{scripted}"}
        await checks.run(the_example_shows_five_servers, site, urls, hole, router, chromium)

main(body)
