"""The agent's page in a browser, against the real agent: its tools, its questions, reloads, files and invite codes."""
# Needs: browser.

import json

from chatpage import (
    ANSWER, ANSWERING, DONE, FAILURE, FOCUS, QUESTION, READY, SAID, SHARED, STATE, ask,
    chats_are_kept_in_a_list, equals, fresh, has, host, many, say, texts,
)
from chrome import browser
from harness import call, expect, main, same, switchboard, until
from screen import DESKTOP, PHONE, accessible, look

OWN = {f"/{part}.js" for part in ["along", "app", "ask", "events", "items", "key", "line", "memory"]}
OPEN = "document.querySelector('.ask[data-state=open]')"
ASKS = f"{OPEN} !== null"
CAN_BE_SEEN = f"{OPEN}.getBoundingClientRect().bottom <= document.querySelector('footer').getBoundingClientRect().top"
ALLOW, ALWAYS, REFUSE = (f".ask[data-state=open] .answers button:nth-child({place})" for place in (1, 2, 3))
TOOLS = """[...document.querySelectorAll('#log .tool')].map((it) =>
  it.querySelector('.name').textContent + ' ' + it.dataset.state)"""
ITEMS = "[...document.querySelectorAll('#log > *')].map((it) => it.innerText)"
# What the browser keeps of the chat at the top of the list.
KEPT = "(localStorage.getItem('agent-chat-' + JSON.parse(localStorage.getItem('agent-chats'))?.[0].id) ?? '')"
SESSIONS = """Object.keys(localStorage).filter((it) => it.startsWith('agent-chat-'))
  .map((it) => JSON.parse(localStorage.getItem(it)).sessionId)"""
GATED = "!document.getElementById('gate').hidden && document.getElementById('composer').hidden"
NO_KEYS = "Object.defineProperty(crypto, 'subtle', { value: undefined });"
# Three tools, one after the other. The one in the middle waits for leave.
WORK = """!call list_files {}
!call write_file {"path": "a.txt", "text": "milk"}
!call list_files {}"""
# The user picks three files. The two bytes of the image are not text.
PICK = """{ const data = new DataTransfer(); const picker = document.getElementById('files');
  data.items.add(new File(['milk'], 'a note with quite a long name.txt', { type: 'text/plain' }));
  data.items.add(new File(['no'], 'other.txt', { type: 'text/plain' }));
  data.items.add(new File([new Uint8Array([137, 80])], 'dot.png', { type: 'image/png' }));
  picker.files = data.files; picker.dispatchEvent(new Event('change')); }"""

async def the_page_loads_its_own_files_and_shows_a_tool_and_a_failure(chrome):
    async with host() as real, chrome.page(real.http) as page:
        (real.folder / "files" / "six.txt").write_text("42")
        await ask(page, call("read_file", path="six.txt"), "42")
        loaded = {address.removeprefix(real.http) for address, status in page.statuses if status == 200}
        same(loaded - {"/icon.svg"}, {"/", "/info"} | OWN | SHARED, "its files")
        same(await page.run(TOOLS), ["read_file done"], "the tools")
        same(await page.run(texts("#log .tool pre")), ['{\n  "path": "six.txt"\n}', "42"], "what they get and give")
        await say(page, "!fail it hurts", f"{DONE} && {has(FAILURE, 'it hurts')}")
        await ask(page, "count to 2", "1 2")
        # A name of somebody else that leads here.
        async with chrome.page() as other:
            await other.goto(f"http://evil.test:{real.port}/")
            same(other.statuses[0][1], 403, "the status under a foreign name")
            other.problems.clear()

