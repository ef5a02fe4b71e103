"""Our Snek client in Node, compiled to WebAssembly: it talks, waits too long, loses its line, reconnects, sleeps and
leaves."""
# Needs: node, snek-in-a-page.

from harness import main, served
from webs import Page, lives_in_node

async def body(checks):
    async with Page() as line, served("bot", "serve", "--user", "alice:Alice", SNEK_PASSWORD_ALICE="wonderland") as chat:
        line.target = chat.port
        await checks.run(lives_in_node, line, "snek", "/rpc.ws")

main(body)
