"""A long answer that streams at 200 pieces a second: the page stays quick, stays where the reader is, and shows all of it."""

import asyncio
import json
import os
import re
import time

from axe import DESKTOP, PHONE, look
from common import Failed, expect
from fake import AgentLine, Line
from long_answer import CHUNKS, CODES, MARKDOWN, SHOWN, bare
from page import ANSWER, ANSWERING, FREE, clean, say

PER_SECOND = 200
LONGEST_TASK = 50  # ms
# How far behind the page may be, in pieces.
BEHIND = 250
TRIES = 3
SCROLLER = "document.getElementById('scroller')"
TOP = f"{SCROLLER}.scrollTop"
AT_END = f"{SCROLLER}.scrollHeight - {SCROLLER}.scrollTop - {SCROLLER}.clientHeight < 48"
# The block of text that somebody reads who looks at the upper half of the screen.
READ = f"""[...{ANSWER}.querySelectorAll('.markdown > *')]
  .find((it) => it.getBoundingClientRect().bottom > innerHeight / 3)"""
# A page that does not follow is at the end only when the answer is.
FOLLOWS = f"{ANSWERING} && {AT_END}"
# The words of the answer, without those of its buttons and labels.
WORDS = f"""(() => {{ const it = {ANSWER}.cloneNode(true);
  for (const other of it.querySelectorAll("button, .head, h2.unseen, .usage")) other.remove();
  return it.textContent.replace(/\\s+/g, ""); }})()"""
CODE = f"[...{ANSWER}.querySelectorAll('pre code')].map((it) => it.textContent)"


class Slow(Failed):
    """It may have been the machine."""


class Stream:
    """The answer on its way."""

    def __init__(self, line):
        self.line = line
        self.sent = 0

    async def run(self):
        """Sends each piece at its time."""
        began = time.monotonic()
        for number, chunk in enumerate(CHUNKS):
            await asyncio.sleep(began + number / PER_SECOND - time.monotonic())
            await self.line.delta(chunk)
            self.sent = number + 1
        took = time.monotonic() - began
        await self.line.end(MARKDOWN)
        if took > 1.2 * len(CHUNKS) / PER_SECOND:
            raise Slow(f"{len(CHUNKS)} pieces took {took:.1f} s")

    async def until(self, part):
        """Waits until this part of the answer is sent."""
        while self.sent < part * len(CHUNKS):
            await asyncio.sleep(0.01)

    def heading(self):
        """The last heading that was sent."""
        return re.findall(r"## (.+)\n", "".join(CHUNKS[: self.sent]))[-1]


async def scroll(page, by, size):
    """Scrolls as people do: with the wheel, or with a finger."""
    x, y = await page.run(f"(({{ x, y, width, height }}) => [x + width / 2, y + height / 2])({SCROLLER}.getBoundingClientRect())")
    if size != PHONE:
        return await page.call("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=by, x=x, y=y)
    begin = y + (200 if by > 0 else -200)
    await page.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": begin}])
    for step in range(1, 21):
        await page.call("Input.dispatchTouchEvent", type="touchMove", touchPoints=[{"x": x, "y": begin - by * step / 20}])
    await page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])


async def settled(page):
    """Where the page is once the movement has come to its end."""
    before = None
    while (now := await page.run(TOP)) != before:
        before = now
        await asyncio.sleep(0.15)
    return now


async def keeps_up(page, stream):
    """Fails if the page shows a heading long after it was sent."""
    sent, heading = stream.sent, stream.heading()
    await page.until(f"{WORDS}.includes({json.dumps(bare(heading))})")
    if stream.sent - sent > BEHIND:
        raise Slow(f"the page is {stream.sent - sent} pieces behind")


async def reads(page, stream, size):
    """What a reader does meanwhile: reads on, scrolls up, comes back."""
    await stream.until(0.2)
    await keeps_up(page, stream)
    await page.until(FOLLOWS)
    await scroll(page, -400, size)
    await page.until(f"!({AT_END})")
    await settled(page)
    # What is read is rendered soon, and then stays what it is.
    await page.until(f"{READ}?.matches('.tail, :has(.tail)') === false")
    await stream.until(0.35)
    seen = f"{READ}.textContent.slice(0, 80)"
    top, line = await page.run(TOP), await page.run(seen)
    await keeps_up(page, stream)
    await stream.until(0.6)
    now = [await page.run(TOP), await page.run(seen)]
    if now != [top, line]:
        # Above it, something may have been rendered late.
        raise Slow(f"it does not stay where it was scrolled to: {[top, line]}, then {now}")
    await page.click("#jump")
    await stream.until(0.8)
    await keeps_up(page, stream)
    await page.until(FOLLOWS)


async def once(scene, kind, size):
    async with scene.fake(kind, prepare=lambda page: look(page, *size)) as (page, line):
        # The program that is tried is not optimised: it takes seconds to read a grammar when it first needs it.
        await page.run(f"fetch('/markdown', {{ method: 'POST', headers: {{ 'Content-Type': 'application/json' }},"
                       f" body: {json.dumps(json.dumps([MARKDOWN]))} }}).then((it) => it.ok)")
        await say(page, "tell me all")
        await line.question()
        stream = Stream(line)
        async with page.tasks() as tasks:
            await asyncio.gather(stream.run(), reads(page, stream, size))
        await page.until(f"{FREE} && {ANSWER}.querySelector('.tail') === null")
        words = await page.run(WORDS)
        same = os.path.commonprefix([words, SHOWN])
        expect(words == SHOWN, f"it shows {words[len(same):][:80]!r} in place of {SHOWN[len(same):][:80]!r}")
        expect(await page.run(CODE) == CODES, "code is as it was sent")
        await page.until(AT_END)
        await clean(page)
        longest, work = max(tasks), max(tasks, key=lambda task: task[1])
        print(f"      {kind.__name__} {size[0]} px: longest task {longest[0]:.0f} ms, "
              f"with most work {work[1]:.0f} ms of {work[0]:.0f} ms", flush=True)
        # The time at work: a task that waits for a busy machine is none of the page's.
        if work[1] > LONGEST_TASK:
            raise Slow(f"a task of {work[1]:.0f} ms")


def streams(kind, size):
    """A check. The machine may be busy, and then other tries may be better; a page that is slow is slow each time."""

    async def check(scene):
        for attempt in range(TRIES):
            try:
                return await once(scene, kind, size)
            except Slow:
                if attempt == TRIES - 1:
                    raise

    return check


CHECKS = {
    f"{kind.page}: a long answer streams quickly on {size[0]} px": streams(kind, size)
    for kind in (Line, AgentLine) for size in (DESKTOP, PHONE)
}
