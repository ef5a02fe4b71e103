"""The gateway's page in a browser, against the real gateway, also with a provider that fails."""
# Needs: browser.

import json
import tempfile

import aiohttp
from aiohttp import web
from chatpage import (
    ANSWER, ANSWERING, ASKS_FOR_TOKEN, DONE, EMPTY, FAILURE, FOCUS, QUESTION, READY, SAID, SHARED, STATE, TITLES,
    TOKEN_ERROR, ask, chats_are_kept_in_a_list, equals, fresh, has, many, say
)
from chrome import browser
from gateways import TOKEN, agent, gateway
from harness import expect, main, same
from provider import KEY, Provider
from screen import DESKTOP, PHONE, accessible, look
from sockets import http_server

# What no script of the page may do.
FORBIDDEN = [
    "document.body.innerHTML = '<p>markup'",
    "document.createElement('script').textContent = 'window.ran = 1'",
    "document.body.setAttribute('onclick', 'window.ran = 1'); document.body.click(); if (!window.ran) throw 1",
    "await new Promise((onload, onerror) => document.body.append(Object.assign("
    "document.createElement('script'), { onload, onerror, src: 'data:,window.ran=1' })))",
    "await fetch('http://other.test/')",
    "await new Promise((onopen, onerror) => Object.assign(new WebSocket('ws://other.test/ws'), { onopen, onerror }))",
]
# What the user says to the provider, see there, and what the page has to say then.
FAILURES = {
    "!http 401": "refused the key",
    "!http 404": "refused the request",
    "!http 429": "limits the requests",
    "!http 529": "is overloaded",
    "!http 500": "has failed",
    "!leak 403": "not allow",
    "!midstream": "overload",
    "!cut": "before the end",
    "!eof": "before the end",
    "!garbage": "is not one of this provider",
}
HANGS = {"!silent": "raise model_timeout", "!stall": "raise model_timeout"}
HALVES = {"!midstream", "!cut", "!eof", "!stall"}
# The words for a failure, without the folded detail.
WORDS = f"({FAILURE}?.querySelector('p').textContent ?? '')"

async def the_page_loads_its_own_files_and_connects(chrome, real):
    async with chrome.page(real.http) as page:
        await page.until(READY)
        loaded = {address.removeprefix(real.http) for address, status in page.statuses if status == 200}
        # Not every browser wants to see the icon.
        others = ("/icon.svg", "/manifest.json", "/models", "/chats/")
        loaded = {path for path in loaded if not path.startswith(others)}
        same(loaded, {"/", "/app.js", "/line.js", "/memory.js"} | SHARED, "its files")
        expect(not await page.run(ASKS_FOR_TOKEN), "no token is asked for")
        await page.goto(f"{real.http}/any/other/path")
        await page.until(READY)
        for attempt in FORBIDDEN:
            expect(await page.run(f"(async () => {{ {attempt} }})().then(() => false, () => true)"), attempt)
        expect(await page.run("window.ran === undefined"), "no script ran")
        page.problems.clear()

async def a_browser_has_a_session_of_its_own_which_a_reload_shows_again(chrome, real):
    async with chrome.page(real.http) as page, chrome.page(real.http) as other:
        await ask(page, "My name is Ann <b>.")
        expect(await page.run(has(QUESTION, "My name is Ann <b>.")), "the question is shown as it was typed")
        await ask(page, "count to 2", "1 2")
        await ask(other, "hello")
        said = await page.run(SAID)
        expect(len(said) == 4 and all(said) and "Ann" not in str(await other.run(SAID)), f"others see {said}")
        await page.reload()
        await page.until(f"{READY} && {DONE} && {equals(SAID, said)}")
        await ask(page, "And what now?")
        same((await page.run(SAID))[:5], [*said, "And what now?"], "it goes on below what was there")

