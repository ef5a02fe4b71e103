"""Both chat pages, against servers that say what they are told: how an answer looks, and who can read it."""
# Needs: browser.

from actor import HELD, RICH, AgentLine, actors, answered
from chatpage import (
    ANSWER, ANSWERING, CHATS_ARE_OPEN, DONE, FAILURE, FOCUS, MARKUP, QUESTION, READY, STATE, has, many, say
)
from chrome import browser
from harness import expect, main, same
from screen import DESKTOP, PHONE, accessible, look

# What an answer may try, in Markdown and in HTML.
NASTY = MARKUP + """

[one](javascript:document.title='broken') [two](JaVaScRiPt:document.title='broken')
[three](data:text/html,<script>document.title='broken'</script>) [four](vbscript:x) <javascript:document.title='broken'>
[five](&#106;avascript:document.title='broken') [six](/webhook/x) [seven](//other.test/) [eight](java\tscript:x)
[nine](&#x6A;avascript&colon;x) [ten](java&NewLine;script:x) [eleven](\x01javascript:x) [twelve](http:webhook/x)
[thirteen][r] [r] <data:text/html,x> <file:///x> ![svg](data:image/svg+xml;base64,PHN2Zy8+) https://other.test/"onclick="x
[good](https://example.com/?a=1&b=2 "title") <https://example.com/auto> <mailto:ann@example.com>
![picture](https://other.test/seen.png) ![x](x" onerror="document.title='broken')

<iframe src="https://other.test/"></iframe><svg onload="document.title='broken'"></svg>
<style>body { display: none }</style><form action="https://other.test/"><input name=token></form>
<a href="https://other.test/" onclick="document.title='broken'">a link</a>

| <img src=x onerror="document.title='broken'"> | b |
|---|---|
| <script>document.title='broken'</script> | [x](javascript:1) |

[r]: javascript:document.title='broken'

````js" onclick="document.title='broken'
```
</code></pre><script>document.title='broken'</script>
````

<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=document.title='broken'&gt;">

```html"><img src=x onerror="document.title='broken'">
<script>document.title='broken'</script></code></pre><img src=x onerror="document.title='broken'">
```
"""
FORBIDDEN = ":is(img, script, style, iframe, svg, form, input, object, embed, base, meta, link)"
MADE = f"[...document.querySelectorAll('#log {FORBIDDEN}')].map((it) => it.outerHTML)"
LINKS = f"[...{ANSWER}.querySelectorAll('a')].map((it) => [it.getAttribute('href'), it.target, it.rel])"
HANDLERS = f"""[...{ANSWER}.querySelectorAll('*')].flatMap((it) => it.getAttributeNames())
  .filter((name) => name.startsWith('on') || ['id', 'style', 'src', 'srcdoc', 'name'].includes(name))"""
CODE = "def say(it):\n\tprint(\"<b>\", it)  # & blanks  \n\n\nsay('🦀')"
MARKDOWN = f"# Title\n\nSome *words*, and code:\n\n```python\n{CODE}\n```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n"
BLOCKS = f"[...{ANSWER}.querySelectorAll(':is(h1, h2, h3, h4):not(.unseen), em, th, td')].map(it => it.textContent)"
INERT = "[...document.querySelectorAll('main, footer')].every((it) => it.inert)"
AGAIN = "#log .agent:last-of-type button.again"
CLIPBOARD = "navigator.clipboard.readText()"
# What is read out: text that comes into a region that is live and not busy, or is there when it ceases to be busy.
HEARD = """
  window.heard = [];
  const isLive = (node) => {
    let answer;
    for (let it = node.nodeType === 1 ? node : node.parentElement; it; it = it.parentElement) {
      if (it.ariaBusy === "true" || it.ariaHidden === "true" || it.hidden) return false;
      const implied = { log: "polite", status: "polite", alert: "assertive" }[it.role];
      answer ??= it.ariaLive ?? implied;
    }
    return answer === "polite" || answer === "assertive";
  };
  new MutationObserver((changes) => {
    for (const { type, target, addedNodes, oldValue } of changes) {
      const news = type === "childList" ? [...addedNodes] : oldValue === "false" ? [] : [target];
      heard.push(...news.filter(isLive).map((node) => node.textContent));
    }
  }).observe(document, {
    subtree: true, childList: true, characterData: true, attributeFilter: ["aria-busy"], attributeOldValue: true,
  });
"""
NAMES = {
    ("main", "Conversation"), ("log", "Messages"), ("textbox", "Message"), ("button", "Send"), ("button", "New chat"),
    ("navigation", "Chats"), ("heading", "You"), ("heading", "Agent"), ("button", "Copy answer"), ("button", "Retry"),
    ("link", "the log"), ("columnheader", "Service"),
}