async def a_browser_has_a_key_or_goes_unsigned(chrome):
    async with host("--signed") as real, chrome.page(real.http) as page:
        await page.until(READY)
        key = await page.run("localStorage.getItem('agent-key')")
        expect('"crv":"Ed25519"' in key, "it has a key of its own")
        await page.reload()
        await page.until(f"{READY} && localStorage.getItem('agent-key') === {json.dumps(key)}")
        async with chrome.page(real.http, before=NO_KEYS) as other:
            await other.until(has("document.getElementById('status')", "refuses this page: unauthorized"))
    async with host() as real, chrome.page(real.http, before=NO_KEYS) as page:
        await ask(page, "count to 2", "1 2")

async def a_question_is_answered_by_a_button_or_in_words(chrome):
    async with host() as real, chrome.page(real.http) as page:
        question = call("ask_user", question="Which colour I like?", options=["red", "green"])
        await say(page, question, f"{ASKS} && {has(OPEN, 'Which colour I like?')}")
        await accessible(page, "agent-question")
        await page.click(".ask .answers button:nth-child(2)", f"{DONE} && {has(ANSWER, 'green')}")
        await say(page, call("ask_user", question="My name?"), ASKS)
        await say(page, "Ann", f"{DONE} && {has(ANSWER, 'Ann')} && {many('#log .user', 2)}")

async def a_tool_waits_for_leave_but_not_in_another_mode(chrome):
    async with host() as real, chrome.page(real.http) as page:
        file = real.folder / "files" / "a.txt"
        await say(page, call("write_file", path="a.txt", text="milk"), f"{ASKS} && {CAN_BE_SEEN}")
        expect(await page.run(f"{has(OPEN, 'write_file')} && {has(OPEN, '+milk')}"), "the tool and its input are named")
        await accessible(page, "agent-approval")
        await page.click(REFUSE, f"{DONE} && {has(ANSWER, 'does not allow')}")
        expect(not file.exists(), "nothing was written")
        await say(page, call("write_file", path="a.txt", text="milk"))
        await page.click(ALLOW, f"{DONE} && {has(ANSWER, 'wrote 4 bytes')}")
        same(file.read_text(), "milk", "what was written")
        await say(page, call("write_file", path="a.txt", text="bread"))
        await page.click(ALWAYS, f"{DONE} && {has(ANSWER, 'wrote 5 bytes')}")
        await ask(page, call("write_file", path="a.txt", text="cheese"), "wrote 6 bytes")
        await fresh(page)
        await page.run("const it = document.getElementById('mode'); it.value = 'accept_edits';"
                       " it.dispatchEvent(new Event('change'))")
        await ask(page, call("write_file", path="a.txt", text="oranges"), "wrote 7 bytes")

async def a_run_goes_on_after_a_reload(chrome):
    async with host() as real, chrome.page(real.http) as page:
        await say(page, WORK, f"{ASKS} && {ANSWERING}")
        await page.reload()
        await page.until(f"{READY} && {ASKS} && {ANSWERING}")
        await page.click(ALLOW, f"{DONE} && {has(ANSWER, 'wrote 4 bytes')}")
        same((real.folder / "files" / "a.txt").read_text(), "milk", "what was written")
        same(await page.run(TOOLS), ["list_files done", "write_file done", "list_files done"], "the tools")
        expect(await page.run(f"{many('#log .user', 1)} && {many('#log .ask', 1)}"), "said once, asked once")
        before = await page.run(ITEMS)
        await page.until(f"{KEPT}.includes('\"running\":false')")
        await page.reload()
        await page.until(f"{READY} && {equals(ITEMS, before)}")
        await ask(page, "count to 2", "1 2")

async def a_question_outlives_the_agent(chrome):
    async with host() as real, chrome.page(real.http) as page:
        await say(page, "!slow 1000 100", f"{ANSWERING} && {has(ANSWER, '1 2')}")
        await real.kill()
        await page.until(f"{STATE} === 'lost'")
        page.problems.clear()
        args = ("--home", real.folder, "--listen", f"127.0.0.1:{real.port}")
        async with switchboard("agent", "host", *args) as again:
            await again.line("listening")
            await page.click("#retry", f"{READY} && {has(QUESTION, '!slow 1000')} && {has(FAILURE, 'no answer')}")
            await ask(page, "count to 2", "1 2")
            page.problems.clear()

