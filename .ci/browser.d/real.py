"""Checks against the gateway."""

from common import expect
from fake import fake
from page import (
    ANSWER, ANSWERING, ASKS_FOR_TOKEN, FREE, LOG, QUESTION, READY, SHARED, TOKEN, clean, has, say, text
)


async def loads_and_connects(chrome, real, _):
    async with chrome.page(real) as page:
        await page.until(READY)
        expect(not await page.run(ASKS_FOR_TOKEN), "no token is asked for")
        loaded = {address.removeprefix(real) for address, status in page.statuses if status == 200}
        loaded = {address for address in loaded if not address.startswith("/history/")}
        # Not every browser wants to see the icon.
        expect(loaded - {"/icon.svg"} == {"/", "/app.js", "/line.js"} | SHARED, f"it loads its own files: {loaded}")
        await page.run("new Promise(then => setTimeout(then, 1000))")
        expect(await page.run(READY), "still connected, and no token asked for, a second later")
        await clean(page)
    async with chrome.page(f"{real}/any/other/path") as page:
        await page.until(READY)
        await clean(page)


async def policy_is_in_force(chrome, real, _):
    async with chrome.page(real) as page:
        await page.until(READY)
        for attempt in [
            "document.body.innerHTML = '<p>markup'",
            "document.createElement('script').textContent = 'window.ran = 1'",
            "document.body.setAttribute('onclick', 'window.ran = 1'); document.body.click(); if (!window.ran) throw 1",
            "await new Promise((then, or) => document.body.append(Object.assign("
            "document.createElement('script'), { onload: then, onerror: or, src: 'data:,window.ran=1' })))",
            "await fetch('http://other.test/')",
            "await new Promise((then, or) => Object.assign("
            "new WebSocket('ws://other.test/ws'), { onopen: then, onerror: or }))",
        ]:
            refused = await page.run(f"(async () => {{ {attempt} }})().then(() => false, () => true)")
            expect(refused, attempt)
        expect(await page.run("window.ran === undefined"), "no script ran")


async def answer(chrome, real, _):
    async with chrome.page(real) as page:
        await say(page, "hello there")
        await page.until(f"({text(ANSWER)}) !== '' && {FREE}")
        expect(not await page.run(f"{ANSWER}.querySelector('.failure') !== null"), "there is no error")
        await page.until(has(QUESTION, "hello there"))
        await say(page, "hello again")
        await page.until(f"document.querySelectorAll('#log .agent').length === 2 && {FREE}")
        await clean(page)


async def session(chrome, real, _):
    async with chrome.page(real) as page, chrome.page(real) as other:
        await say(page, "My name is Ann <b>.")
        await page.until(f"({text(ANSWER)}) !== '' && {FREE}")
        await say(page, "What do you know of me?")
        await page.until(f"{has(ANSWER, 'Ann')} && {FREE}")
        await say(other, "What do you know of me?")
        await other.until(f"({text(ANSWER)}) !== '' && {FREE}")
        expect("Ann" not in await other.run(LOG), "another browser is somebody else")
        rendered = "document.querySelector('#log .tail') === null"
        await page.until(rendered)
        before = await page.run(LOG)
        await page.reload()
        await page.until(f"{READY} && document.querySelectorAll('#log article').length === 4 && {rendered}")
        after = await page.run("[...document.querySelectorAll('#log .text')].map(it => it.textContent)")
        expect(after[0] == "My name is Ann <b>." and all(it in before for it in after), f"shown again: {after}")
        await say(page, "And what now?")
        await page.until(f"document.querySelectorAll('#log article').length === 6 && {FREE}")
        last = await page.run("document.querySelector('#log article:nth-child(5) .text').textContent")
        expect(last == "And what now?", "below what was there")
        await clean(page)
        await clean(other)


async def tool(chrome, real, _):
    async with chrome.page(real) as page:
        await say(page, '!tool echo {"message":"hi"}')
        await page.until(f"{has(f'{ANSWER}.querySelector(`.tool .name`)', 'echo')} && {FREE}")
        state = await page.run(f"{ANSWER}.querySelector('.tool').dataset.state")
        expect(state in ("done", "failed"), f"the tool has ended: {state}")
        await page.click(".tool summary")
        await page.until(has(f"{ANSWER}.querySelector('.tool .input')", '"message": "hi"'))
        expect(await page.run(text(f"{ANSWER}.querySelector('.tool .result')")), "it has a result")
        await clean(page)