async def markdown_and_tools_are_shown(chrome, real):
    async with chrome.page(real.http) as page:
        await ask(page, "show markdown", "A sample")
        same(await page.run(f"{ANSWER}.querySelectorAll('ol, table, pre code').length"), 3, "a list, a table, code")
        await ask(page, '!call echo {"message":"hi"}', "echo")
        expect(await page.run(many(".tool:is([data-state=done], [data-state=failed])", 1)), "the tool has ended")
        await page.click(".tool summary", has(f"{ANSWER}.querySelector('.tool .input')", '"message": "hi"'))
        expect(await page.run(f"{ANSWER}.querySelector('.tool .result').innerText !== ''"), "it has a result")
        await accessible(page, "gateway-markdown-and-tool")

async def what_is_known_is_shown_and_forgotten(chrome, real):
    async with chrome.page(real.http) as page:
        await ask(page, '!call remember {"subject":"user","relation":"name","value":"<b>Ann"}', "noted")
        await page.click("#memory summary", has("document.querySelector('#memory-list')", "user, name: <b>Ann"))
        await accessible(page, "gateway-memory")
        await page.click("#memory .remove", many("#memory-list li", 0))

async def shown_again(page, question, became):
    """After a reload the first question and what became of its answer are there."""
    await page.reload()
    first = [f"document.querySelector('#log .{who}')" for who in ("user", "agent")]
    await page.until(f"{READY} && {has(first[0], question)} && {has(first[1], became)}")

async def an_answer_goes_on_in_all_tabs_and_after_a_reload_until_it_is_stopped(chrome, real):
    async with chrome.page(real.http) as page, chrome.page() as other:
        await say(page, "!slow 1000", f"{ANSWERING} && {has(ANSWER, '1 2')}")
        await other.goto(await page.run("location.href"))
        await other.until(f"{READY} && {ANSWERING} && {has(ANSWER, '1 2 3')}")
        await page.reload()
        await page.until(f"{READY} && {ANSWERING} && {has(ANSWER, '1 2 3 4')} && {many('#log article', 2)}")
        await other.click("#stop", f"{DONE} && {has(ANSWER, 'Stopped')}")
        await page.until(f"{DONE} && {has(ANSWER, 'Stopped')}")
        await ask(page, "hello")
        await other.until(f"{DONE} && {many('#log article', 4)} && {has(QUESTION, 'hello')}")
        await shown_again(page, "!slow 1000", "Stopped.")

async def a_question_outlives_the_gateway_and_what_was_seen_of_its_answer_the_page(chrome):
    with tempfile.TemporaryDirectory() as folder:
        async with gateway(folder=folder, config="") as real:
            async with chrome.page(real.http) as page:
                await say(page, "!slow 1000", f"{ANSWERING} && {has(ANSWER, '1 2')}")
                chat = await page.run("location.hash")
                await real.program.kill()
                await page.until(f"{STATE} === 'lost'")
                async with gateway(folder=folder, config="", port=real.port) as real:
                    became = f"{DONE} && {has(ANSWER, '1 2')} && {has(FAILURE, 'the gateway ended')}"
                    await page.until(f"{READY} && {became}")
                    await page.reload()
                    await page.until(f"{READY} && {has(QUESTION, '!slow 1000')} && {became}")
                    async with chrome.page(f"{real.http}/{chat}") as other:
                        await other.until(f"{READY} && {has(QUESTION, '!slow 1000')} && {has(FAILURE, 'the gateway ended')}")
                page.problems.clear()

