"""What the page shows, as expressions, and what every check does with it."""

import json

from common import expect

TOKEN = "open sesame"
# What the pages load of their common parts.
SHARED = {"/page/" + name for name in ["base.css", "app.css", "answer.css"]
          + [f"{part}.js" for part in ["answer", "chats", "composer", "dom", "markdown", "nodes", "socket", "view"]]}
STATE = "document.getElementById('status').dataset.state"
READY = f"{STATE} === 'ready'"
LOG = "document.getElementById('log').innerText"
QUESTION = "[...document.querySelectorAll('#log .user')].at(-1)"
ANSWER = "[...document.querySelectorAll('#log .agent')].at(-1)"
FREE = "document.getElementById('stop').hidden"
ANSWERING = "!document.getElementById('stop').hidden"
INPUT = "document.getElementById('input').value"
WAITS = "!document.getElementById('waits').hidden"
ASKS_FOR_TOKEN = "!document.getElementById('auth').hidden && document.getElementById('composer').hidden"
MARKUP = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script><b>bold</b>"


def text(it):
    return f"{it}?.innerText ?? ''"


def has(it, part):
    return f"({text(it)}).includes({json.dumps(part)})"


async def say(page, content):
    await page.until(READY)
    await page.run("document.getElementById('input').focus()")
    await page.type(content)
    await page.press("Enter")


async def clean(page):
    """Nothing in red so far: no script broke off, nothing was refused by the page's policy."""
    expect(not page.problems, f"the console says {page.problems}")
