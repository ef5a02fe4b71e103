"""The page of frames in a browser: many of them, links, trees, export, a file of its own, and faults."""
# Needs: browser.

import contextlib
import json
import re
import tempfile
from pathlib import Path

import aiohttp
from chrome import browser
from gateways import gateway
from harness import expect, main, output, same, switchboard
from screen import DESKTOP, accessible, look
from sockets import Python

FRAMES, LIVE_FRAMES = 100_000, 20_000
STATUS = "document.getElementById('status').textContent"
TITLE = "(document.querySelector('#detail h2')?.textContent ?? '')"
FRAME_LIST = "document.querySelector('#frames [role=listbox]')"
# Some of a list can be seen: no hole where rows should be.
IN_VIEW = """[...document.querySelectorAll('#frames [role=option]')].some((it) => {
  const { top, bottom } = it.getBoundingClientRect();
  return top < innerHeight && bottom > 200 && it.textContent !== ''; })"""
# What the page would have downloaded: (name, text) of each.
DOWNLOADS = """
  window.downloads = [];
  const blobs = new Map();
  const create = URL.createObjectURL;
  URL.createObjectURL = (blob) => { const url = create(blob); blobs.set(url, blob); return url; };
  HTMLAnchorElement.prototype.click = function () {
    downloads.push({ name: this.download, blob: blobs.get(this.href) });
  };
"""
# Counts the requests that are not answered yet.
FLYING = """window.flying = 0; const ask = fetch;
  window.fetch = (...what) => (flying++, ask(...what).finally(() => flying--));"""
DROP = """{ const data = new DataTransfer(); data.items.add(new File([text], 'bug.jsonl'));
  dispatchEvent(new DragEvent('drop', { dataTransfer: data, cancelable: true })); }"""

def line(at, conn, side, data, **more):
    data = data if isinstance(data, str) else json.dumps(data)
    return json.dumps({"at": at, "conn": conn, "dir": side, "kind": "text"} | more | {"data": data}) + "\n"

def recording(count):
    """Chats of ten frames, most of them well; frame 60,005 is none of the protocol, and one chat has no end."""
    lines = []
    for number in range(1, count // 10 + 1):
        at, conn, call = number * 0.002, 1 + number % 3, str(number)
        params = {"channel": "web", "account": "a", "content": f"question {number} <b>\u202e"}
        lines.append(line(at, conn, "c2s", {"id": call, "method": "chat.send", "params": params}))
        frames = [{"id": call, "event": "text", "data": f"word{part} "} for part in range(8)]
        frames.append({"id": call, "event": "done"} if number != 5000 else frames[0])
        lines += [line(at + 0.0001 * part, conn, "s2c", frame) for part, frame in enumerate(frames)]
    if count > 60004:
        lines[60003] = line(120, 3, "s2c", {"id": "6001", "event": 7})
    return '{"transcript":1,"protocol":"exoclaw","server":"ws://127.0.0.1:7200"}\n' + "".join(lines)

def rows(part):
    return f"[...document.querySelectorAll('#{part} [role=option]')]"

def shown(count):
    return f"document.getElementById('tab-frames').textContent === 'Frames {count:,}'"

def has(selector, part):
    return f"document.querySelector('{selector}').textContent.includes({json.dumps(part)})"

def a_row(part, text):
    return f"{rows(part)}.some((it) => it.textContent.includes({json.dumps(text)}))"

async def filtered(page, text, count):
    await page.run(f"document.getElementById('filter').value = {json.dumps(text)};"
                   " document.getElementById('filter').dispatchEvent(new InputEvent('input')); 0")
    await page.until(shown(count))

async def many_frames(chrome):
    text = recording(FRAMES)
    with tempfile.TemporaryDirectory() as folder:
        async with served() as address, chrome.page(address, before=DOWNLOADS) as page:
            await look(page, *DESKTOP)
            await page.run(f"window.text = {json.dumps(text)}; 0")
            async with page.short_tasks():
                await page.run(DROP)
                await page.until(f"{STATUS}.includes('2 problems') && {shown(FRAMES)}")
                # The first problem is there at once, the next one with a key.
                await page.until(f"{TITLE}.includes('chat.send') && document.querySelector('#detail .wrong') !== null")
                expect(await page.run(f"location.hash === '#frame-' + {TITLE}.match(/\\d+/)[0]"), "the link")
                await page.run("document.querySelector('#problems [role=listbox]').focus()")
                await page.press("n")
                await page.until(f"{TITLE}.startsWith('Frame 60005') && {has('#detail .place', '^')}")
                await page.click("#tab-frames", IN_VIEW)
                for part in (1, 0.5, 0.25, 0):
                    await page.run(f"{FRAME_LIST}.scrollTop = {part} * {FRAME_LIST}.scrollHeight")
                    await page.until(IN_VIEW)
                    expect(10 < await page.run(f"{rows('frames')}.length") < 100, "only rows in view are in the page")
                await filtered(page, "id:42 dir:s2c -kind:done", 8)
                await filtered(page, "QUESTION kind:chat.*", text.count("chat.send"))
                await filtered(page, "", FRAMES)
                await page.click("#export", "downloads.length === 1")
                await page.click("#save", "downloads.length === 2")
            names = await page.run("downloads.map(({ name }) => name)")
            exported = await page.run("downloads[0].blob.text()")
            saved = await page.run("fetch('/recording.html').then((it) => it.text())")
            same(names, ["bug.jsonl", "bug.html"], "what is downloaded")
            same(exported.count("\n"), FRAMES + 1, "all is exported")
            same(json.loads(exported.splitlines()[2])["kind"], "text", "the kind of a frame")
        file = Path(folder, names[1])
        file.write_text(saved, encoding="utf8")
        async with chrome.page() as page, page.short_tasks():
            await page.goto(file.as_uri())
            await page.until(f"{STATUS}.includes('2 problems') && {shown(FRAMES)} && {TITLE}.includes('chat.send')")

async def links_trees_and_lists(chrome):
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "run.jsonl"), Path(folder, "out.html")
        broken = line(9, 1, "s2c", "broken", kind="close", code=1011)
        file.write_text(recording(100) + "nonsense\n" + broken, encoding="utf8")
        async with served(file) as address, chrome.page(f"{address}#frame-3") as page:
            await page.until(f"{TITLE}.startsWith('Frame 3:') && {has('#detail dl', 'frame 2, chat.send')}")
            await page.run("location.hash = '#frame-2'")
            await page.until(f"{TITLE} === 'Frame 2: chat.send'")
            seen = await page.run("[...document.querySelectorAll('[role=treeitem]')].map((it) => it.textContent)")
            expect('method: "chat.send"' in seen and any("question 1 <b>" in it for it in seen), f"{seen}")
            await page.run("document.querySelector('[role=treeitem][tabindex=\"0\"]').focus()")
            for key in ["ArrowDown", "ArrowDown", "ArrowLeft"]:
                await page.press(key)
            focused = "[document.activeElement.textContent.slice(0, 6), document.activeElement.ariaExpanded]"
            same(await page.run(focused), ["params", "false"], "where the arrows have moved and what they have closed")
            await page.press("ArrowRight")
            same(await page.run(focused), ["params", "true"], "what an arrow opens")
            await page.click("#tab-calls", f"{rows('calls')}.length === 10")
            widths = await page.run("[...document.querySelectorAll('#calls .bar')].map((it) => it.style.width)")
            expect(len(widths) == 10 and all(widths), f"bars: {widths}")
            await page.click("#tab-problems", a_row("problems", "closed with 1011"))
            for tab in ["frames", "problems", "calls"]:
                await page.click(f"#tab-{tab}", f"!document.getElementById('{tab}').hidden")
                await accessible(page, f"wire-{tab}")
        code, *said = await output("wire", "page", file, "--html", out)
        same(code, 1, f"the exit code of {said}, for a line that is none")
        async with chrome.page(f"{out.as_uri()}#frame-4") as page:
            await page.until(f"{TITLE}.startsWith('Frame 4:') && {STATUS}.includes('problems')")
            await accessible(page, "wire-file")

