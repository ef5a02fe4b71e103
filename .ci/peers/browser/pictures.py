"""What the README's pictures show: the gateway's page with a table and code, a change that the agent asks about, frames."""
# Needs: browser.

import os
from pathlib import Path

from chatpage import ANSWER, ask, fresh, has, host, say
from chrome import browser
from gateways import gateway
from harness import call, main, output, switchboard
from screen import look

SIZE = (1180, 780)
BEFORE = "# Shopping\n\n- bread\n- butter\n- 2 apples\n"
AFTER = "# Shopping\n\n- bread\n- milk\n- 4 apples\n"

async def picture(page, name):
    """Writes the picture of a page, if there is a folder for it."""
    await page.run("document.activeElement?.blur()")
    if folder := os.environ.get("PICTURES"):
        await page.page.screenshot(path=Path(folder, f"{name}.png"))

async def the_gateway_answers_with_a_table_and_code(chrome):
    async with gateway(config="") as real, chrome.page(real.http) as page:
        await look(page, *SIZE)
        for name, question in [("Count to ten in French", "count to 10"), ("Shells for scripts", "show markdown")]:
            await fresh(page)
            await ask(page, question)
            await page.run("document.getElementById('title').select()")
            await page.enter(name)
        await page.until(f"{has(ANSWER, 'fish')} && {has(ANSWER, 'greet')}")
        await picture(page, "gateway")

async def the_agent_asks_before_it_changes_a_file(chrome):
    async with host() as real, chrome.page(real.http) as page:
        await look(page, *SIZE)
        (real.folder / "files" / "shopping.md").write_text(BEFORE)
        await ask(page, call("read_file", path="shopping.md"), "bread")
        await say(page, call("write_file", path="shopping.md", text=AFTER), "document.querySelector('.ask .diff') !== null")
        await page.run("document.getElementById('title').select()")
        await page.enter("Shopping list")
        await picture(page, "agent")

async def frames_are_shown_with_what_they_mean(chrome):
    async with gateway(config="") as real:
        to = ("--to", real.url, "--listen", "127.0.0.1:0", "--page=127.0.0.1:0")
        async with switchboard("wire", "proxy", *to) as proxy:
            place = (await proxy.line("ws://127")).split("ws://")[1].split()[0].rstrip("/,")
            site = "http://" + (await proxy.line("http://127")).split("http://")[1].split()[0].rstrip("/,")
            await output("gateway", "chat", "--url", f"ws://{place}", "count to 12")
            async with chrome.page(site) as page:
                await look(page, *SIZE)
                rows = "document.querySelectorAll('#frames [role=option]')"
                await page.until(f"{rows}.length > 10")
                await page.run(f"[...{rows}].find((it) => it.textContent.includes('chat.send')).click()")
                await page.until("document.querySelector('#detail h2') !== null")
                await picture(page, "wire")

async def body(checks):
    async with browser() as chrome:
        await checks.each((
            the_gateway_answers_with_a_table_and_code, the_agent_asks_before_it_changes_a_file,
            frames_are_shown_with_what_they_mean,
        ), chrome)

main(body)