async def an_edited_message_begins_a_chat_of_its_own(chrome, real):
    async with chrome.page(real.http) as page:
        await ask(page, "count to 2", "1 2")
        await ask(page, "count to 3", "1 2 3")
        before, address = await page.run(SAID), await page.run("location.hash")
        await page.run(f"{QUESTION}.querySelector('.edit').focus()")
        await page.click("#log .user:nth-child(3) .edit", "document.activeElement.matches('.editing textarea')")
        await page.press("Escape")
        await page.until("document.activeElement.matches('.edit')")
        await page.click("#log .user:nth-child(3) .edit", "document.activeElement.matches('.editing textarea')")
        await accessible(page, "gateway-edit")
        await look(page, *DESKTOP)
        await page.run("document.activeElement.select()")
        await page.enter("count to 4")
        after = [*before[:2], "count to 4", "I count: 1 2 3 4 - done"]
        await page.until(f"{READY} && {DONE} && {equals(SAID, after)} && location.hash !== {json.dumps(address)}")
        same(await page.run(TITLES), ["count to 2"] * 2, "both are in the list")
        await page.reload()
        await page.until(f"{READY} && {equals(SAID, after)} && {has(ANSWER, 'tokens in')} && {many('#log time', 4)}")
        await page.goto(f"{real.http}/{address}")
        await page.until(f"{READY} && {equals(SAID, before)}")

async def a_chat_that_is_not_there_says_so(chrome, real):
    async with chrome.page(real.http) as page:
        greeting = "document.getElementById('greeting')"
        await page.until(f"{READY} && {EMPTY} && {has(greeting, 'What would you like')}")
        await page.reload()
        await page.until(f"{READY} && {has(greeting, 'What would you like')}")
        for wrong in [32 * "0", "12"]:
            await page.goto("about:blank")
            await page.goto(f"{real.http}/#{wrong}")
            await page.until(f"{READY} && {EMPTY} && {has(greeting, 'no chat at this address')}")
        await page.click(".example:nth-child(2)", f"{DONE} && {has(ANSWER, '1 2 3')}")
        async with chrome.page(await page.run("location.href"), beside=page) as other:
            await other.until(f"{READY} && {DONE} && {has(ANSWER, '1 2 3')}")
            await page.click("#chat-list .remove", many("[data-sure]", 1))
            await page.click("#chat-list .remove", many("#chat-list li", 0))
            await other.until(f"{EMPTY} && {has(greeting, 'was deleted')}")

async def chats_have_names_and_are_found_by_what_is_said_in_them(chrome, real):
    async with chrome.page(real.http) as page:
        await ask(page, "count to 2", "1 2")
        await page.run("document.getElementById('title').select()")
        await page.enter("My numbers")
        await page.until(f"{equals(TITLES, ['My numbers'])} && {FOCUS} === 'input'")
        await fresh(page)
        await ask(page, "count to 3", "1 2 3")
        same(await page.run(TITLES), ["count to 3", "My numbers"], "the list")
        await page.run("document.getElementById('search').focus()")
        await page.type("I COUNT: 1 2 -")
        await page.until(equals(TITLES, ["My numbers"]))
        await page.type(" nothing of it")
        none = has("document.getElementById('no-chats')", "No chat has these words")
        await page.until(f"{equals(TITLES, [])} && {none}")

async def a_conversation_is_printed_whole_and_copied_without_buttons(chrome, real):
    async with chrome.page(real.http) as page:
        for _ in range(4):
            await ask(page, "show markdown", "A sample")
        await page.run("getSelection().selectAllChildren(document.getElementById('log'))")
        copied = await page.run("getSelection().toString()")
        expect("fn greet" in copied and not any(word in copied for word in ["Copy", "Retry", "Edit"]), copied[:200])
        pages = (await page.page.pdf()).count(b"/Type /Page\n")
        expect(pages >= 3, f"{pages} pages are printed")
        await page.page.emulate_media(media="print")
        whole = "document.documentElement.scrollHeight >= document.getElementById('log').scrollHeight"
        expect(await page.run(f"{whole} && document.getElementById('log').scrollHeight > 2 * innerHeight"), "all is on paper")
        same(await page.run("document.getElementById('composer').offsetHeight"), 0, "the field is not")

async def a_page_below_a_path_of_another_server_works(chrome, real):
    async def serve(request):
        expect(request.path.startswith("/below/path/"), f"the page asks for {request.path}")
        path = request.path.removeprefix("/below/path")
        async with client.request(
            request.method, f"{real.http}{path}", data=await request.read(), headers={"Content-Type": request.content_type}
        ) as answer:
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.headers["Content-Type"]})
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            return response

    async with aiohttp.ClientSession() as client, http_server(serve) as port:
        async with chrome.page(f"http://127.0.0.1:{port}/below/path/") as page:
            await ask(page, "count to 2", "1 2")