@contextlib.asynccontextmanager
async def served(*args):
    """The page without a proxy: its address."""
    async with switchboard("wire", "page", "--listen", "127.0.0.1:0", *args) as running:
        yield (await running.line("the page is")).split()[-1]

@contextlib.asynccontextmanager
async def proxied(to, *args):
    """A proxy with a page: where clients connect, and the page."""
    args = ("wire", "proxy", "--listen", "127.0.0.1:0", "--page", "127.0.0.1:0", "--to", to, *args)
    async with switchboard(*args) as running:
        listening, page = await running.line("listening on"), await running.line("the page is")
        yield re.search(r"ws://[\d.:]+", listening)[0], page.split()[-1]

async def faults_of_a_proxy(chrome):
    async with (
        gateway(config="") as real, proxied(real.url, "--fault", "s2c result drop #2") as (url, address),
        Python() as library, chrome.page(address, before=FLYING) as page,
    ):
        client = await library.connect(url)

        async def answered(number):
            await client.send({"id": number, "method": "ping"})
            same((await client.next())["id"], number, "the id of the answer")

        expect((await client.next())["ok"], "a hello")
        await answered("1")
        await page.until(f"{STATUS} === 'Live' && {a_row('frames', 'result')}")
        await page.click("#tab-faults", has("#rules", "s2c result drop #2"))
        await accessible(page, "wire-faults")
        await client.send({"id": "2", "method": "ping"})
        await page.until(has("#counts", "1 problem"))
        await answered("3")
        await page.click("#tab-problems", a_row("problems", "result: dropped"))
        await page.until(shown(11))
        # Paused, it asks for nothing: a timer that begins later than that of its last pause also ends later.
        await page.click("#pause", f"{STATUS} === 'Paused' && flying === 0")
        await answered("4")
        await page.run("new Promise((then) => setTimeout(then, 240))")
        expect(await page.run(shown(11)), "nothing comes")
        await page.click("#pause", shown(13))
        # Pages from elsewhere see nothing.
        async with aiohttp.ClientSession() as session:
            for headers in [{"Host": "evil.test"}, {"Origin": "http://evil.test"}]:
                async with session.get(f"{address}rows?after=0", headers=headers) as answer:
                    same(answer.status, 403, f"the status for {headers}")

async def frames_that_come_quickly_are_all_shown(chrome):
    async with (
        Python() as library, library.serve() as server, proxied(server.url, "--protocol", "exoclaw") as (url, address),
        chrome.page(address) as page,
    ):
        await page.until(f"{STATUS} === 'Live'")
        await library.connect(url)
        far = await server.accepted()
        async with page.short_tasks():
            for number in range(LIVE_FRAMES):
                await far.send(f'{{"id":"{number // 50}","event":"text","data":"word{number} "}}')
            # With those of the handshake.
            count = LIVE_FRAMES + 2
            await page.until(f"{shown(count)} && {rows('frames')}.some((it) => Number(it.ariaPosInSet) === {count})")

async def body(checks):
    async with browser() as chrome:
        await checks.each((links_trees_and_lists, faults_of_a_proxy, many_frames, frames_that_come_quickly_are_all_shown), chrome)

main(body)
