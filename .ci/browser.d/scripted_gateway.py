"""Checks against a gateway that does what it is told, which a real one never would."""

import json

from chrome import SHIFT
from common import expect
from fake import fake
from page import (
    ANSWER, ANSWERING, ASKS_FOR_TOKEN, FREE, INPUT, LOG, MARKUP, READY, STATE, WAITS, clean, has, say, text
)


async def text_in_pieces(chrome, real, _):
    async with fake(real) as there, chrome.page(there.url) as page:
        line = await there.greeted()
        await say(page, "count  to\nthree <b>")
        asked = await line.question()
        peer = await page.run("JSON.parse(localStorage.getItem('gateway-chats'))[0].id")
        wanted = {"channel": "web", "account": "browser", "peer": peer, "content": "count  to\nthree <b>"}
        expect(asked["method"] == "chat.send" and asked["params"] == wanted, f"asked: {asked}")
        expect(set(asked) == {"id", "method", "params"} and asked["id"] not in ("", "0"), f"asked: {asked}")
        await page.until(ANSWERING)
        seen = ""
        for piece in ["", "one", " two\n", "three", ""]:
            seen += piece
            await line.event("text", piece)
            await page.until(f"{ANSWER}.querySelector('.text')?.textContent.trim() === {json.dumps(seen.strip())}"
                             if seen else "true")
            expect(await page.run(ANSWERING), "the answer has not ended")
        for tokens in [(150, 42), (50, 8)]:
            await line.event("usage", {"input_tokens": tokens[0], "output_tokens": tokens[1]})
        await line.event("done")
        await page.until(f"{FREE} && {has(f'{ANSWER}.querySelector(`.usage`)', '200 tokens in, 50 out')}")
        await say(page, "more")
        second = await line.question()
        expect(second["id"] != asked["id"], "each question has an id of its own")
        await line.event("done")
        await page.until(f"{FREE} && {has(ANSWER, 'empty')}")
        await clean(page)


async def keys(chrome, real, _):
    async with fake(real) as there, chrome.page(there.url) as page:
        line = await there.greeted()
        await page.until(READY)
        await page.run("document.getElementById('input').focus()")
        await page.press("Enter")
        await page.type("   ")
        await page.press("Enter")
        await page.run("document.getElementById('input').value = ''")
        await page.type("first")
        await page.press("Enter", SHIFT)
        await page.type("second")
        await page.press("Enter")
        asked = await line.question()
        expect(asked["params"]["content"] == "first\nsecond", f"asked: {asked}")
        await page.until(ANSWERING)
        await page.press("Enter")
        expect(not await page.run(WAITS), "nothing is typed, so nothing waits")
        await page.type("not now")
        await line.event("done")
        await page.until(FREE)
        expect(await page.run(INPUT) == "not now", "a draft stays one")
        await page.run("document.getElementById('input').value = ''")
        await say(page, "third")
        asked = await line.question()
        expect(asked["params"]["content"] == "third", f"asked: {asked}")
        await page.until(ANSWERING)
        await page.press("Escape")
        await page.until(f"{FREE} && {has(ANSWER, 'Stopped')}")
        await clean(page)


async def sending_waits(chrome, real, _):
    async with fake(real) as there, chrome.page(there.url) as page:
        line = await there.greeted()
        await say(page, "first")
        await line.question()
        await page.until(ANSWERING)
        await page.type("second")
        await page.press("Enter")
        await page.until(f"{WAITS} && {INPUT} === 'second'")
        # Changed, it waits to be sent again.
        await page.type(", better")
        await page.until(f"!({WAITS})")
        await page.press("Enter")
        await page.until(WAITS)
        await line.event("text", "the first answer")
        await page.until(has(ANSWER, "the first answer"))
        expect(await page.run(INPUT) == "second, better", "it waits")
        await line.event("done")
        asked = await line.question()
        expect(asked["params"]["content"] == "second, better", f"asked: {asked}")
        await page.until(f"{ANSWERING} && {INPUT} === '' && !({WAITS})")
        # Behind a failure the user decides.
        await page.type("third")
        await page.press("Enter")
        await page.until(WAITS)
        await line.event("error", "provider error: overloaded")
        await page.until(f"{FREE} && !({WAITS}) && {INPUT} === 'third'")
        await page.press("Enter")
        asked = await line.question()
        expect(asked["params"]["content"] == "third", f"asked: {asked}")
        await line.event("done")
        await page.until(FREE)
        await clean(page)


