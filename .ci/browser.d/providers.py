"""The gateway's page while its provider misbehaves: what is wrong is said in words, and asking again helps."""

from common import expect
from exoclaw import agent, gateway
from page import ANSWER, ANSWERING, FREE, READY, clean, has, say
from provider import KEY, Provider

FAILURE = f"{ANSWER}?.querySelector('.failure')"
# The words for a failure, without the folded detail.
WORDS = f"{FAILURE}?.querySelector('p').textContent ?? ''"
# What the user says to the provider, see there, and what the page has to say then.
FAILURES = {
    "!http 401": "refused the key",
    "!http 404": " not ",
    "!http 429": "limits the requests",
    "!http 529": "is overloaded",
    "!http 500": "has failed",
    "!leak 403": "not allow",
    "!midstream": "overload",
    "!cut": "broke off",
    "!eof": "broke off",
    "!garbage": "is not one of this provider",
}


async def failures_in_words(scene):
    config = {"agent": agent(model_timeout="2s")}
    async with Provider() as provider, gateway(provider, config=config) as running:
        async with scene.chrome.page(running.http) as page:
            await page.until(READY)
            for said, part in FAILURES.items():
                await say(page, said)
                await page.until(f"{FREE} && {FAILURE} !== null && ({WORDS}) !== ''")
                words = await page.run(WORDS)
                expect(part in words and "{" not in words, f"{said} is shown as {words!r}")
                expect(KEY not in await page.run("document.documentElement.outerHTML"), f"{said}: the key is shown")
                opened = await page.run(f"{FAILURE}.querySelector('details')?.open ?? false")
                expect(not opened, f"{said}: the detail is not folded")
            # It hangs: before it says anything, and after.
            for said in ("!silent", "!stall"):
                await say(page, said)
                await page.until(ANSWERING)
                await page.until(f"{FREE} && {FAILURE} !== null && ({WORDS}) !== ''")
            expect(await page.run(has(ANSWER, "half")), "what came before stays")
            # What was said is not lost: it can be asked again, and then is answered.
            await say(page, "hi")
            await page.until(f"{FREE} && {has(ANSWER, 'Hello world')}")
            await clean(page)


CHECKS = {"a provider that refuses, breaks off, hangs": failures_in_words}