async def an_answer_does_no_harm(actor):
    async with actor.line() as (page, line):
        before = await page.run("document.title")
        # In pieces that cut everything, too.
        for pieces in [[NASTY], [NASTY[at : at + 7] for at in range(0, len(NASTY), 7)]]:
            await answered(page, line, MARKUP, *pieces)
            await page.until(f"['table', 'pre code', 'a'].every((it) => {ANSWER}.querySelector(it) !== null)")
            same(await page.run(MADE), [], "what became elements")
            same(await page.run(HANDLERS), [], "what became attributes")
            links = await page.run(LINKS)
            good = {"https://example.com/?a=1&b=2", "https://example.com/auto", "mailto:ann@example.com"}
            expect(good <= {href for href, _, _ in links}, f"good links are links: {links}")
            for href, target, rel in links:
                expect(href.startswith(("https://", "mailto:")), f"it links to {href}")
                expect(target == "_blank" and {"noopener", "noreferrer"} <= set(rel.split()), f"{href}: {target} {rel}")
            expect(await page.run(has(ANSWER, "<b>bold</b>")), "what is no Markdown stays text")
        await say(page, "Use a tool.")
        await line.question()
        await line.tool(MARKUP, {MARKUP: MARKUP}, MARKUP)
        await line.fail(MARKUP)
        await page.until(f"{DONE} && {FAILURE} !== null")
        for part in [".tool .name", ".tool .result", ".failure p"]:
            same(await page.run(f"{ANSWER}.querySelector('{part}').textContent"), MARKUP, part)
        same(await page.run(MADE), [], "what became elements")
        same(await page.run("document.title"), before, "the title")
        asked = {address for address, _ in page.statuses if "other.test" in address or address.endswith("/x")}
        same(asked, set(), "what was loaded")

async def markdown_is_shown_and_copied_and_asked_for_again(actor):
    question = "**not**  Markdown"
    async with actor.lines() as (page, opened):
        line = await opened()
        await line.greet()

        async def again():
            """The agent's page begins a session for it, without what was answered before."""
            nonlocal line
            await page.click(AGAIN, f"{ANSWERING} || {STATE} !== 'ready'")
            if actor.kind is AgentLine:
                line = await opened()
                await line.greet()
            same(await line.asked(), question, "the question")
            await page.until(f"{ANSWERING} && {many('#log article', 2)}")

        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await answered(page, line, question, *MARKDOWN)
        same(await page.run(f"{QUESTION}.querySelector('.text').textContent"), question, "a question is no Markdown")
        await page.until(f"{ANSWER}.querySelector('td') !== null")
        same(await page.run(BLOCKS), ["Title", "words", "a", "b", "1", "2"], "shown")
        same(await page.run(f"{ANSWER}.querySelector('pre code').textContent"), CODE, "the code")
        colours = f"[...{ANSWER}.querySelectorAll('pre code, pre code span')].map((it) => getComputedStyle(it).color)"
        expect(len(set(await page.run(colours))) > 2, "the code has colours")
        last = f"[...{ANSWER}.querySelectorAll('.usage, .markdown')].at(-1).textContent"
        same(await page.run(last), "812 tokens in, 131 out", "the last line")
        await page.click("#log .copy-code", has("document.querySelector('#log .copy-code')", "Copied"))
        same(await page.run(CLIPBOARD), CODE, "the code")
        await page.click("#log button.copy", has("document.querySelector('#log button.copy')", "Copied"))
        same((await page.run(CLIPBOARD)).strip(), MARKDOWN.strip(), "the answer")
        await again()
        await line.fail("provider error: overloaded")
        # Also where there is a failure in place of an answer.
        await page.until(f"{DONE} && {has(FAILURE, 'verloaded')}")
        await again()
        await line.delta("the third one")
        await line.end("the third one")
        await page.until(f"{DONE} && {has(ANSWER, 'the third one')}")