async def tools(chrome, real, _):
    async with fake(real) as there, chrome.page(there.url) as page:
        line = await there.greeted()
        await say(page, "use tools")
        await line.question()
        await line.event("text", "Let me see.")
        await line.event("tool_use", {"id": "a", "name": "search", "input": {"words": ["x", 1]}})
        await line.event("tool_use", {"id": "b", "name": "clock", "input": {}})
        await line.event("tool_use", {"id": "c", "name": "lost", "input": None})
        await page.until(f"{ANSWER}.querySelectorAll('.tool[data-state=running]').length === 3")
        expect(not await page.run(f"{ANSWER}.querySelector('.tool').open"), "it is folded")
        await line.event("tool_result", {"tool_use_id": "b", "content": "unknown tool: clock", "is_error": True})
        await line.event("tool_result", {"tool_use_id": "a", "content": "found 3"})
        await line.event("tool_result", {"tool_use_id": "z", "content": {"stray": True}, "is_error": False})
        await line.event("text", "I found three.")
        await line.event("done")
        await page.until(FREE)
        shown = await page.run(
            f"[...{ANSWER}.children].filter(it => it.matches('.text, .tool')).map(it => it.matches('.text') ?"
            " it.textContent : [it.querySelector('.name').textContent, it.dataset.state,"
            " ...[...it.querySelectorAll('pre')].map(it => it.textContent)])"
        )
        expect(shown == [
            "Let me see.",
            ["search", "done", '{\n  "words": [\n    "x",\n    1\n  ]\n}', "found 3"],
            ["clock", "failed", "{}", "unknown tool: clock"],
            ["lost", "ended", "{}"],
            ["tool", "done", '{\n  "stray": true\n}'],
            "I found three.",
        ], f"shown: {shown}")
        await page.click(".tool summary")
        await page.until(f"{ANSWER}.querySelector('.tool').open")
        await page.press("Enter")
        await page.until(f"!{ANSWER}.querySelector('.tool').open")
        await clean(page)


async def markup_is_text(chrome, real, _):
    async with fake(real) as there, chrome.page(there.url) as page:
        line = await there.line()
        await line.send({"ok": True, "version": MARKUP})
        await say(page, MARKUP)
        await line.question()
        await line.event("text", MARKUP)
        await line.event("tool_use", {"id": MARKUP, "name": MARKUP, "input": {MARKUP: MARKUP}})
        await line.event("tool_result", {"tool_use_id": MARKUP, "content": MARKUP, "is_error": True})
        await line.event("usage", {"input_tokens": MARKUP, "output_tokens": 1})
        await line.event("error", MARKUP)
        await page.until(FREE)
        for part in [".text", ".tool .name", ".tool .result", ".failure"]:
            seen = await page.run(f"{ANSWER}.querySelector('{part}').textContent")
            expect(seen == MARKUP, f"{part}: {seen}")
        made = await page.run("document.querySelectorAll('main img, main script, main b').length")
        expect(made == 0, "nothing of it became an element")
        expect(await page.run("document.title") == "Gateway chat", "nothing of it ran")
        await clean(page)


async def noise_is_ignored(chrome, real, _):
    async with fake(real) as there, chrome.page(there.url) as page:
        line = await there.greeted()
        await say(page, "hello")
        await line.question()
        for noise in ["not json", "", "[]", "null", "7", "{}", {"id": "0", "error": "parse error: x"},
                      {"id": "other", "event": "text", "data": "WRONG"}, {"id": "other", "event": "done"},
                      {"id": line.id}, {"id": line.id, "event": 7}, {"id": line.id, "error": None},
                      {"id": line.id, "event": "text"}, {"id": line.id, "event": "text", "data": {"x": "WRONG"}},
                      {"id": line.id, "event": "tool_use", "data": 7}, {"id": line.id, "event": "usage"},
                      {"id": line.id, "event": "tool_result", "data": []}, {"ok": True, "version": "0.1.0"}]:
            await line.send(noise)
        await line.socket.send_bytes(b"\x00")
        await line.event("invented", {"x": "WRONG"})
        await line.event("text", "right")
        await page.until(has(ANSWER, "right"))
        expect(await page.run(ANSWERING), "the answer goes on")
        await line.event("done")
        await line.event("text", "WRONG")
        await page.until(FREE)
        expect("WRONG" not in await page.run(LOG), "nothing else is shown")
        await clean(page)


async def failures_are_shown(chrome, real, _):
    async with fake(real) as there, chrome.page(there.url) as page:
        line = await there.greeted()
        for error in ["token budget exceeded (session: 9500/10000)",
                      "provider error: no API key for provider 'anthropic'. Set ANTHROPIC_API_KEY env var.",
                      {"message": "unknown method: chat.send"}]:
            await say(page, "hello")
            await line.question()
            await line.send({"id": line.id, "error": error})
            shown = (error if isinstance(error, str) else error["message"]).removeprefix("provider error: ")
            await page.until(f"{FREE} && {has(f'{ANSWER}.querySelector(`.failure`)', shown)}")
        # The text before an error stays; with and without the `done` after it.
        for after in [False, True]:
            await say(page, "hello")
            await line.question()
            await line.event("text", "I was about to")
            await line.event("error", "provider error: connection refused")
            if after:
                await line.event("done")
            await page.until(f"{FREE} && {has(f'{ANSWER}.querySelector(`.failure`)', 'connection refused')}")
            # The text before it stays.
            await page.until(has(ANSWER, "I was about to"))
        await say(page, "hello")
        await line.answer("well")
        await page.until(f"{FREE} && {has(ANSWER, 'well')}")
        await clean(page)


