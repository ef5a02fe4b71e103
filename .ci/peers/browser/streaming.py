"""Both chat pages while a long answer comes: all of it is shown, rendered once, and nobody who reads is disturbed."""
# Needs: browser.

from actor import RICH, actors, answered
from chatpage import ANSWER, ANSWERING, DONE, say
from chrome import browser
from harness import expect, main, same
from screen import DESKTOP, PHONE

# So many sections has the answer, so many come at once, and so long is a piece.
SECTIONS, STEP, PIECE = 84, 6, 60
# Blocks that stay open for long while they grow.
TABLE = "| Number | Word |\n|--:|---|\n" + "".join(f"| {row} | grüße |\n" for row in range(120))
CODE = "```json\n[\n" + "".join(f'  {{"id": {row}, "<b>": "&", "is": null}},\n' for row in range(150)) + "]\n```\n"
SCROLLER = "document.getElementById('scroller')"
BOX = f"{SCROLLER}.getBoundingClientRect()"
TOP = f"{SCROLLER}.scrollTop"
AT_END = f"{SCROLLER}.scrollHeight - {SCROLLER}.scrollTop - {SCROLLER}.clientHeight < 48"
# The block of text that somebody reads who looks at the upper half of the screen.
READ = f"""[...{ANSWER}.querySelectorAll('.markdown > *')]
  .find((it) => it.getBoundingClientRect().bottom > innerHeight / 3).textContent.slice(0, 80)"""
ENDS = f"[...{ANSWER}.querySelectorAll('p')].map((it) => it.textContent).filter((it) => it.startsWith('End of'))"
SHOWN = f"{ANSWER}.querySelector('.markdown').innerHTML"
# For ten frames nothing moves.
STILL = f"""(async () => {{
  for (let frames = 0, before; frames < 10; frames = {TOP} === before ? frames + 1 : 0) {{
    before = {TOP};
    await new Promise((then) => requestAnimationFrame(then));
  }}
}})()"""
# 22,000 characters in one block each; where a blank line ends nothing, the code is not to be cut.
ROWS = "".join(f"| {row} | *grüße* {row} | `code` and **so** on |\n" for row in range(480))
STEPS = "".join(f"/* Step\n\n {row} */\nfunction step{row}(it) {{\n  return `a\n\n${{it}}`;\n}}\n" for row in range(300))
LONG = f"| Number | Word | More |\n|--:|---|---|\n{ROWS}\n```js\n{STEPS}```\n"
# Each letter of code with the colour that the page gives it, and the one that it has if all is coloured at once.
COLOURS = f"""(async () => {{
  const load = async (part) => (await import(`/page/vendor/${{part}}.mjs`)).default;
  const [highlighter, purify] = [await load("highlight"), await load("purify")];
  const shown = {ANSWER}.querySelector("pre code"), whole = document.createElement("code");
  const coloured = highlighter.highlight(shown.textContent, {{ language: "js" }}).value;
  whole.append(purify.sanitize(coloured, {{ RETURN_DOM_FRAGMENT: true }}));
  return [shown, whole].map((code) => {{
    const walk = (it, names) => it.nodeType === 3 ? [...it.data].map((letter) => letter + (letter.trim() && names)) :
      [...it.childNodes].flatMap((part) => walk(part, names + it.className.replace("piece", "")));
    return walk(code, "").join("");
  }});
}})()"""
# Counts the nodes that are put into the page.
COUNTED = """
  window.added = 0;
  window.nodes = (node) => 1 + [...node.childNodes].reduce((sum, child) => sum + nodes(child), 0);
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) for (const node of addedNodes) added += nodes(node);
  }).observe(document, { subtree: true, childList: true });
"""

