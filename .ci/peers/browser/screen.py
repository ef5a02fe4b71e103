"""How a page looks and reads: screens of several sizes, both colour schemes, and what axe-core finds on each."""

import os
from pathlib import Path

from harness import Failed

# Where pictures of all that axe-core looks at are kept, if anywhere.
PICTURES = os.environ.get("SCREENSHOTS")
PHONE, DESKTOP = (390, 844), (1280, 800)
# The last one is the narrowest that pages have to fit on.
LOOKS = [(*size, scheme) for size in (PHONE, DESKTOP) for scheme in ("light", "dark")] + [(320, 568, "light")]
FITS = "document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight"
DARK = "getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] < 128"
# Two frames later everything has its place, and what moves or fades has come to its end.
SETTLED = """new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then))).then(() =>
  Promise.all(document.getAnimations().filter((it) => it.effect.getComputedTiming().endTime !== Infinity)
    .map((it) => it.finished.catch(() => {}))).then(() => true))"""
FOUND = """axe.run({ resultTypes: ["violations"], rules: { "target-size": { enabled: true } } })
  .then(({ violations }) => violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} (${help}) at ${target.join(" ")}: ${failureSummary}`)))"""
# A finger needs more room than a mouse.
SMALL = """[...document.querySelectorAll("button, summary, select, input, textarea, [role=button]")].map((it) =>
  [it, it.getBoundingClientRect()]).filter(([it, { width, height }]) => width > 0 && (height < 43.5 || width < 43.5))
  .map(([it, { width, height }]) => `too small: ${it.tagName} ${it.id || it.className} ${width} x ${height}`)"""

async def look(page, width, height, scheme="light"):
    """Shows the page on a screen of this size, which is a phone's if it is narrow."""
    is_phone = width < 500
    size = {"width": width, "height": height, "deviceScaleFactor": 2 if is_phone else 1, "mobile": is_phone}
    await page.call("Emulation.setDeviceMetricsOverride", **size)
    await page.call("Emulation.setTouchEmulationEnabled", enabled=is_phone)
    await page.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    await page.run(SETTLED)

async def accessible(page, state):
    """Fails if axe-core finds something in a look of the page, or it does not fit; `state` says what the page shows."""
    found = []
    if not await page.run("'axe' in window"):
        # Evaluated by the browser's tools, which the page's policy does not bind.
        await page.run(f"{Path(os.environ['AXE']).read_text(encoding='utf8')}; 0")
    for width, height, scheme in LOOKS:
        await look(page, width, height, scheme)
        lines = await page.run(FOUND) + (await page.run(SMALL) if width < 500 else [])
        if not await page.run(FITS):
            lines.append("the page is larger than the screen")
        if await page.run(DARK) != (scheme == "dark"):
            lines.append("the page has the wrong colours")
        found += [f"{width} px, {scheme}: {line}" for line in lines]
        if PICTURES:
            await page.page.screenshot(path=Path(PICTURES, f"{state}-{width}-{scheme}.png"))
    if found:
        raise Failed(f"{state}: {len(found)} findings\n" + "\n".join(found))