async def what_happened_while_the_page_was_away_is_shown(chrome):
    async with host("--pace", "100ms") as real, chrome.page(real.http) as page:
        (real.folder / "files" / "six.txt").write_text("42")
        await say(page, "\n".join([call("read_file", path="six.txt")] * 3))
        # Written down before it goes.
        await page.until(f"{KEPT}.includes('\"sessionId\":\"')")
        await page.goto("about:blank")
        results = real.folder / "sessions.redb"
        await until(lambda: b"42; 42; 42" in results.read_bytes(), "the end of the run")
        await page.goto(real.http)
        await page.until(f"{READY} && {DONE} && {has(ANSWER, '42; 42; 42')} && {equals(TOOLS, ['read_file done'] * 3)}")

async def what_is_said_during_a_run_is_answered_as_well(chrome):
    async with host() as real, chrome.page(real.http) as page:
        await say(page, call("write_file", path="a.txt", text="milk"), ASKS)
        await say(page, "count to 4", "document.querySelector('#log .queued') !== null")
        await page.click(ALLOW, f"{DONE} && {has(ANSWER, '1 2 3 4')} && {many('#log .queued', 0)}")
        same(await page.run(TOOLS), ["write_file done"], "what was asked first")

async def stop_interrupts_the_agent_also_after_a_reload(chrome):
    async with host() as real, chrome.page(real.http) as page:
        await say(page, "!slow 1000 100", f"{ANSWERING} && {has(ANSWER, '1 2')}")
        await page.reload()
        await page.until(f"{READY} && {ANSWERING} && {has(ANSWER, '1 2 3')}")
        await page.click("#stop", f"{DONE} && {has(ANSWER, 'What would you like me to do?')}")
        await ask(page, "count to 2", "1 2")

async def strangers_need_an_invite_code(chrome):
    async with host("--trust", "careful", "--invite", "red onion") as real, chrome.page(real.http) as page:
        await page.until(f"{GATED} && {FOCUS} === 'invite'")
        await accessible(page, "agent-invite")
        refused = has("document.getElementById('gate-error')", "Invalid invite code")
        for code, effect in [("blue onion", refused), ("red onion", f"{READY} && !({GATED})")]:
            await page.run("document.getElementById('invite').select()")
            await page.enter(code)
            await page.until(effect)
        await ask(page, "count to 2", "1 2")
        await page.reload()
        await page.until(READY)
        expect(not await page.run(GATED), "it is known now")
        same(len((real.folder / "contacts.txt").read_text().split()), 1, "how many are remembered")

async def again(page):
    """Asks the last question again, which begins a session of its own: its answer may be there at once."""
    before = (await page.run(SESSIONS))[0]
    await page.click("#log article:last-child .again", f"!({SESSIONS}).includes('{before}')")

async def two_pages_see_the_same_conversation(chrome):
    async with host() as real, chrome.page(real.http) as page:
        await ask(page, "count to 2", "1 2")
        # A page writes its memory down a moment later.
        await page.until(f"{KEPT}.includes('1 2')")
        async with chrome.page(real.http, beside=page) as other:
            await other.until(f"{READY} && {has(ANSWER, '1 2')}")
            await ask(page, "count to 3", "1 2 3")
            await other.until(f"{DONE} && {has(ANSWER, '1 2 3')} && {many('#log .user', 2)}")
            await other.run(f"window.last = {ANSWER}, 0")
            await again(page)
            await other.until(f"!last.isConnected && {READY} && {DONE} && {many('#log .user', 2)} && {has(ANSWER, '1 2 3')}")
            await ask(other, "count to 4", "1 2 3 4")
            await page.until(f"{DONE} && {many('#log .user', 3)} && {has(ANSWER, '1 2 3 4')}")

