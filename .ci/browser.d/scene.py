"""What checks of both pages need: the real programs, the browser, axe-core; and a fake of either program."""

import contextlib
import dataclasses

from axe import Axe
from chrome import Browser
from fake import AgentLine, Line, fake
from page import ANSWER, FREE, say


@dataclasses.dataclass
class Scene:
    chrome: Browser
    axe: Axe
    switchboard: str
    gateway: str
    guarded: str
    agent: str

    @contextlib.asynccontextmanager
    async def fake(self, kind, *, before=None, prepare=None):
        """A page that is connected with a program that does what it is told: the page, and the line."""
        real = {Line: self.gateway, AgentLine: self.agent}[kind]
        async with fake(real, line=kind) as there, self.chrome.page(before=before) as page:
            if prepare is not None:
                await prepare(page)
            await page.goto(there.url)
            yield page, await there.greeted()


def both(check):
    """The check with each of the two pages, by its name."""
    return {f"{kind.page}: {check.__doc__}": with_kind(check, kind) for kind in (Line, AgentLine)}


def with_kind(check, kind):
    return lambda scene: check(scene, kind)


async def answered(page, line, question, *pieces):
    """Asks, and lets this be the answer."""
    await say(page, question)
    asked = await line.question()
    for piece in pieces:
        await line.delta(piece)
    await line.end("".join(pieces))
    await page.until(f"{FREE} && {ANSWER}?.getAttribute('aria-busy') !== 'true'")
    return asked