async def a_token_is_asked_for_refused_and_accepted(chrome):
    async with gateway(None, "--token", TOKEN, config="") as guarded, chrome.page(guarded.http) as page:
        await page.until(f"{ASKS_FOR_TOKEN} && {FOCUS} === 'token'")
        same(await page.run("document.activeElement.type"), "password", "it is not shown")
        await page.enter("not the token")
        await page.until(f"{has(TOKEN_ERROR, 'refused')} && {ASKS_FOR_TOKEN} && {FOCUS} === 'token'")
        same(await page.run("sessionStorage.getItem('gateway-token')"), None, "a refused token is not kept")
        await accessible(page, "gateway-token")
        await page.enter(TOKEN)
        await page.until(f"{READY} && document.getElementById('auth').hidden")
        await ask(page, "hello")
        await page.reload()
        await page.until(f"{READY} && {has(QUESTION, 'hello')}")
        expect(not await page.run(ASKS_FOR_TOKEN), "it is kept in this tab")
        kept = await page.run("[Object.keys(localStorage).join(), document.cookie]")
        same(kept, ["gateway-chats", ""], "what else is kept")
        async with chrome.page(guarded.http) as other:
            await other.until(ASKS_FOR_TOKEN)

async def chats_of_a_browser(chrome, real, size):
    async with chrome.page() as page:
        await chats_are_kept_in_a_list(page, real.http, size)

async def failures_are_told_in_words_also_after_a_reload(chrome, failures, config):
    async with Provider() as provider, gateway(provider, config=config) as real, chrome.page(real.http) as page:
        first = next(iter(failures))
        for count, (said, part) in enumerate(failures.items(), 1):
            await say(page, said, f"{many('#log .agent', count)} && {DONE} && {WORDS} !== ''")
            words = await page.run(WORDS)
            became = words if said == first else became
            expect(part in words and "{" not in words, f"{said} is shown as {words!r}")
            expect(KEY not in await page.run("document.documentElement.outerHTML"), f"{said}: the key is shown")
            expect(not await page.run(f"{FAILURE}.querySelector('details')?.open"), f"{said}: the detail is not folded")
        # What came before a failure stays, and the next question is answered.
        await ask(page, "hi", "Hello world")
        same((await page.run(SAID)).count("half"), sum(said in HALVES for said in failures), "half answers")
        await shown_again(page, first, became)

async def body(checks):
    async with gateway(config="") as real, browser() as chrome:
        for failures, config in [(FAILURES, None), (HANGS, {"agent": agent(model_timeout="2s")})]:
            checks.beside(failures_are_told_in_words_also_after_a_reload, chrome, failures, config)
        await checks.each((
            the_page_loads_its_own_files_and_connects, markdown_and_tools_are_shown,
            what_is_known_is_shown_and_forgotten, a_browser_has_a_session_of_its_own_which_a_reload_shows_again,
            an_answer_goes_on_in_all_tabs_and_after_a_reload_until_it_is_stopped,
            a_page_below_a_path_of_another_server_works, an_edited_message_begins_a_chat_of_its_own,
            a_chat_that_is_not_there_says_so, chats_have_names_and_are_found_by_what_is_said_in_them,
            a_conversation_is_printed_whole_and_copied_without_buttons,
        ), chrome, real)
        await checks.run(a_token_is_asked_for_refused_and_accepted, chrome)
        await checks.run(a_question_outlives_the_gateway_and_what_was_seen_of_its_answer_the_page, chrome)
        for size in (DESKTOP, PHONE):
            await checks.run(chats_of_a_browser, chrome, real, size, name=f"chats of a browser, {size[0]} px wide")
        await checks.finished()

main(body)