def section(n):
    more = {SECTIONS // 3: TABLE, 2 * SECTIONS // 3: CODE}.get(n, "")
    return f"# Section {n}\n\n{RICH}\n{more}\nEnd of {n}.\n\n"

def is_rendered(n):
    """All that has come is shown as Markdown, and this section is the last of it."""
    last = f"[...{ANSWER}.querySelectorAll('.markdown > p')].at(-1)"
    return f"{ANSWER}.querySelector('.pending') === null && {last}?.textContent === 'End of {n}.'"

async def scroll_up(page, by, size):
    """Scrolls as people do, with the wheel or with a finger, and waits until the page stands still."""
    x, y, width, height = await page.run(f"(({{ x, y, width, height }}) => [x, y, width, height])({BOX})")
    x, y = x + width / 2, y + height / 2
    if size == DESKTOP:
        await page.call("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=-by, x=x, y=y)
    else:
        places = [{"x": x, "y": y - by / 2 + by * step / 20} for step in range(21)]
        for place in places:
            kind = "touchStart" if place == places[0] else "touchMove"
            await page.call("Input.dispatchTouchEvent", type=kind, touchPoints=[place])
        await page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    await page.until(f"!({AT_END})")
    await page.run(STILL)

async def a_long_answer_comes(actor, size):
    sections = [section(n) for n in range(SECTIONS)]
    whole = "".join(sections)
    async with actor.line(before=COUNTED, size=size) as (page, line):
        # What it has to look like in the end.
        await answered(page, line, "all at once", whole)
        expected = await page.run(SHOWN)
        nodes = await page.run(f"window.added = 0, nodes({ANSWER})")
        await say(page, "tell me all", ANSWERING)
        await line.question()

        async def come(first, last):
            """Lets these sections come, and waits until they are shown."""
            for at in range(first, last, STEP):
                some = "".join(sections[at : at + STEP])
                for start in range(0, len(some), PIECE):
                    await line.delta(some[start : start + PIECE])
                await page.until(is_rendered(at + STEP - 1))

        async with page.short_tasks():
            await come(0, 24)
            await page.until(AT_END)
            await scroll_up(page, 400, size)
            before = [await page.run(TOP), await page.run(READ)]
            await come(24, 48)
            same([await page.run(TOP), await page.run(READ)], before, "what is read")
            await page.click("#jump", AT_END)
            await come(48, SECTIONS)
            await page.until(f"{ANSWERING} && {AT_END}")
        await line.end(whole)
        await page.until(f"{DONE} && {AT_END}")
        expect(await page.run(SHOWN) == expected, "it does not look like what comes at once")
        same(await page.run(ENDS), [f"End of {n}." for n in range(SECTIONS)], "the ends of the sections")
        # Each block is put into the page a few times while it grows, however long the answer is.
        added = await page.run("added")
        expect(added < 3 * nodes, f"to show {nodes} nodes, the page has made {added}")

async def long_code_and_a_long_table_come_in_pieces(actor):
    async with actor.line() as (page, line):
        await answered(page, line, "all at once", LONG)
        expected = await page.run(SHOWN)
        await say(page, "tell me all", ANSWERING)
        await line.question()
        async with page.short_tasks():
            for start in range(0, len(LONG), PIECE):
                await line.delta(LONG[start : start + PIECE])
            await line.end(LONG)
            await page.until(DONE)
        expect(await page.run(SHOWN) == expected, "it does not look like what comes at once")
        same(await page.run(f"{ANSWER}.querySelectorAll('table').length"), 1, "tables")
        same(await page.run(f"{ANSWER}.querySelectorAll('tbody tr').length"), 480, "rows")
        same(await page.run(f"{ANSWER}.querySelector('pre code').textContent"), STEPS.rstrip("\n"), "the code")
        expect(await page.run(f"{ANSWER}.querySelectorAll('.piece').length > 3"), "the code is in one piece")
        shown, whole = await page.run(COLOURS)
        expect(shown == whole, "the colours depend on the pieces")

async def body(checks):
    async with browser() as chrome, actors(chrome) as both:
        for actor in both:
            for size in (DESKTOP, PHONE):
                await checks.run(a_long_answer_comes, actor, size, name=f"a long answer comes, {size[0]} px wide")
            await checks.run(long_code_and_a_long_table_come_in_pieces, actor)

main(body)
