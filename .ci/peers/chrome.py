"""A browser, driven over its DevTools protocol: pages, scripts, keys, clicks, and what the console says."""

import asyncio
import base64
import contextlib
import itertools
import json
import os
import tempfile
from pathlib import Path

import websockets
from harness import Failed, expect, program, short, until

# Nothing outside of this machine is asked for; `*.test` is this machine. Pages that nobody looks at go on as if
# somebody did, and scrolling is over when it has begun.
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding", "--disable-smooth-scrolling", "--hide-scrollbars", "--window-size=1000,760",
    "--remote-debugging-port=0",
    "--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
KEYS = {
    "Enter": {"code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "Escape": {"code": "Escape", "windowsVirtualKeyCode": 27},
    "Tab": {"code": "Tab", "windowsVirtualKeyCode": 9},
}
SHIFT = 8
# Milliseconds that a task may work, however little else there is to do.
MOST_WORK = 100
# The middle of an element that can be clicked: it is there, it is enabled, it stands still, nothing is in front of it.
CLICKABLE = """async (selector) => {
  const it = document.querySelector(selector);
  if (it === null || it.matches(":disabled")) return null;
  it.scrollIntoView({ block: "nearest", behavior: "instant" });
  const before = it.getBoundingClientRect();
  for (let frames = 0; frames < 2; frames++) await new Promise((then) => requestAnimationFrame(then));
  const now = it.getBoundingClientRect();
  if (JSON.stringify(before) !== JSON.stringify(now)) return null;
  const middle = { x: now.x + now.width / 2, y: now.y + now.height / 2 };
  if (!it.contains(document.elementFromPoint(middle.x, middle.y))) return null;
  window.isClicked = false;
  it.addEventListener("click", () => { window.isClicked = true; }, { once: true, capture: true });
  return middle;
}"""


class Browser:
    def __init__(self, socket):
        self.socket = socket
        self.calls, self.pages, self.numbers = {}, {}, itertools.count(1)
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        async for data in self.socket:
            frame = json.loads(data)
            waiting, page = self.calls.pop(frame.get("id"), None), self.pages.get(frame.get("sessionId"))
            if waiting is None and page is not None and "method" in frame:
                page.happened(frame["method"], frame["params"])
            elif waiting is not None and not waiting.done() and "error" in frame:
                waiting.set_exception(Failed(f"the browser: {frame['error']['message']}"))
            elif waiting is not None and not waiting.done():
                waiting.set_result(frame["result"])

    async def call(self, method, session=None, /, **params):
        waiting = asyncio.get_running_loop().create_future()
        number = next(self.numbers)
        self.calls[number] = waiting
        frame = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        await self.socket.send(json.dumps(frame))
        await asyncio.wait({waiting, self.reader}, return_when=asyncio.FIRST_COMPLETED)
        expect(waiting.done(), "the browser has gone")
        return waiting.result()

    @contextlib.asynccontextmanager
    async def page(self, url=None, *, before=None, beside=None):
        """A page with storage of its own, or that of `beside`. `before` is a script that runs before those of the page.
        In the end there may be no `problems`: no script that broke off, nothing that the page's policy had to refuse."""
        context = beside.context if beside else (await self.call("Target.createBrowserContext"))["browserContextId"]
        target = await self.call("Target.createTarget", url="about:blank", browserContextId=context)
        attached = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = self.pages[attached["sessionId"]] = Page(self, attached["sessionId"], context)
        try:
            for domain in ["Page", "Runtime", "Log", "Network"]:
                await page.call(f"{domain}.enable")
            await page.call("Emulation.setFocusEmulationEnabled", enabled=True)
            await page.call("Page.addScriptToEvaluateOnNewDocument", source=before or "")
            if url is not None:
                await page.goto(url)
            yield page
            expect(not page.problems, f"the console says {page.problems}")
        finally:
            if beside is None:
                await self.call("Target.disposeBrowserContext", browserContextId=context)


class Page:
    def __init__(self, browser, session, context):
        self.browser, self.session, self.context = browser, session, context
        # What the console shows in red, and scripts that broke off.
        self.problems = []
        # The answers to requests: (address, status).
        self.statuses = []
        # What the browser traces, and whether that is all of it.
        self.traced, self.is_traced = [], asyncio.Event()

    def happened(self, method, params):
        if method == "Runtime.exceptionThrown":
            self.problems.append(thrown(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.problems.append(str([arg.get("value") for arg in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            # A line to a chat that is refused or cut is not a fault of the page.
            if "/chats/" not in params["entry"].get("url", ""):
                self.problems.append(params["entry"]["text"])
        elif method == "Network.responseReceived":
            self.statuses.append((params["response"]["url"], params["response"]["status"]))
        elif method == "Tracing.dataCollected":
            self.traced += params["value"]
        elif method == "Tracing.tracingComplete":
            self.is_traced.set()

    async def call(self, method, **params):
        return await self.browser.call(method, self.session, **params)

    async def goto(self, url):
        await self.call("Page.navigate", url=url)
        await self.until(f"location.href.startsWith({json.dumps(url)}) && document.readyState === 'complete'")

    async def reload(self):
        await self.run("window.isOld = true")
        await self.call("Page.reload")
        await self.until("!window.isOld && document.readyState === 'complete'")

    async def run(self, script):
        """The value of an expression, also a promised one."""
        answer = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        expect("exceptionDetails" not in answer, f"{short(script)}: {thrown(answer.get('exceptionDetails', {}))}")
        value = answer["result"].get("value")
        # An element arrives like this, and Python takes it for false.
        assert value != {}, script
        return value

    async def until(self, script):
        """Waits for an expression to become true, and returns its value."""
        last = None

        async def found():
            nonlocal last
            try:
                last = await self.run(script)
                return last
            except Failed as problem:
                # A page that is being replaced has nothing to say.
                last = problem

        try:
            return await until(found, script)
        except Failed as problem:
            try:
                text = await asyncio.wait_for(self.run("document.body?.innerText ?? ''"), 10)
            except (Failed, TimeoutError) as silence:
                text = repr(silence)
            said = f"{text[:300]!r} .. {text[-600:]!r}, the console {self.problems}"
            raise Failed(f"{problem}; it is {short(last)}; the page says {said}") from None

    async def type(self, text):
        await self.call("Input.insertText", text=text)

    async def enter(self, text):
        await self.type(text)
        await self.press("Enter")

    async def press(self, key, modifiers=0):
        """Presses a key: one of KEYS, one that is a character, or one that moves."""
        known = KEYS.get(key, {"code": key} | ({"text": key} if len(key) == 1 else {}))
        params = {"key": key, "modifiers": modifiers} | known
        await self.call("Input.dispatchKeyEvent", type="keyDown", **params)
        params.pop("text", None)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **params)

    async def click(self, selector, effect):
        """Clicks an element once it can be clicked, and waits for an expression to become true."""

        async def is_clicked():
            middle = None
            with contextlib.suppress(Failed):
                middle = await self.run(f"({CLICKABLE})({json.dumps(selector)})")
            if middle is None:
                return False
            for kind in ["mousePressed", "mouseReleased"]:
                await self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **middle)
            # It may have moved away after all, and then it has not noticed anything.
            return await self.run("window.isClicked")

        await until(is_clicked, f"a click on {selector}")
        await self.until(effect)

    @contextlib.asynccontextmanager
    async def short_tasks(self):
        """Fails if a task of the page works for longer than MOST_WORK and than a tenth of all work meanwhile. Only the
        time at work counts, so that it does not matter how busy the machine is."""
        self.traced, self.is_traced = [], asyncio.Event()
        categories = {"includedCategories": ["disabled-by-default-devtools.timeline"], "excludedCategories": ["*"]}
        await self.call("Tracing.start", transferMode="ReportEvents", traceConfig=categories)
        yield
        await self.call("Tracing.end")
        await self.is_traced.wait()
        named = [event for event in self.traced if event["name"] == "thread_name"]
        threads = {(it["pid"], it["tid"]) for it in named if it["args"]["name"] == "CrRendererMain"}
        tasks = [event for event in self.traced if event["name"] == "RunTask" and "tdur" in event]
        work = [task["tdur"] / 1000 for task in tasks if (task["pid"], task["tid"]) in threads]
        expect(work, "the browser traces no tasks")
        expect(max(work) < max(MOST_WORK, sum(work) / 10), f"a task works for {max(work):.0f} of {sum(work):.0f} ms")

    async def screenshot(self, path):
        data = (await self.call("Page.captureScreenshot"))["data"]
        Path(path).write_bytes(base64.b64decode(data))


def thrown(details):
    return details.get("exception", {}).get("description", details.get("text"))


@contextlib.asynccontextmanager
async def browser():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        async with program(os.environ["BROWSER"], *FLAGS, f"--user-data-dir={folder}", "about:blank") as running:
            address = (await running.line("DevTools listening on")).split()[-1]
            quiet = {"max_size": None, "ping_interval": None, "compression": None, "proxy": None}
            async with websockets.connect(address, **quiet) as socket:
                yield Browser(socket)
