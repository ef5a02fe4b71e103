"""Answers in Markdown: markup that does no harm, links, code and its copies, tokens, and asking again."""

import json

from common import expect
from page import ANSWER, FREE, MARKUP, QUESTION, clean, has
from scene import answered, both

# What an answer may try, in Markdown and in HTML.
NASTY = MARKUP + """

[one](javascript:document.title='broken') [two](JaVaScRiPt:document.title='broken')
[three](data:text/html,<script>document.title='broken'</script>) [four](vbscript:x) <javascript:document.title='broken'>
[five](&#106;avascript:document.title='broken') [six](/webhook/x) [seven](//other.test/) [eight](java\tscript:x)
[good](https://example.com/?a=1&b=2 "title") <https://example.com/auto> <mailto:ann@example.com>
![picture](https://other.test/seen.png) ![x](x" onerror="document.title='broken')

<iframe src="https://other.test/"></iframe><svg onload="document.title='broken'"></svg>
<style>body { display: none }</style><form action="https://other.test/"><input name=token></form>
<a href="https://other.test/" onclick="document.title='broken'">a link</a>

| <img src=x onerror="document.title='broken'"> | b |
|---|---|
| <script>document.title='broken'</script> | [x](javascript:1) |

```html"><img src=x onerror="document.title='broken'">
<script>document.title='broken'</script></code></pre><img src=x onerror="document.title='broken'">
```
"""
FORBIDDEN = "img, script, style, iframe, svg, form, input, object, embed, base, meta, link"
LINKS = f"[...{ANSWER}.querySelectorAll('a')].map((it) => [it.getAttribute('href'), it.target, it.rel])"
HANDLERS = f"""[...{ANSWER}.querySelectorAll('*')].flatMap((it) => it.getAttributeNames())
  .filter((name) => name.startsWith('on') || ['id', 'style', 'src', 'srcdoc', 'name'].includes(name))"""
CODE = "def say(it):\n\tprint(\"<b>\", it)  # & blanks  \n\n\nsay('🦀')"
MARKDOWN = f"# Title\n\nSome *words*, and code:\n\n```python\n{CODE}\n```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n"
CLIPBOARD = "navigator.clipboard.readText()"


async def does_no_harm(scene, kind):
    """markup and links in an answer do no harm"""
    async with scene.fake(kind) as (page, line):
        before = await page.run("document.title")
        # In pieces that cut everything, too.
        for pieces in [[NASTY], [NASTY[at : at + 7] for at in range(0, len(NASTY), 7)]]:
            await answered(page, line, NASTY, *pieces)
            await page.until(f"{ANSWER}.querySelector('table') !== null && {ANSWER}.querySelector('pre code') !== null"
                             f" && {ANSWER}.querySelector('a') !== null")
            made = await page.run(f"[...document.querySelector('#log').querySelectorAll('{FORBIDDEN}')].map(it => it.outerHTML)")
            expect(made == [], f"it became elements: {made}")
            expect((names := await page.run(HANDLERS)) == [], f"it became attributes: {names}")
            links = await page.run(LINKS)
            expect({"https://example.com/?a=1&b=2", "https://example.com/auto", "mailto:ann@example.com"}
                   <= {href for href, _, _ in links}, f"good links are links: {links}")
            for href, target, rel in links:
                expect(href.startswith(("https://", "mailto:")), f"it links to {href}")
                expect(target == "_blank" and {"noopener", "noreferrer"} <= set(rel.split()), f"{href}: {target} {rel}")
            expect(await page.run(has(ANSWER, "<b>bold</b>")), "what is no Markdown stays text")
        expect(await page.run("document.title") == before, "nothing of it ran")
        asked = {address for address, _ in page.statuses if "other.test" in address or address.endswith("/x")}
        expect(not asked, f"it loaded {asked}")
        await clean(page)


async def is_shown_as_markdown(scene, kind):
    """Markdown is shown as what it means, and the tokens at the end"""
    async with scene.fake(kind) as (page, line):
        await answered(page, line, "**not** Markdown", *MARKDOWN)
        expect(await page.run(has(QUESTION, "**not** Markdown")), "a question stays as it was typed")
        await page.until(f"{ANSWER}.querySelector('td') !== null")
        shown = await page.run(f"[...{ANSWER}.querySelectorAll(':is(h1, h2, h3, h4):not(.unseen), em, th, td')].map(it => it.textContent)")
        expect(shown == ["Title", "words", "a", "b", "1", "2"], f"shown: {shown}")
        await page.until(f"{ANSWER}.querySelector('pre code').textContent === {json.dumps(CODE)}")
        colours = await page.run(f"new Set([...{ANSWER}.querySelectorAll('pre code, pre code span')]"
                                 ".map((it) => getComputedStyle(it).color)).size")
        expect(colours > 2, f"code has {colours} colours")
        last = await page.run(f"[...{ANSWER}.querySelectorAll('.usage, .markdown')].at(-1).textContent")
        expect(last == "812 tokens in, 131 out", f"the last line: {last}")
        await clean(page)


async def is_copied(scene, kind):
    """code and answers are copied as they were written"""
    async with scene.fake(kind) as (page, line):
        await page.call("Emulation.setFocusEmulationEnabled", enabled=True)
        await page.allow("clipboardReadWrite", "clipboardSanitizedWrite")
        await answered(page, line, "code, please", MARKDOWN)
        await page.click("#log .copy-code")
        await page.until(f"{CLIPBOARD}.then((it) => it === {json.dumps(CODE)})")
        await page.until(has("document.querySelector('#log .copy-code')", "Copied"))
        await page.click("#log button.copy")
        await page.until(f"{CLIPBOARD}.then((it) => it.trim() === {json.dumps(MARKDOWN.strip())})")
        await clean(page)


async def is_asked_again(scene, kind):
    """Retry asks the same once more"""
    async with scene.fake(kind) as (page, line):
        question = "which  one\nof <both>?"
        await answered(page, line, question, "the first one")
        await page.click("#log .agent:last-of-type button.again")
        asked = await line.question()
        said = asked["prompt"] if kind.page == "agent" else asked["params"]["content"]
        expect(said == question, f"asked: {said!r}")
        await line.delta("the second one")
        await line.end("the second one")
        await page.until(f"{FREE} && {has(ANSWER, 'the second one')}")
        # Also where there is a failure in place of an answer.
        await page.click("#log .agent:last-of-type button.again")
        await line.question()
        await line.fail("provider error: overloaded")
        await page.until(f"{FREE} && {has(f'{ANSWER}.querySelector(`.failure`)', 'verloaded')}")
        await page.click("#log .agent:last-of-type button.again")
        await line.question()
        await line.end("the third one")
        await clean(page)


CHECKS = both(does_no_harm) | both(is_shown_as_markdown) | both(is_copied) | both(is_asked_again)