async def tree(page):
    """What the browser tells screen readers: (role, name) of each element."""
    nodes = (await page.call("Accessibility.getFullAXTree"))["nodes"]
    return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]

async def every_state_is_accessible(actor):
    async with actor.line(before=HELD) as (page, line):
        await page.until(f"{READY} && {FOCUS} === 'input'")
        await accessible(page, f"{actor.name}-empty")
        await say(page, "Which of the two services was down last night?")
        await line.question()
        await line.delta("I will look at the log.")
        await line.tool("search_logs", {"service": "mail", "hours": 12}, "02:14 connection refused " + "x" * 90)
        await line.delta(RICH)
        await line.end(RICH)
        await page.until(f"{DONE} && {ANSWER}.querySelectorAll('table, pre code').length === 3")
        await page.click(".tool summary", "document.querySelector('.tool').open")
        await say(page, "And the night before?")
        await line.question()
        await line.fail('provider error: 529 overloaded: {"error": {"type": "overloaded_error"}}')
        await page.until(f"{DONE} && {FAILURE} !== null")
        await accessible(page, f"{actor.name}-answered")
        await look(page, *DESKTOP)
        seen = await tree(page)
        same(NAMES - set(seen), set(), "what is missing")
        same([role for role, _ in seen].count("article"), 4, "each message is an article")
        tools = [name for role, name in seen if role == "DisclosureTriangle"]
        expect("search_logs done" in tools, f"a tool tells its name and state: {tools}")
        same([role for role, name in seen if role in ("button", "textbox", "link") and not name], [], "without a name")
        await say(page, "Try again, please.")
        await line.question()
        await line.delta("Nothing was down **then**, and `nothing")
        await page.until(f"{ANSWERING} && {has(ANSWER, 'Nothing')}")
        expect(("button", "Stop") in await tree(page), "an answer can be stopped")
        await accessible(page, f"{actor.name}-streaming")
        await line.cut()
        await page.until(f"{STATE} === 'lost'")
        await accessible(page, f"{actor.name}-lost")

async def keys_alone_are_enough(actor):
    async with actor.lines() as (page, opened):
        line = await opened()
        await line.greet()
        await say(page, "go on", ANSWERING)
        await line.question()
        # From the field to the button that stops, which then gives the focus back.
        while await page.run(FOCUS) != "stop":
            await page.press("Tab")
        await page.press("Enter")
        await line.stopped()
        await page.until(f"{READY} && {FOCUS} === 'input'")
        # The list of chats is in front of all else on a phone, and gives the focus back, too.
        await look(page, *PHONE)
        await page.click("#chats-open", f"{CHATS_ARE_OPEN} && {INERT}")
        await page.press("Escape")
        await page.until(f"{FOCUS} === 'chats-open' && !{INERT}")
        await page.click("#chats-open", CHATS_ARE_OPEN)
        await accessible(page, f"{actor.name}-chats")

async def an_answer_is_read_out_once_when_it_is_complete(actor):
    async with actor.line(before=HEARD) as (page, line):
        await say(page, "tell me")
        await line.question()
        pieces = ["" if number % 7 == 0 else f"piece{number} " for number in range(20)]
        for piece in pieces:
            await line.delta(piece)
            await page.until(has(ANSWER, piece.strip()))
        heard = await page.run("heard")
        expect(not any("piece" in text for text in heard), f"it is heard while it grows: {heard}")
        await line.end("".join(pieces))
        await page.until(f"{DONE} && heard.some((text) => text.includes('{pieces[-1].strip()}'))")
        # What else might come has come with the next answer.
        await answered(page, line, "more", "another one")
        await page.until("heard.some((text) => text.includes('another one'))")
        heard = [text for text in await page.run("heard") if "piece" in text]
        expect(len(heard) == 1 and all(piece.strip() in heard[0] for piece in pieces), f"heard: {heard}")

async def body(checks):
    async with browser() as chrome, actors(chrome) as both:
        for actor in both:
            await checks.each((
                an_answer_does_no_harm, markdown_is_shown_and_copied_and_asked_for_again, every_state_is_accessible,
                keys_alone_are_enough, an_answer_is_read_out_once_when_it_is_complete,
            ), actor)

main(body)
