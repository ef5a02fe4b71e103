"""Who does not see the page, or does not see it well: axe-core in each state, names and roles, what is read out, focus."""

import json

import agents
from axe import PHONE, look
from common import expect

from page import ANSWER, ANSWERING, ASKS_FOR_TOKEN, FREE, READY, STATE, clean, has, say
from scene import answered, both

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
RICH = """## What was down

The **mail** server, from 02:14 to *02:31*; see [the log](https://example.com/log) and `mail.log`.

| Service | From | To | What was seen, in the words of the one who has seen it |
|---------|------|---:|---------------------------------------------------------|
| mail | 02:14 | 02:31 | connection_refused_connection_refused_connection_refused |

1. It was restarted.
2. Nothing was lost:
   - no mail
   - no log

> Keep an eye on it.

```rust
// More than a screen of a phone is wide.
fn main() -> Result<(), Box<dyn std::error::Error>> { println!("{}", "a line that does not end soon"); Ok(()) }
```

```diff
-old
+new
```
"""
WIDE = "02:14 connection refused " + "x" * 90


async def tree(page):
    """What the browser tells screen readers: (role, name) of each element."""
    nodes = (await page.call("Accessibility.getFullAXTree"))["nodes"]
    return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]


async def conversation(page, line):
    """Some of everything that can be seen, with an answer that goes on."""
    await say(page, "Which of the two services was down last night?")
    await line.question()
    await line.delta("I will look at the log.")
    await line.tool("search_logs", {"service": "mail", "hours": 12}, WIDE)
    await line.delta(RICH)
    await line.end(RICH)
    await page.until(f"{FREE} && {ANSWER}.querySelector('table, pre code') !== null")
    await page.click(".tool summary")
    await say(page, "And the night before?")
    await line.question()
    await line.fail("provider error: 529 overloaded: {\"error\": {\"type\": \"overloaded_error\"}}")
    await page.until(f"{FREE} && document.querySelector('#log .failure') !== null")


async def no_findings(scene, kind):
    """axe-core finds nothing, whatever is shown"""
    name = kind.page
    async with scene.fake(kind) as (page, line):
        await page.until(READY)
        await scene.axe.check(page, f"{name}-empty")
        await conversation(page, line)
        await scene.axe.check(page, f"{name}-answered")
        await say(page, "Try again, please.")
        await line.question()
        await line.delta("Nothing was down **then**, and `nothing")
        await page.until(f"{ANSWERING} && {has(ANSWER, 'Nothing')}")
        await scene.axe.check(page, f"{name}-streaming")
        await look(page, *PHONE)
        await page.click("#chats-open")
        await page.until("document.getElementById('chats').contains(document.activeElement)")
        await scene.axe.check(page, f"{name}-chats")
        await line.cut()
        await page.until(f"{STATE} === 'lost'")
        await scene.axe.check(page, f"{name}-lost")
        await clean(page)


async def a_token_without_findings(scene):
    async with scene.chrome.page(scene.guarded) as page:
        await page.until(ASKS_FOR_TOKEN)
        await page.type("wrong")
        await page.press("Enter")
        await page.until(has("document.getElementById('token-error')", "refused"))
        await scene.axe.check(page, "gateway-token")


async def an_invite_without_findings(scene):
    async with agents.agent(scene.switchboard, "--trust", "careful", "--invite", "onion") as (there, _):
        async with scene.chrome.page(there) as page:
            await page.until(agents.GATED)
            await scene.axe.check(page, "agent-invite")


