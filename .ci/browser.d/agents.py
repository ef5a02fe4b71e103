"""Checks of the agent's chat page, against the agent."""

import asyncio
import contextlib
import json
import re
import tempfile
from pathlib import Path

from common import expect, program
from page import MARKUP, READY, SHARED, clean, has, say, text

ITEMS = "[...document.querySelectorAll('#log > *')].map(it => it.innerText)"
LAST = "[...document.querySelectorAll('#log > article')].at(-1)"
BUSY = "!document.getElementById('stop').hidden"
IDLE = "document.getElementById('stop').hidden"
OPEN = "document.querySelector('.ask[data-state=open]')"
SEEN = f"{OPEN}.getBoundingClientRect().bottom <= document.querySelector('footer').getBoundingClientRect().top"
# What is kept of the chat at the top of the list.
KEPT = "localStorage.getItem('agent-chat-' + JSON.parse(localStorage.getItem('agent-chats'))?.[0].id)"
GATED = "!document.getElementById('gate').hidden && document.getElementById('composer').hidden"
# Three tools, one after the other, with words between them.
LONG = "!tool calculate {\"expression\": \"1 + 1\"}\n!tool calculate {\"expression\": \"2 + 2\"}\n" \
       "!tool calculate {\"expression\": \"3 + 3\"}"


