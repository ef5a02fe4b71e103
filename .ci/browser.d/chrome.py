"""A browser, driven over its DevTools protocol: pages, scripts, keys, what the console says."""

import asyncio
import base64
import contextlib
import json
import os
import signal
import tempfile
from pathlib import Path

import aiohttp

from common import Failed, expect

WAIT = 10
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--window-size=1000,760",
    "--remote-debugging-port=0",
    # Nothing outside of this machine is asked for; `*.test` is this machine.
    "--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
KEYS = {
    "Enter": {"code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "Escape": {"code": "Escape", "windowsVirtualKeyCode": 27},
    "Tab": {"code": "Tab", "windowsVirtualKeyCode": 9},
}
SHIFT = 8


class Browser:
    def __init__(self, socket):
        self.socket = socket
        self.calls = {}
        self.pages = {}
        self.count = 0
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        async for message in self.socket:
            frame = json.loads(message.data)
            waiting = self.calls.pop(frame.get("id"), None)
            if waiting is None:
                page = self.pages.get(frame.get("sessionId"))
                if page is not None and "method" in frame:
                    page.happened(frame["method"], frame["params"])
            elif waiting.done():
                pass
            elif "error" in frame:
                waiting.set_exception(Failed(f"the browser: {frame['error']['message']}"))
            else:
                waiting.set_result(frame["result"])
        for waiting in self.calls.values():
            if not waiting.done():
                waiting.set_exception(Failed("the browser went away"))

    async def call(self, method, session=None, /, **params):
        self.count += 1
        frame = {"id": self.count, "method": method, "params": params}
        if session is not None:
            frame["sessionId"] = session
        waiting = asyncio.get_running_loop().create_future()
        self.calls[self.count] = waiting
        await self.socket.send_str(json.dumps(frame))
        return await waiting

    @contextlib.asynccontextmanager
    async def page(self, url=None, *, before=None):
        """A page with storage of its own. `before` is a script that runs before the page's own."""
        context = (await self.call("Target.createBrowserContext"))["browserContextId"]
        target = await self.call("Target.createTarget", url="about:blank", browserContextId=context)
        attached = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = Page(self, attached["sessionId"], context)
        self.pages[page.session] = page
        try:
            for domain in ["Page", "Runtime", "Log", "Network"]:
                await page.call(f"{domain}.enable")
            if before is not None:
                await page.call("Page.addScriptToEvaluateOnNewDocument", source=before)
            if url is not None:
                await page.goto(url)
            yield page
        finally:
            await self.call("Target.disposeBrowserContext", browserContextId=context)
            self.pages.pop(page.session, None)


class Page:
    def __init__(self, browser, session, context):
        self.browser = browser
        self.session = session
        self.context = context
        # What the console shows in red, and scripts that broke off.
        self.problems = []
        # The answers to requests: (address, status).
        self.statuses = []
        # What the browser traces, and whether that is all of it.
        self.traced, self.is_traced = [], asyncio.Event()

    def happened(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.problems.append(str([arg.get("value") for arg in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"]["text"])
        elif method == "Network.responseReceived":
            response = params["response"]
            self.statuses.append((response["url"], response["status"]))
        elif method == "Network.webSocketHandshakeResponseReceived":
            self.statuses.append(("websocket", params["response"]["status"]))
        elif method == "Tracing.dataCollected":
            self.traced += params["value"]
        elif method == "Tracing.tracingComplete":
            self.is_traced.set()

    async def call(self, method, **params):
        return await self.browser.call(method, self.session, **params)

    async def allow(self, *permissions):
        await self.browser.call("Browser.grantPermissions", permissions=permissions, browserContextId=self.context)

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
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Failed(f"{script}: {details.get('exception', {}).get('description', details['text'])}")
        value = answer["result"].get("value")
        # An element arrives like this, and Python takes it for false.
        assert value != {}, script
        return value

    async def until(self, script):
        """Waits for an expression to become true."""
        value = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT):
                while True:
                    # A page that is being replaced has nothing to say.
                    with contextlib.suppress(Failed):
                        value = await self.run(script)
                    if value:
                        return value
                    await asyncio.sleep(0.02)
        text = await self.run("document.body?.innerText")
        raise Failed(f"not within {WAIT} s: {script}; the page says {text!r}, the console {self.problems}")

    async def type(self, text):
        await self.call("Input.insertText", text=text)

    async def press(self, key, modifiers=0):
        params = {"key": key, "modifiers": modifiers, **KEYS[key]}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **params)
        params.pop("text", None)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **params)

    async def type_key(self, key):
        """Presses a key that is a character, or moves."""
        text = {"text": key} if len(key) == 1 else {}
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    async def click(self, selector):
        """Clicks where the element is, so that one below another is not found. What moves away under the mouse is
        clicked once more, as a user would."""
        found = json.dumps(selector)
        async with asyncio.timeout(WAIT):
            while True:
                point = await self.until(
                    f"(() => {{ const it = document.querySelector({found}); it?.scrollIntoView({{ block: 'nearest' }});"
                    " const { x, y, width, height } = it?.getBoundingClientRect() ?? {}; window.isClicked = false;"
                    " it?.addEventListener('click', () => { window.isClicked = true; }, { once: true, capture: true });"
                    " return width && { x: x + width / 2, y: y + height / 2 }; })()"
                )
                for kind in ["mousePressed", "mouseReleased"]:
                    await self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **point)
                # A page that was replaced was clicked.
                if await self.run("window.isClicked !== false"):
                    return

    @contextlib.asynccontextmanager
    async def tasks(self):
        """A list that has, in the end, what the page's main thread did meanwhile: (ms, ms at work) for each task."""
        done = []
        self.traced, self.is_traced = [], asyncio.Event()
        categories = {"includedCategories": ["disabled-by-default-devtools.timeline"], "excludedCategories": ["*"]}
        await self.call("Tracing.start", transferMode="ReportEvents", traceConfig=categories)
        try:
            yield done
        finally:
            await self.call("Tracing.end")
            await self.is_traced.wait()
        threads = {
            (event["pid"], event["tid"]) for event in self.traced
            if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
        }
        done += [
            (event["dur"] / 1000, event["tdur"] / 1000) for event in self.traced
            if event["name"] == "RunTask" and (event["pid"], event["tid"]) in threads and "tdur" in event
        ]
        expect(done, "the browser traces no tasks")

    async def screenshot(self, path):
        data = (await self.call("Page.captureScreenshot"))["data"]
        Path(path).write_bytes(base64.b64decode(data))


@contextlib.asynccontextmanager
async def browser(program):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        log = Path(folder, "log")
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                program, *FLAGS, f"--user-data-dir={folder}/profile", "about:blank",
                stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )
        try:
            address = await devtools(process, Path(folder, "profile", "DevToolsActivePort"), log)
            async with aiohttp.ClientSession() as session:
                async with session.ws_connect(address, max_msg_size=0, autoping=True) as socket:
                    yield Browser(socket)
        finally:
            # With the processes that it started.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def devtools(process, file, log):
    """Waits for the browser to say where it listens."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(30):
            while process.returncode is None:
                lines = file.read_text().split() if file.exists() else []
                if len(lines) == 2:
                    return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
                await asyncio.sleep(0.05)
    raise Failed(f"the browser does not start: {log.read_text(errors='replace')[-2000:]}")