async def images_and_files_are_sent(chrome):
    async with host() as real, chrome.page(real.http) as page:
        await page.until(READY)
        await page.run(PICK)
        await page.until(many("#along button", 3))
        await accessible(page, "agent-attachments")
        await page.click("#along li:nth-child(2) button", many("#along button", 2))
        await ask(page, "read the file", "an image of type image/png with 2 bytes")
        expect(await page.run("document.getElementById('along').hidden"), "they go along once")
        named = f"[...{QUESTION}.querySelectorAll('.small')].map((it) => it.textContent)"
        same(await page.run(named), ["a note with quite a long name.txt", "dot.png"], "what the message names")
        uploads = real.folder / "files" / "uploads"
        same([file.read_text() for file in uploads.iterdir()], ["milk"], "what was saved: the model has seen the image")
        await page.until(f"{KEPT}.includes('data:image/png;base64,iVA=')")
        # They go along again, and stay until the chat is deleted.
        await again(page)
        await page.until(f"{READY} && {DONE} && {has(ANSWER, 'an image of type image/png with 2 bytes')}")
        same([file.read_text() for file in uploads.iterdir()], ["milk"], "what was saved")
        await look(page, *DESKTOP)
        for expected in ("document.querySelector('.remove[data-sure]') !== null", many("#chat-list li", 0)):
            await page.click("#chat-list .remove", expected)
        same(list(uploads.iterdir()), [], "what stays of a chat that was deleted")

async def a_long_conversation_is_made_shorter(chrome):
    async with host("--context-tokens", "100") as real, chrome.page(real.http) as page:
        for count in (2, 3, 4):
            await ask(page, f"count to {count}", f"{count} - done")
        expect("made shorter" in str(await page.run(texts("#log .notice"))), "it says so")

async def each_chat_of_a_browser_is_a_session(chrome, size):
    async with host() as real, chrome.page() as page:
        await chats_are_kept_in_a_list(page, real.http, size)
        expect(b"count to 2" in (real.folder / "sessions.redb").read_bytes(), "the agent has stored it")
        await fresh(page)
        await ask(page, "count to 3", "1 2 3")
        await page.until(f"new Set(({SESSIONS}).filter((it) => it !== null)).size === 2")

async def an_edited_message_begins_a_session_of_its_own(chrome):
    async with host() as real, chrome.page(real.http) as page:
        await ask(page, "count to 2", "1 2")
        await ask(page, "count to 3", "1 2 3")
        before = await page.run(SAID)
        await page.run("document.querySelector('#log .user:nth-child(3) .edit').click()")
        await page.run("document.activeElement.select()")
        await page.enter("count to 4")
        after = [*before[:2], "count to 4", "I count: 1 2 3 4 - done"]
        await page.until(f"{READY} && {DONE} && {equals(SAID, after)}")
        await page.reload()
        await page.until(f"{READY} && {equals(SAID, after)} && {many('#log .usage:not(:empty)', 2)}")
        await page.run("history.back()")
        await page.until(f"{READY} && {equals(SAID, before)}")

async def body(checks):
    async with browser() as chrome:
        await checks.each((
            the_page_loads_its_own_files_and_shows_a_tool_and_a_failure, a_browser_has_a_key_or_goes_unsigned,
            a_question_is_answered_by_a_button_or_in_words, a_tool_waits_for_leave_but_not_in_another_mode,
            a_run_goes_on_after_a_reload, a_question_outlives_the_agent, what_happened_while_the_page_was_away_is_shown,
            what_is_said_during_a_run_is_answered_as_well, stop_interrupts_the_agent_also_after_a_reload,
            strangers_need_an_invite_code, two_pages_see_the_same_conversation, images_and_files_are_sent,
            a_long_conversation_is_made_shorter, an_edited_message_begins_a_session_of_its_own,
        ), chrome)
        for size in (DESKTOP, PHONE):
            name = f"each chat of a browser is a session, {size[0]} px wide"
            await checks.run(each_chat_of_a_browser_is_a_session, chrome, size, name=name)

main(body)
