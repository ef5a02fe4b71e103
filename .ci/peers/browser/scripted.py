"""The gateway's page, against a gateway that does what it is told: silence, noise, failures, a line that is cut."""
# Needs: browser.

from actor import HELD, Actor, GatewayLine
from chatpage import (
    ANSWER, ANSWERING, ASKS_FOR_TOKEN, DONE, FAILURE, INPUT, READY, STATE, TOKEN_ERROR, enter, has, many, say,
    write
)
from chrome import browser
from gateways import gateway
from harness import expect, main, same

WAITS = "!document.getElementById('waits').hidden"
# Each part of an answer: the text, or what a tool shows.
PARTS = f"""[...{ANSWER}.children].filter((it) => it.matches('.text, .tool')).map((it) => it.matches('.text') ?
  it.textContent : [it.querySelector('.name').textContent, it.dataset.state,
    ...[...it.querySelectorAll('pre')].map((it) => it.textContent)])"""
# What a page does not understand.
NOISE = [
    "not json", "", "[]", "null", "7", b"\x00", {}, {"event": 7}, {"event": "text"}, {"event": "text", "data": {"x": "WRONG"}},
    {"event": "tool_use", "data": 7}, {"event": "usage"}, {"event": "tool_result", "data": []}, {"event": "past"},
    {"event": "usage", "data": {"input_tokens": "WRONG"}}, {"event": "invented", "data": {"x": "WRONG"}},
    {"event": "constructor", "data": "WRONG"},
]
# No wait before another try: its length is written down.
NO_WAITS = """window.waits = []; const real = setTimeout; window.setTimeout = (then, ms) =>
  real(then, then.name === "open" ? (waits.push(ms), 1) : ms);"""

async def keys_send_break_lines_and_stop(actor):
    async with actor.line() as (page, line):
        await page.until(READY)
        for nothing in ("", "   "):
            await enter(page, nothing)
        await write(page, "first")
        await page.press("Shift+Enter")
        await page.enter("second")
        same(await line.asked(), "first\nsecond", "the question")
        await page.until(ANSWERING)
        await page.press("Enter")
        expect(not await page.run(WAITS), "nothing is typed, so nothing waits")
        await page.type("not now")
        await line.event("done")
        await page.until(f"{DONE} && {INPUT} === 'not now'")
        await enter(page, "third")
        same(await line.asked(), "third", "the question")
        await page.until(ANSWERING)
        await page.press("Escape")
        await line.stopped()
        await page.until(f"{DONE} && {has(ANSWER, 'Stopped')}")

async def what_is_sent_during_an_answer_waits(actor):
    async with actor.line() as (page, line):
        await say(page, "first", ANSWERING)
        await line.question()
        await enter(page, "second")
        await page.until(f"{WAITS} && {INPUT} === 'second'")
        # Changed, it waits to be sent again.
        await page.type(", better")
        await page.until(f"!({WAITS})")
        await page.press("Enter")
        await page.until(WAITS)
        await line.delta("the first answer")
        await page.until(f"{has(ANSWER, 'the first answer')} && {INPUT} === 'second, better'")
        await line.event("done")
        same(await line.asked(), "second, better", "the question")
        await page.until(f"{ANSWERING} && {INPUT} === '' && !({WAITS})")
        # Behind a failure the user decides.
        await enter(page, "third")
        await page.until(WAITS)
        await line.fail("provider error: overloaded")
        await page.until(f"{DONE} && !({WAITS}) && {INPUT} === 'third'")
        await page.press("Enter")
        same(await line.asked(), "third", "the question")

async def an_answer_has_texts_tools_and_the_sum_of_its_tokens(actor):
    async with actor.line() as (page, line):
        await say(page, "use  <tools>")
        asked = await line.question()
        chat = await page.run("JSON.parse(localStorage.getItem('gateway-chats'))[0].id")
        same(line.request.path, f"/chats/{chat}", "the chat")
        same(asked["content"], "use  <tools>", "the question")
        await line.delta("Let me see.")
        for name, args in [("search", {"words": ["x", 1]}), ("clock", {}), ("lost", None)]:
            await line.event("tool_use", {"id": name, "name": name, "input": args})
        await page.until(f"{many('.tool[data-state=running]', 3)} && {many('.tool[open]', 0)}")
        await line.event("tool_result", {"tool_use_id": "clock", "content": "unknown tool: clock", "is_error": True})
        await line.event("tool_result", {"tool_use_id": "search", "content": "found 3"})
        await line.event("tool_result", {"tool_use_id": "other", "content": {"stray": True}, "is_error": False})
        await line.delta("I found three.")
        for tokens in [(150, 42), (50, 8)]:
            await line.event("usage", {"input_tokens": tokens[0], "output_tokens": tokens[1]})
        await line.event("done")
        await page.until(f"{DONE} && {has(ANSWER, '200 tokens in, 50 out')}")
        same(await page.run(PARTS), [
            "Let me see.",
            ["search", "done", '{\n  "words": [\n    "x",\n    1\n  ]\n}', "found 3"],
            ["clock", "failed", "{}", "unknown tool: clock"],
            ["lost", "ended", "{}"],
            ["tool", "done", '{\n  "stray": true\n}'],
            "I found three.",
        ], "shown")
        await page.click(".tool summary", many(".tool[open]", 1))
        await page.press("Enter")
        await page.until(many(".tool[open]", 0))
        await say(page, "more")
        expect((await line.question())["id"] not in (asked["id"], "", "0"), "each question has an id of its own")
        await line.event("done")
        await page.until(f"{DONE} && {has(ANSWER, 'empty')}")

