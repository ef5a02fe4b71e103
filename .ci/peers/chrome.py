"""A browser, driven by Playwright: pages, scripts, keys, clicks, and what the console shows."""

import contextlib
import json
import os

from harness import DEADLINE, Failed, expect
from playwright.async_api import TimeoutError, async_playwright

# Nothing outside of this machine is asked for; `*.test` is this machine. Scrolling is over when it has begun.
FLAGS = [
    "--disable-quic", "--disable-smooth-scrolling", "--window-size=1000,760",
    "--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
# Milliseconds that a task may work, however little else there is to do.
MOST_WORK = 100

class Page:
    def __init__(self, page, devtools):
        self.page, self.context, self.devtools = page, page.context, devtools
        self.goto, self.reload, self.run = page.goto, page.reload, page.evaluate
        self.type, self.press = page.keyboard.insert_text, page.keyboard.press
        # What the console shows in red, and scripts that broke off.
        self.problems = []
        # The answers to requests: (address, status).
        self.statuses = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self.printed)
        page.on("response", lambda answer: self.statuses.append((answer.url, answer.status)))

    def printed(self, message):
        # A line to a chat may be refused or cut, and a session may be gone that is deleted: that is no fault of the page.
        url = message.location["url"]
        if message.type in ("error", "warning", "assert") and "/chats/" not in url and "/sessions/" not in url:
            self.problems.append(f"{message.text} {url}")

    async def call(self, method, **params):
        return await self.devtools.send(method, params)

    async def until(self, script):
        """Waits for an expression to become true. One that cannot be evaluated is false."""
        try:
            await self.page.wait_for_function(f"() => {{ try {{ return {script}; }} catch {{ return false; }} }}")
        except TimeoutError:
            text = await self.run("document.body?.innerText ?? ''")
            said = f"{text[:300]!r} .. {text[-600:]!r}, the console {self.problems}"
            raise Failed(f"never: {script}; the page says {said}") from None

    async def enter(self, text):
        await self.type(text)
        await self.press("Enter")

    async def click(self, selector, effect):
        """Clicks an element once it can be clicked, and waits for an expression to become true."""
        await self.page.click(selector)
        await self.until(effect)

    @contextlib.asynccontextmanager
    async def short_tasks(self):
        """Fails if a task of the page works for longer than MOST_WORK and than a tenth of all work meanwhile. Only the
        time at work counts, so that it does not matter how busy the machine is."""
        browser = self.context.browser
        await browser.start_tracing(page=self.page, categories=["-*", "disabled-by-default-devtools.timeline"])
        yield
        traced = json.loads(await browser.stop_tracing())["traceEvents"]
        named = [event for event in traced if event["name"] == "thread_name"]
        threads = {(it["pid"], it["tid"]) for it in named if it["args"]["name"] == "CrRendererMain"}
        tasks = [event for event in traced if event["name"] == "RunTask" and "tdur" in event]
        work = [task["tdur"] / 1000 for task in tasks if (task["pid"], task["tid"]) in threads]
        expect(work, "the browser traces no tasks")
        expect(max(work) < max(MOST_WORK, sum(work) / 10), f"a task works for {max(work):.0f} of {sum(work):.0f} ms")

class Browser:
    def __init__(self, chromium):
        self.chromium = chromium

    @contextlib.asynccontextmanager
    async def page(self, url=None, *, before=None, beside=None):
        """A page with storage of its own, or that of `beside`. `before` is a script that runs before those of the page.
        In the end there may be no `problems`: no script that broke off, nothing that the page's policy had to refuse."""
        context = beside.context if beside else await self.chromium.new_context(no_viewport=True)
        # The deadline of a check comes later.
        context.set_default_timeout(DEADLINE * 900)
        opened = await context.new_page()
        page = Page(opened, await context.new_cdp_session(opened))
        await opened.add_init_script(before or "")
        try:
            if url is not None:
                await page.goto(url)
            yield page
            expect(not page.problems, f"the console says {page.problems}")
        finally:
            await (opened if beside else context).close()

@contextlib.asynccontextmanager
async def browser():
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=os.environ["BROWSER"], args=FLAGS)
        try:
            yield Browser(chromium)
        finally:
            await chromium.close()
