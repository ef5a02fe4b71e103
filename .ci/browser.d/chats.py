"""Several chats in one browser, against the real programs: new ones, the list, going back, and a reload."""

import json

import agents
from axe import DESKTOP, PHONE, look
from common import expect
from page import ANSWER, FREE, READY, clean, has, say

TITLES = "[...document.querySelectorAll('#chat-list .title')].map((it) => it.textContent)"
SAID = "[...document.querySelectorAll('#log .user .text, #log .agent .text')].map((it) => it.textContent.trim())"
EMPTY = "document.getElementById('log').childElementCount === 0"


async def ask(page, question, part):
    count = await page.run("document.querySelectorAll('#log .agent .text').length")
    await say(page, question)
    # An answer is rendered a moment after it is complete.
    await page.until(f"{FREE} && document.querySelectorAll('#log .agent .text').length > {count}"
                     f" && {has(ANSWER, part)} && {ANSWER}.querySelector('.tail') === null")


async def open_chat(page, title, is_phone):
    if is_phone:
        await page.click("#chats-open")
    number = (await page.run(TITLES)).index(title) + 1
    await page.click(f"#chat-list li:nth-child({number}) button:first-child")


async def come_back(page, where, size):
    is_phone = size == PHONE
    await look(page, *size)
    await page.goto(where)
    await page.until(READY)
    await ask(page, "count to 2", "1 2")
    await ask(page, "count to 3", "1 2 3")
    first = await page.run(SAID)
    expect([first[0], first[2]] == ["count to 2", "count to 3"], f"said: {first}")
    await page.click("#fresh")
    await page.until(f"{READY} && {EMPTY}")
    expect(await page.run("document.activeElement.id") == "input", "one may write at once")
    await ask(page, "count to 4", "1 2 3 4")
    second = await page.run(SAID)
    expect(await page.run(TITLES) == ["count to 4", "count to 2"], f"the list has both: {await page.run(TITLES)}")
    # The same after a reload, which shows the chat that was open.
    await page.reload()
    await page.until(f"{READY} && JSON.stringify({SAID}) === {json.dumps(json.dumps(second, separators=(',', ':')))}")
    await open_chat(page, "count to 2", is_phone)
    await page.until(f"{READY} && JSON.stringify({SAID}) === {json.dumps(json.dumps(first, separators=(',', ':')))}")
    await ask(page, "count to 5", "1 2 3 4 5")
    expect((await page.run(SAID))[:4] == first, "below what was there")
    expect(await page.run(TITLES) == ["count to 2", "count to 4"], "the last one is the first of the list")
    # Removed, it is gone for good.
    if is_phone:
        await page.click("#chats-open")
    await page.click("#chat-list li:nth-child(2) .remove")
    expect(len(await page.run(TITLES)) == 2, "once is not enough")
    await page.click("#chat-list li:nth-child(2) .remove")
    await page.until(f"({TITLES}).length === 1")
    await page.reload()
    await page.until(f"{READY} && ({SAID}).length === 6")
    expect(await page.run(TITLES) == ["count to 2"], "it stays away")
    await clean(page)


async def of_the_gateway(scene):
    for size in (DESKTOP, PHONE):
        async with scene.chrome.page() as page:
            await come_back(page, scene.gateway, size)


async def of_the_agent(scene):
    for size in (DESKTOP, PHONE):
        async with agents.agent(scene.switchboard) as (there, _), scene.chrome.page() as page:
            await come_back(page, there, size)


CHECKS = {
    "chats of the gateway's page: new, switched, shown again, removed": of_the_gateway,
    "chats of the agent's page: new, switched, shown again, removed": of_the_agent,
}