async def failure(chrome, real, _):
    async with chrome.page(real) as page:
        await say(page, "!fail")
        await page.until(f"{ANSWER}?.querySelector('.failure') && {FREE}")
        await say(page, "hello")
        await page.until(f"document.querySelectorAll('#log .agent').length === 2 && {FREE}")
        expect(not await page.run(f"{ANSWER}.querySelector('.failure') !== null"), "the next question is answered")
        await shown_again(page, "!fail", "failed: ")
        await clean(page)


async def shown_again(page, question, became):
    """After a reload the first question and what became of its answer are there."""
    await page.reload()
    await page.until(f"{READY} && document.querySelector('#log .agent') !== null")
    await page.until(has("document.querySelector('#log .user')", question))
    await page.until(has("document.querySelector('#log .agent')", became))


async def left(chrome, real, _):
    async with chrome.page(real) as page:
        await say(page, "!slow 1000")
        await page.until(f"({text(f'{ANSWER}.querySelector(`.text`)')}) !== ''")
        await shown_again(page, "!slow 1000", "Stopped.")
        await page.until(f"({text(f'{ANSWER}.querySelector(`.text`)')}) !== ''")
        await clean(page)


async def stop(chrome, real, _):
    async with chrome.page(real) as page:
        await say(page, "!slow 1000")
        await page.until(f"({text(f'{ANSWER}.querySelector(`.text`)')}) !== ''")
        expect(await page.run(ANSWERING), "the answer goes on")
        await page.click("#stop")
        await page.until(f"{FREE} && {has(ANSWER, 'Stopped')}")
        # One conversation has one answer at a time: the next one comes once the first has ended.
        await say(page, "hello")
        await page.until(f"document.querySelectorAll('#log .agent').length === 2 && {FREE}")
        expect(await page.run(f"{ANSWER}.querySelector('.text') !== null"), "the next question is answered")
        await shown_again(page, "!slow 1000", "Stopped.")
        await clean(page)


async def token(chrome, _, guarded):
    async with chrome.page(guarded) as page:
        await page.until(ASKS_FOR_TOKEN)
        expect(await page.run("document.getElementById('token').type === 'password'"), "it is not shown")
        expect(await page.run("document.activeElement.id === 'token'"), "it can be typed at once")
        await page.type("not the token")
        await page.press("Enter")
        await page.until(f"{has('document.getElementById(`token-error`)', 'refused')} && {ASKS_FOR_TOKEN}")
        expect(await page.run("sessionStorage.length === 0"), "a refused token is not kept")
        await page.type(TOKEN)
        await page.press("Enter")
        await page.until(f"{READY} && document.getElementById('auth').hidden")
        await say(page, "hello")
        await page.until(f"({text(ANSWER)}) !== '' && {FREE}")
        await page.reload()
        await page.until(READY)
        expect(not await page.run(ASKS_FOR_TOKEN), "it is kept in this tab")
        await page.until(has("document.getElementById('log')", "hello"))
        kept = await page.run("[Object.keys(localStorage).join(), document.cookie]")
        expect(kept == ["gateway-chats", ""], f"it is kept nowhere else: {kept}")
        await clean(page)
    async with chrome.page(guarded) as page:
        await page.until(ASKS_FOR_TOKEN)


async def foreign_pages(chrome, real, _):
    port = real.rsplit(":", 1)[1]
    async with fake(real, page_text="<!doctype html><title>elsewhere</title>") as elsewhere:
        there = elsewhere.url.replace("127.0.0.1", "evil.test")
        for host in ["127.0.0.1", "localhost", "evil.test"]:
            async with chrome.page(there) as page:
                opened = await page.run(
                    f"new Promise(then => {{ const it = new WebSocket('ws://{host}:{port}/ws');"
                    " it.onopen = () => then(true); it.onerror = () => then(false); })"
                )
                expect(not opened, f"a page from elsewhere cannot connect to {host}")
                said = " ".join(page.problems)
                expect("403" in said, f"it is told so: {page.statuses} {said}")
    # A name of somebody else that leads here.
    async with chrome.page(f"http://evil.test:{port}/") as page:
        statuses = [status for _, status in page.statuses]
        expect(statuses[0] == 403, f"the page itself is refused as well: {page.statuses}")