@contextlib.asynccontextmanager
async def agent(path, *args):
    """An agent with a home of its own: its address in the browser, and its folder."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        args = ["agent", "host", "--listen", "127.0.0.1:0", "--home", folder, *args]
        async with program(path, *args) as running:
            line = await asyncio.wait_for(running.line_with("listening on http://"), 20)
            yield re.search(r"http://127\.0\.0\.1:\d+", line)[0], Path(folder)


async def ask(page, content, answer):
    """Says something and waits for the answer."""
    await say(page, content)
    await page.until(f"{IDLE} && {has(LAST, answer)}")


async def loads_and_answers(chrome, path):
    async with agent(path) as (real, _), chrome.page(real) as page:
        await page.until(READY)
        loaded = {address.removeprefix(real) for address, status in page.statuses if status == 200}
        scripts = {f"/{part}.js" for part in ["along", "app", "ask", "events", "items", "key", "line", "memory"]}
        files = {"/", "/info"} | scripts | SHARED
        expect(loaded - {"/icon.svg", "/markdown"} == files, f"it loads its own files: {loaded}")
        await ask(page, "What is 6 * 7?", "42")
        shown = await page.run(
            "[...document.querySelectorAll('#log .tool')].map(it => [it.querySelector('.name').textContent,"
            " it.dataset.state, ...[...it.querySelectorAll('pre')].map(it => it.textContent)])"
        )
        expect(shown == [["calculate", "done", '{\n  "expression": "6 * 7"\n}', "42"]], f"shown: {shown}")
        await ask(page, "count to 2", "1 2")
        await clean(page)


async def a_key_is_made_once(chrome, path):
    async with agent(path, "--signed") as (real, _), chrome.page(real) as page:
        await page.until(READY)
        key = await page.run("localStorage.getItem('agent-key')")
        expect('"crv":"Ed25519"' in key, "it has a key of its own")
        await page.reload()
        await page.until(READY)
        expect(await page.run("localStorage.getItem('agent-key')") == key, "and keeps it")
        await clean(page)


async def without_a_key_it_goes_unsigned(chrome, path):
    none = "Object.defineProperty(crypto, 'subtle', { value: undefined });"
    async with agent(path) as (real, _), chrome.page(real, before=none) as page:
        await ask(page, "count to 2", "1 2")
        await clean(page)
    async with agent(path, "--signed") as (real, _), chrome.page(real, before=none) as page:
        await page.until(has("document.getElementById('status')", "Not let in: unauthorized"))


async def a_question_is_answered(chrome, path):
    async with agent(path) as (real, _), chrome.page(real) as page:
        await say(page, "ask me which colour I like (red, green)")
        await page.until(f"{OPEN} !== null")
        expect("Which colour I like?" in await page.run(text(OPEN)), "the question is shown")
        await page.click(".ask .answers button:nth-child(2)")
        await page.until(f"{IDLE} && {has(LAST, 'green')}")
        # In words, through the field below.
        await say(page, "ask me my name")
        await page.until(f"{OPEN} !== null")
        await say(page, "Ann")
        await page.until(f"{IDLE} && {has(LAST, 'Ann')}")
        expect(await page.run("document.querySelectorAll('#log .user').length") == 2, "an answer is no prompt")
        await clean(page)


async def a_tool_waits_for_leave(chrome, path):
    async with agent(path) as (real, folder), chrome.page(real) as page:
        file = folder / "files" / "a.txt"
        await say(page, "write milk to a.txt")
        await page.until(f"{OPEN} !== null")
        expect("write_file" in await page.run(text(OPEN)), "the tool is named")
        expect('+milk' in await page.run(text(f"{OPEN}.querySelector('pre')")), "and what it gets")
        expect(not file.exists(), "nothing was written")
        await page.click(".ask .answers button:nth-child(3)")
        await page.until(f"{IDLE} && {has(LAST, 'does not allow')}")
        expect(not file.exists(), "nothing was written")
        await say(page, "write milk to a.txt")
        await page.click(".ask[data-state=open] .main")
        await page.until(f"{IDLE} && {has(LAST, 'wrote 4 bytes')}")
        expect(file.read_text() == "milk", "it was written")
        await say(page, "write bread to a.txt")
        await page.until(f"{OPEN} !== null")
        expect(await page.run(SEEN), "what is asked can be seen")
        await page.click(".ask[data-state=open] .answers button:nth-child(2)")
        await page.until(f"{IDLE} && {has(LAST, 'wrote 5 bytes')}")
        await ask(page, "write cheese to a.txt", "wrote 6 bytes")
        await clean(page)


async def a_mode_needs_no_leave(chrome, path):
    async with agent(path) as (real, _), chrome.page(real) as page:
        await page.until(READY)
        await page.run("const it = document.getElementById('mode'); it.value = 'accept_edits';"
                       " it.dispatchEvent(new Event('change'))")
        await ask(page, "write milk to a.txt", "wrote 4 bytes")
        await clean(page)


async def reload_in_the_middle(chrome, path):
    async with agent(path, "--pace", "150ms") as (real, _), chrome.page(real) as page:
        await say(page, LONG)
        await page.until("document.querySelectorAll('#log .tool').length >= 1")
        expect(await page.run(BUSY), "the agent works")
        await page.reload()
        await page.until(f"{READY} && {BUSY}")
        await page.until(f"{IDLE} && {has(LAST, '2; 4; 6')}")
        tools = await page.run("[...document.querySelectorAll('#log .tool')].map(it => it.dataset.state)")
        expect(tools == ["done"] * 3, f"every tool is there once: {tools}")
        expect(await page.run("document.querySelectorAll('#log .user').length") == 1, "the prompt is there once")
        before = await page.run(ITEMS)
        await page.reload()
        await page.until(READY)
        expect(await page.run(ITEMS) == before, "all of it is still there")
        await ask(page, "count to 2", "1 2")
        await clean(page)


async def answered_while_away(chrome, path):
    async with agent(path, "--pace", "50ms") as (real, _), chrome.page(real) as page:
        await say(page, LONG)
        await page.until(BUSY)
        # Written down before it goes.
        await page.until(f"({KEPT} ?? '').includes('session')")
        await page.goto("about:blank")
        await asyncio.sleep(2.5)
        await page.goto(real)
        await page.until(f"{READY} && {IDLE} && {has(LAST, '2; 4; 6')}")
        expect(await page.run("document.querySelectorAll('#log .tool').length") == 3, "with what happened")
        await clean(page)


async def leave_is_given_after_a_reload(chrome, path):
    async with agent(path) as (real, folder), chrome.page(real) as page:
        await say(page, "write milk to a.txt")
        await page.until(f"{OPEN} !== null")
        await page.reload()
        await page.until(f"{READY} && {OPEN} !== null")
        await page.click(".ask[data-state=open] .main")
        await page.until(f"{IDLE} && {has(LAST, 'wrote 4 bytes')}")
        expect((folder / "files" / "a.txt").read_text() == "milk", "it was written")
        expect(await page.run("document.querySelectorAll('#log .ask').length") == 1, "it is asked once")
        await clean(page)


async def interjections_are_answered(chrome, path):
    async with agent(path, "--pace", "60ms") as (real, _), chrome.page(real) as page:
        await say(page, "!slow 20 60")
        await page.until(BUSY)
        await page.type("count to 4")
        await page.press("Enter")
        await page.until("document.querySelector('#log .queued') !== null")
        await page.until(f"{IDLE} && {has(LAST, '1 2 3 4')}")
        expect(await page.run("document.querySelector('#log .queued') === null"), "it was read")
        said = await page.run("[...document.querySelectorAll('#log .agent .text')].map(it => it.textContent)")
        expect(len(said) == 2 and said[0].endswith("20"), f"both are answered: {said}")
        await clean(page)


async def stop(chrome, path):
    async with agent(path) as (real, _), chrome.page(real) as page:
        await say(page, "!slow 1000 100")
        await page.until(BUSY)
        await page.click("#stop")
        await page.until(f"{IDLE} && {has(LAST, 'What would you like me to do?')}")
        await ask(page, "count to 2", "1 2")
        await clean(page)


async def a_failure_is_shown(chrome, path):
    async with agent(path) as (real, _), chrome.page(real) as page:
        await say(page, "!fail it hurts")
        await page.until(f"{IDLE} && {has('document.querySelector(`#log .failure`)', 'it hurts')}")
        await ask(page, "count to 2", "1 2")
        await clean(page)


async def strangers_need_a_code(chrome, path):
    async with agent(path, "--trust", "careful", "--invite", "red onion") as (real, folder), chrome.page(real) as page:
        await page.until(GATED)
        await page.until("document.activeElement.id === 'invite'")
        await page.type("blue onion")
        await page.press("Enter")
        await page.until(has("document.getElementById('gate-error')", "Invalid invite code"))
        await page.run("document.getElementById('invite').value = ''")
        await page.type("red onion")
        await page.press("Enter")
        await page.until(f"{READY} && !({GATED})")
        await ask(page, "count to 2", "1 2")
        await page.reload()
        await page.until(READY)
        expect(not await page.run(GATED), "it is known now")
        expect(len((folder / "contacts.txt").read_text().split()) == 1, "and is remembered")
        await clean(page)


async def another_chat_is_empty(chrome, path):
    async with agent(path) as (real, _), chrome.page(real) as page:
        await ask(page, "count to 2", "1 2")
        await page.until(f"({KEPT} ?? '').includes('1 2')")
        before = await page.run(f"JSON.parse({KEPT}).sessionId")
        await page.click("#fresh")
        await page.until(f"{READY} && document.querySelector('#log').childElementCount === 0")
        await ask(page, "count to 3", "1 2 3")
        await page.until(f"({KEPT} ?? '').includes('1 2 3')")
        after = await page.run(f"JSON.parse({KEPT}).sessionId")
        expect(before != after, "it has another session")
        await clean(page)


async def two_pages_see_the_same(chrome, path):
    async with agent(path) as (real, _), chrome.page(real) as page:
        await ask(page, "count to 2", "1 2")
        # A page writes its memory down a moment later.
        await page.until(f"({KEPT} ?? '').includes('1 2')")
        kept = await page.run("JSON.stringify({ ...localStorage })")
        copy = f"if (location.origin !== 'null') Object.assign(localStorage, {kept});"
        async with chrome.page(real, before=copy) as other:
            await other.until(f"{READY} && {has(LAST, '1 2')}")
            await ask(page, "count to 3", "1 2 3")
            await other.until(f"{IDLE} && {has(LAST, '1 2 3')}")
            expect(await other.run("document.querySelectorAll('#log .user').length") == 2, "also what was asked")
            await clean(other)
        await clean(page)


async def images_and_files_go_along(chrome, path):
    async with agent(path) as (real, folder), chrome.page(real) as page:
        await page.until(READY)
        await page.run(
            "const data = new DataTransfer(); const picker = document.getElementById('files');"
            " data.items.add(new File(['milk and bread'], 'note.txt', { type: 'text/plain' }));"
            " data.items.add(new File(['no'], 'other.txt', { type: 'text/plain' }));"
            " data.items.add(new File([new Uint8Array([137, 80])], 'dot.png', { type: 'image/png' }));"
            " picker.files = data.files; picker.dispatchEvent(new Event('change'))"
        )
        await page.until("document.querySelectorAll('#along button').length === 3")
        await page.click("#along li:nth-child(2) button")
        await ask(page, "read the file", "an image of type image/png with 2 bytes")
        expect(await page.run("document.getElementById('along').hidden"), "they go along once")
        shown = await page.run("[...document.querySelectorAll('#log .user .small')].map(it => it.textContent)")
        expect(shown == ["note.txt", "dot.png"], f"the message names them: {shown}")
        saved = [file.read_text() for file in (folder / "files" / "uploads").iterdir()]
        expect(saved == ["milk and bread"], f"the file was saved, the image was shown to the model: {saved}")
        await page.until(f"({KEPT} ?? '').includes('data:image/png;base64,iVA=')")
        await clean(page)


async def a_long_conversation_is_made_shorter(chrome, path):
    said = [{"role": role, "content": "hi"} for _ in range(150) for role in ("user", "assistant")]
    kept = json.dumps({"session": {"messages": said, "turn": 150}, "items": []})
    chat = "0" * 32
    listed = json.dumps([{"id": chat, "title": "hi", "at": 0}])
    before = (
        f"if (location.origin !== 'null') {{ localStorage.setItem('agent-chats', {json.dumps(listed)});"
        f" localStorage.setItem('agent-chat-{chat}', {json.dumps(kept)}); }}"
    )
    async with agent(path) as (real, _), chrome.page(real, before=before) as page:
        await ask(page, "count to 2", "1 2")
        notices = await page.run("[...document.querySelectorAll('#log .notice')].map(it => it.textContent)")
        expect(len(notices) == 1 and "made shorter" in notices[0], f"it says so once: {notices}")
        await clean(page)


async def markup_is_text(chrome, path):
    async with agent(path) as (real, folder), chrome.page(real) as page:
        (folder / "files" / "a.txt").write_text(MARKUP)
        await ask(page, "read a.txt", "onerror")
        made = await page.run("document.querySelectorAll('main img, main script, main b').length")
        expect(made == 0, "nothing of it became an element")
        expect(await page.run("document.title") == "Agent chat", "nothing of it ran")
        await clean(page)


async def foreign_pages(chrome, path):
    async with agent(path) as (real, _):
        port = real.rsplit(":", 1)[1]
        async with chrome.page(f"http://evil.test:{port}/") as page:
            expect(page.statuses[0][1] == 403, f"under a foreign name it is refused: {page.statuses}")


CHECKS = {
    "the agent's page loads, and the agent answers": loads_and_answers,
    "the page has a key of its own": a_key_is_made_once,
    "without a key it goes unsigned, if it may": without_a_key_it_goes_unsigned,
    "a question is answered": a_question_is_answered,
    "a tool waits for leave": a_tool_waits_for_leave,
    "a mode needs no leave": a_mode_needs_no_leave,
    "a reload in the middle of a run": reload_in_the_middle,
    "the answer came while the page was away": answered_while_away,
    "leave is given after a reload": leave_is_given_after_a_reload,
    "interjections are answered": interjections_are_answered,
    "Stop interrupts the agent": stop,
    "an agent's failure is shown": a_failure_is_shown,
    "strangers need an invite code": strangers_need_a_code,
    "another chat is empty": another_chat_is_empty,
    "two pages see the same conversation": two_pages_see_the_same,
    "images and files go along": images_and_files_go_along,
    "a long conversation is made shorter": a_long_conversation_is_made_shorter,
    "markup of the agent stays text": markup_is_text,
    "the agent's page under a foreign name": foreign_pages,
}