async def noise_is_ignored_and_failures_end_an_answer(actor):
    async with actor.line() as (page, line):
        await say(page, "hello")
        await line.question()
        for frame in NOISE:
            await line.send(frame)
        await line.delta("right")
        await page.until(f"{has(ANSWER, 'right')} && {ANSWERING}")
        await line.fail("provider error: no API key")
        await page.until(f"{DONE} && {has(FAILURE, 'no API key')} && {has(ANSWER, 'right')}")
        # What comes after the end has come when the next answer has.
        await line.delta("WRONG")
        await line.event("done")
        await say(page, "more")
        await line.question()
        await line.fail("token budget exceeded (session: 9500/10000)")
        await page.until(f"{DONE} && {has(FAILURE, 'budget exceeded')}")
        expect(not await page.run(has("document.getElementById('log')", "WRONG")), "nothing else is shown")

async def a_line_that_is_cut_is_replaced_and_the_answer_goes_on(actor):
    async with actor.lines(before=HELD) as (page, opened):
        line = await opened()
        await line.greet({"id": "0" * 32, "user": "before", "assistant": "**then**", "mark": None})
        await say(page, "talk")
        asked = await line.question()
        await line.delta("half an ans")
        await page.until(has(ANSWER, "half an ans"))
        await page.run("window.kept = document.querySelector('#log .agent'), true")
        await line.cut()
        await page.until(f"{STATE} === 'lost' && {has('document.getElementById(`status`)', 'Connection lost')}")
        await write(page, "a draft")
        await page.click("#retry", f"{STATE} === 'connecting' && document.getElementById('retry').hidden")
        line = await opened()
        await line.greet({"id": "0" * 32, "user": "before", "assistant": "**then**", "mark": None})
        await line.send({"event": "asked", "data": asked})
        await line.delta("half an answer")
        await page.until(f"{READY} && {ANSWERING} && {has(ANSWER, 'half an answer')} && {many('#log article', 4)}")
        expect(await page.run("kept.isConnected"), "what has not changed stays")
        await line.event("done")
        await page.until(f"{DONE} && {INPUT} === 'a draft'")
        await page.reload()
        await (await opened()).greet()
        await page.until(f"{READY} && {INPUT} === 'a draft'")

async def a_question_that_is_asked_again_takes_the_place_of_its_answer(actor):
    async with actor.line() as (page, line):
        await say(page, "first")
        asked = await line.question()
        await line.delta("one")
        await line.event("done")
        await page.click("#log .again", ANSWERING)
        same(await line.question(), asked, "the same question")
        await line.delta("two")
        await line.event("done")
        await page.until(f"{DONE} && {has(ANSWER, 'two')} && {many('#log article', 2)}")
        # Another page does the same.
        await line.send({"event": "asked", "data": asked})
        await line.delta("three")
        await line.event("done")
        await page.until(f"{DONE} && {has(ANSWER, 'three')} && {many('#log article', 2)}")

async def each_try_waits_longer(actor):
    async with actor.lines(before=NO_WAITS) as (page, opened):
        for _ in range(8):
            await (await opened()).refuse(503)
        line = await opened()
        await line.greet()
        await page.until(READY)
        await line.cut()
        await (await opened()).greet()
        await page.until(READY)
        waits, longest = await page.run("waits"), [1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 1000]
        same([0.8 * most <= wait <= most for wait, most in zip(waits, longest, strict=True)], [True] * 9, f"{waits}")

async def a_gateway_may_want_a_token(actor):
    async with actor.lines(before=HELD) as (page, opened):
        await (await opened()).refuse()
        await page.until(ASKS_FOR_TOKEN)
        same(await page.run(f"{TOKEN_ERROR}.textContent"), "", "nothing was refused")
        await page.enter("half a token")
        line = await opened()
        same(line.request.headers["Authorization"], "Bearer half a token", "what is sent")
        await line.refuse()
        await page.until(f"{has(TOKEN_ERROR, 'refused')} && {ASKS_FOR_TOKEN}")
        await page.enter("right")
        await (line := await opened()).greet()
        await page.until(READY)
        await line.cut()
        await page.click("#retry", f"{STATE} === 'connecting'")
        line = await opened()
        same(line.request.headers["Authorization"], "Bearer right", "what is sent by itself")
        await line.refuse()
        await page.until(f"{has(TOKEN_ERROR, 'refused')} && {ASKS_FOR_TOKEN}")

async def a_gateway_that_is_silent_for_long_is_left(actor):
    async with actor.lines(before=HELD) as (page, opened):
        line = await opened()
        await line.greet()
        await page.until(READY)
        await page.run("silences.at(-1)()")
        await line.closed()
        await page.until(f"{STATE} === 'lost' && {has('document.getElementById(`status`)', 'silent')}")

async def body(checks):
    async with gateway(config="") as real, browser() as chrome:
        await checks.each((
            an_answer_has_texts_tools_and_the_sum_of_its_tokens, noise_is_ignored_and_failures_end_an_answer,
            keys_send_break_lines_and_stop, what_is_sent_during_an_answer_waits, each_try_waits_longer,
            a_line_that_is_cut_is_replaced_and_the_answer_goes_on, a_gateway_may_want_a_token,
            a_question_that_is_asked_again_takes_the_place_of_its_answer, a_gateway_that_is_silent_for_long_is_left,
        ), Actor(chrome, real, GatewayLine))

main(body)