async def asking_without_findings(scene):
    async with agents.agent(scene.switchboard) as (there, folder), scene.chrome.page(there) as page:
        (folder / "files" / "a.txt").write_text("bread\n")
        await page.until(READY)
        await page.run(
            "const data = new DataTransfer(); const picker = document.getElementById('files');"
            " data.items.add(new File(['milk'], 'a note with quite a long name.txt', { type: 'text/plain' }));"
            " picker.files = data.files; picker.dispatchEvent(new Event('change'))"
        )
        await page.until("document.querySelectorAll('#along button').length === 1")
        await scene.axe.check(page, "agent-attachment")
        await say(page, "write milk to a.txt")
        await page.until(f"{agents.OPEN} !== null")
        await scene.axe.check(page, "agent-approval")
        await page.click(".ask .answers button:nth-child(3)")
        await page.until(FREE)
        await say(page, "ask me which colour I like (red, green)")
        await page.until(f"{agents.OPEN} !== null")
        await scene.axe.check(page, "agent-question")
        await clean(page)


async def names_and_roles(scene, kind):
    """everything has a name and a role for screen readers"""
    async with scene.fake(kind) as (page, line):
        await page.until(READY)
        # One may write at once.
        expect(await page.run("document.activeElement.id") == "input", "the field has the focus")
        await conversation(page, line)
        seen = await tree(page)
        for role, name in [
            ("main", "Conversation"), ("log", "Messages"), ("textbox", "Message"), ("button", "Send"),
            ("button", "New chat"), ("navigation", "Chats"), ("heading", "You"), ("heading", "Agent"),
            ("button", "Copy answer"), ("button", "Retry"), ("link", "the log"), ("columnheader", "Service"),
        ]:
            expect((role, name) in seen, f"no {role} with the name {name!r} in {seen}")
        roles = [role for role, _ in seen]
        expect(roles.count("article") == 4, f"each message is an article: {seen}")
        tool = [name for role, name in seen if role == "DisclosureTriangle"]
        expect(any("search_logs" in name and "done" in name for name in tool), f"a tool tells its name and state: {tool}")
        expect([name for role, name in seen if role in ("button", "textbox", "link") and not name] == [], "all have names")
        await say(page, "go on")
        await line.question()
        await page.until(ANSWERING)
        expect(("button", "Stop") in await tree(page), "an answer can be stopped")
        # With the keyboard alone: from the field to the button that stops, which then gives the focus back.
        await page.press("Tab")
        while await page.run("document.activeElement.id") != "stop":
            await page.press("Tab")
        await page.press("Enter")
        await line.stopped()
        await page.until("document.activeElement.id === 'input'")
        # The list of chats is in front of all else on a phone, and gives the focus back, too.
        await look(page, *PHONE)
        await page.click("#chats-open")
        await page.until("document.getElementById('chats').contains(document.activeElement)")
        expect(await page.run("[...document.querySelectorAll('main, footer')].every((it) => it.inert)"), "nothing else is there")
        await page.press("Escape")
        await page.until("document.activeElement.id === 'chats-open'")
        await clean(page)


async def read_out_once(scene, kind):
    """an answer is read out once, when it is complete"""
    async with scene.fake(kind, before=HEARD) as (page, line):
        await say(page, "tell me")
        await line.question()
        pieces = [f"piece{number} " for number in range(40)]
        for number, piece in enumerate(pieces):
            await line.delta(piece)
            await page.until(has(ANSWER, f"piece{number}"))
        heard = await page.run("heard")
        expect(not any("piece" in text for text in heard), f"it is heard while it grows: {heard}")
        await line.end("".join(pieces))
        await page.until(f"{FREE} && heard.some((text) => text.includes('piece39'))")
        # What else might come has come with the next answer.
        await answered(page, line, "more", "another one")
        await page.until("heard.some((text) => text.includes('another one'))")
        heard = [text for text in await page.run("heard") if "piece" in text]
        expect(len(heard) == 1 and all(piece.strip() in heard[0] for piece in pieces), f"heard: {json.dumps(heard)}")
        await clean(page)


CHECKS = {
    **both(no_findings),
    "axe-core finds nothing where a token is wanted": a_token_without_findings,
    "axe-core finds nothing where an invite code is wanted": an_invite_without_findings,
    "axe-core finds nothing where the agent asks, with a file that goes along": asking_without_findings,
    **both(names_and_roles),
    **both(read_out_once),
}
