"""The chat pages of the gateway and of the agent: what they show, as expressions, and what every check does."""

import contextlib
import json
import tempfile
from pathlib import Path

from harness import same, served
from screen import FITS, PHONE, look

# What the pages load of their common parts.
SHARED = {"/page/" + name for name in ["base.css", "app.css", "answer.css"]
          + [f"{part}.js" for part in ["answer", "chats", "composer", "connection", "dom", "edit", "markdown", "nodes",
                                       "theme", "view"]]
          + [f"vendor/{part}.mjs" for part in ["highlight", "markdown-it", "purify", "remend"]]}
STATE = "document.getElementById('status').dataset.state"
READY = f"{STATE} === 'ready'"
QUESTION = "[...document.querySelectorAll('#log .user')].at(-1)"
ANSWER = "[...document.querySelectorAll('#log .agent')].at(-1)"
FAILURE = f"{ANSWER}?.querySelector('.failure')"
EMPTY = "document.getElementById('log').childElementCount === 0"
INPUT = "document.getElementById('input').value"
FOCUS = "document.activeElement.id"
ANSWERING = "!document.getElementById('stop').hidden"
# Nothing goes on, and all of the answer is rendered.
DONE = f"document.getElementById('stop').hidden && !document.querySelector('#log .pending')"
ASKS_FOR_TOKEN = "!document.getElementById('auth').hidden && document.getElementById('composer').hidden"
TOKEN_ERROR = "document.getElementById('token-error')"
CHATS_ARE_OPEN = "document.getElementById('chats').contains(document.activeElement)"
MARKUP = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script><b>bold</b>"

def texts(selector):
    return f"[...document.querySelectorAll({json.dumps(selector)})].map((it) => it.textContent.trim())"

def has(it, part):
    return f"({it}?.innerText ?? '').includes({json.dumps(part)})"

def equals(it, value):
    """A comparison of what JSON can say."""
    return f"JSON.stringify({it}) === JSON.stringify({json.dumps(value)})"

def many(selector, count):
    return f"document.querySelectorAll('{selector}').length === {count}"

SAID = texts("#log .user .text, #log .agent .text")
TITLES = texts("#chat-list .title")

async def write(page, content):
    """Types into the field, in place of what is there."""
    await page.run("document.getElementById('input').select()")
    await page.type(content)
    await page.until(f"{INPUT} === {json.dumps(content)}")

async def enter(page, content):
    """Sends something: by Enter, which begins a new line where fingers write."""
    await write(page, content)
    if await page.run("matchMedia('(pointer: coarse)').matches"):
        await page.press("Enter")
        await page.until(f"{INPUT} === {json.dumps(content)} + '\\n'")
        await page.click("#send", f"{INPUT} !== {json.dumps(content)} + '\\n'")
    else:
        await page.press("Enter")

async def say(page, content, effect="true"):
    """Says something, which leaves the field, and waits for an expression to become true."""
    await page.until(READY)
    await enter(page, content)
    await page.until(f"{INPUT} === '' && {effect}")

async def ask(page, question, part=""):
    """Says something, and waits for another answer, which has this in it."""
    count = await page.run("document.querySelectorAll('#log .agent').length")
    await say(page, question, f"{many('#log .agent', count + 1)} && {DONE} && {has(ANSWER, part)}")

async def fresh(page):
    """Begins another chat, which is ready to be written to."""
    await page.click("#fresh", f"{READY} && {EMPTY} && {FOCUS} === 'input'")

@contextlib.asynccontextmanager
async def host(*args):
    """An agent with a home of its own; `http` is its address in a browser, `folder` its home."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        async with served("agent", "host", "--home", folder, *args) as running:
            running.http, running.folder = f"http://{running.address}", Path(folder)
            yield running

async def chats_are_kept_in_a_list(page, where, size):
    """New ones, back to an old one, a reload, and the end of one; the same for both pages."""
    await look(page, *size)
    await page.goto(where)
    await ask(page, "count to 2", "1 2")
    await ask(page, "count to 3", "1 2 3")
    first = await page.run(SAID)
    same([first[0], first[2]], ["count to 2", "count to 3"], "said")
    await fresh(page)
    await ask(page, "count to 4", "1 2 3 4")
    same(await page.run(TITLES), ["count to 4", "count to 2"], "the list")
    # A reload shows the chat that was open, and its draft; the browser leads back and forth.
    second = await page.run(SAID)
    await write(page, "a draft")
    await page.reload()
    await page.until(f"{READY} && {equals(SAID, second)} && {INPUT} === 'a draft'")
    await page.run("history.back()")
    await page.until(f"{READY} && {equals(SAID, first)} && {INPUT} === ''")
    await page.run("history.forward()")
    await page.until(f"{READY} && {equals(SAID, second)} && {INPUT} === 'a draft'")
    if size == PHONE:
        await page.click("#chats-open", CHATS_ARE_OPEN)
    await page.click("#chat-list li:nth-child(2) .chat", f"{READY} && {equals(SAID, first)}")
    for _ in range(5):
        await ask(page, "show markdown", "A sample")
    same([(await page.run(SAID))[:4], await page.run(FITS)], [first, True], "it goes on below, and the page fits")
    same(await page.run(TITLES), ["count to 2", "count to 4"], "the last one is the first of the list")
    # What is removed is gone for good. Pressing once is not enough.
    if size == PHONE:
        await page.click("#chats-open", CHATS_ARE_OPEN)
    await page.click("#chat-list li:nth-child(2) .remove", f"{many('[data-sure]', 1)} && {many('#chat-list li', 2)}")
    await page.click("#chat-list li:nth-child(2) .remove", equals(TITLES, ["count to 2"]))
    await page.reload()
    await page.until(f"{READY} && {many('#log article', 14)}")
    same(await page.run(TITLES), ["count to 2"], "the list after a reload")
