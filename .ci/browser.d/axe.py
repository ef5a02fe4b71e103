"""axe-core in a page: what it finds against the rules of accessibility, on each screen and in each colour scheme."""

import os
from pathlib import Path

from common import Failed

PICTURES = os.environ.get("SCREENSHOTS")
PHONE, DESKTOP = (390, 844), (1280, 800)
# The last one is the narrowest that pages have to fit on.
LOOKS = [(*size, scheme) for size in (PHONE, DESKTOP) for scheme in ("light", "dark")] + [(320, 568, "light")]
FITS = "document.documentElement.scrollWidth <= innerWidth"
DARK = "getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] < 128"
FOUND = """axe.run({ resultTypes: ["violations"], rules: { "target-size": { enabled: true } } })
  .then(({ violations }) => violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} (${help}) at ${target.join(" ")}: ${failureSummary}`)))"""
# A finger needs more room than a mouse.
SMALL = """[...document.querySelectorAll("button, summary, select, input, textarea, [role=button]")].map((it) =>
  [it, it.getBoundingClientRect()]).filter(([it, { width, height }]) => width > 0 && (height < 43.5 || width < 43.5))
  .map(([it, { width, height }]) => `${it.tagName} ${it.id || it.className}: ${width} x ${height}`)"""


async def look(page, width, height, scheme="light"):
    """Shows the page on a screen of this size, which is a phone's if it is narrow."""
    is_phone = width < 500
    await page.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                    deviceScaleFactor=2 if is_phone else 1, mobile=is_phone)
    await page.call("Emulation.setTouchEmulationEnabled", enabled=is_phone)
    features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    await page.call("Emulation.setEmulatedMedia",
                    features=[{"name": name, "value": value} for name, value in features.items()])
    await page.run("new Promise(then => requestAnimationFrame(() => requestAnimationFrame(then)))")


class Axe:
    def __init__(self, script):
        self.script = script

    async def findings(self, page, state):
        """What it finds in each look of the page, as lines."""
        found = []
        if not await page.run("'axe' in window"):
            # Evaluated by the browser's tools, which the page's policy does not bind.
            await page.run(f"{self.script}; 0")
        for width, height, scheme in LOOKS:
            await look(page, width, height, scheme)
            lines = await page.run(FOUND)
            if not await page.run(FITS):
                lines.append("the page is wider than the screen")
            if await page.run(DARK) != (scheme == "dark"):
                lines.append("the page has the wrong colours")
            if width < 500:
                lines += [f"too small for a finger: {it}" for it in await page.run(SMALL)]
            found += [f"{width} px, {scheme}: {line}" for line in lines]
            if PICTURES:
                await page.screenshot(Path(PICTURES, f"{state}-{width}-{scheme}.png"))
        return found

    async def check(self, page, state):
        """Fails if there is a finding; `state` says what the page shows."""
        if found := await self.findings(page, state):
            raise Failed(f"{state}: {len(found)} findings\n" + "\n".join(found))