async def stop(chrome, real, _):
    async with fake(real) as there, chrome.page(there.url) as page:
        line = await there.greeted()
        await say(page, "talk")
        await line.question()
        await line.event("text", "on and on")
        await page.until(has(ANSWER, "on and on"))
        await page.click("#stop")
        await line.closed()
        line = await there.greeted()
        await page.until(f"{READY} && {FREE} && {has(ANSWER, 'Stopped')}")
        await say(page, "again")
        await line.answer("yes")
        await page.until(f"{FREE} && {has(ANSWER, 'yes')}")
        await clean(page)


async def cut(chrome, real, _):
    async with fake(real) as there, chrome.page(there.url) as page:
        line = await there.greeted()
        await say(page, "talk")
        await line.question()
        await line.event("text", "half an ans")
        await page.until(has(ANSWER, "half an ans"))
        await line.cut()
        await page.until(f"{STATE} === 'lost' && {has('document.getElementById(`status`)', 'Connection lost')}")
        await page.until(f"{FREE} && {has(f'{ANSWER}.querySelector(`.failure`)', 'lost before')}")
        await page.type("a draft")
        await page.press("Enter")
        line = await there.greeted()
        await page.until(READY)
        expect(await page.run("document.getElementById('input').value === 'a draft'"), "the draft is still there")
        await page.press("Enter")
        asked = await line.question()
        expect(asked["params"]["content"] == "a draft", "nothing was sent twice")
        await line.event("done")
        await page.until(FREE)
        await line.cut()
        await page.click("#retry")
        await there.greeted()
        await page.until(f"{READY} && document.getElementById('retry').hidden")
        await clean(page)


async def waits_longer_each_time(chrome, real, _):
    # The page's other waits stay as they are: for a hello, and for a connection.
    hurry = (
        "window.waits = []; const real = setTimeout; window.setTimeout = (then, ms) => {"
        " if (ms === 800 || ms === 15000) return real(then, ms); waits.push(ms); return real(then, 1); };"
    )
    async with fake(real) as there, chrome.page(there.url, before=hurry) as page:
        for _ in range(8):
            await (await there.line()).cut()
        line = await there.greeted()
        await page.until(READY)
        await line.cut()
        await there.greeted()
        await page.until(READY)
        waits = await page.run("waits")
        expected = [1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 1000]
        expect(len(waits) == len(expected), f"waits {waits}")
        for wait, most in zip(waits, expected):
            expect(0.8 * most <= wait <= most, f"waits {waits}")


async def silence_means_a_token(chrome, real, _):
    async with fake(real) as there, chrome.page(there.url) as page:
        line = await there.line()
        await page.until(ASKS_FOR_TOKEN)
        await page.type("half a tok")
        # The gateway does not wait for ever; the page does.
        await line.refuse()
        await line.closed()
        expect(await page.run("document.getElementById('token').value") == "half a tok", "it is still there")
        expect(await page.run("document.getElementById('token-error').textContent") == "", "nothing was refused")
        await page.type("en")
        await page.press("Enter")
        line = await there.line()
        expect(await line.receive() == {"token": "half a token"}, "the token is sent first")
        # Refused by the close frame alone.
        await line.socket.close(code=1008)
        await page.until(f"{has('document.getElementById(`token-error`)', 'refused')} && {ASKS_FOR_TOKEN}")
        await page.type("right")
        await page.press("Enter")
        line = await there.line()
        expect(await line.receive() == {"token": "right"}, "the next one is sent")
        await line.send({"ok": True, "version": "0.1.0"})
        await page.until(READY)
        await line.cut()
        line = await there.line()
        expect(await line.receive() == {"token": "right"}, "a reconnect needs nobody")
        await line.refuse()
        await page.until(f"{has('document.getElementById(`token-error`)', 'refused')} && {ASKS_FOR_TOKEN}")
        await clean(page)


async def late_hello(chrome, real, _):
    async with fake(real) as there, chrome.page(there.url) as page:
        line = await there.line()
        await page.until(ASKS_FOR_TOKEN)
        await line.send({"ok": True})
        await page.until(f"{READY} && document.getElementById('auth').hidden")
        await say(page, "hello")
        await line.answer("hi")
        await page.until(f"{FREE} && {has(ANSWER, 'hi')}")
        await clean(page)


async def a_silent_answer_ends(chrome, real, _):
    hurry = "const real = setTimeout; window.setTimeout = (then, ms) => real(then, ms === 60000 ? 200 : ms);"
    async with fake(real) as there, chrome.page(there.url, before=hurry) as page:
        line = await there.greeted()
        await say(page, "hello")
        await line.question()
        await line.event("text", "wait")
        await line.closed()
        await page.until(f"{FREE} && {has(f'{ANSWER}.querySelector(`.failure`)', 'silent for 60 s')}")
        line = await there.greeted()
        await say(page, "hello")
        await line.answer("here")
        await page.until(f"{FREE} && {has(ANSWER, 'here')}")
        await clean(page)
