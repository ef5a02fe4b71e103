"""The npm package of the clients: packed, installed into an empty folder, and used from Node against five servers."""
# Needs: node, web.

import os
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

from gateways import TOKEN
from harness import expect, main, node_folder, program, served, switchboard
from webs import Page

PROGRAM = Path(__file__).with_suffix(".mjs")

async def done(*argv, cwd):
    async with program(*argv, cwd=cwd) as running:
        running.close_input()
        expect(await running.end() == 0, running.tail())
        return running

async def it_installs_from_its_archive(tried):
    """Nothing comes from the registry, for it has no dependencies."""
    await done("npm", "pack", "--silent", "--pack-destination", tried.packed, cwd=Path(os.environ["WEB"], "pkg"))
    (archive,) = tried.packed.glob("switchboard-clients-*.tgz")
    await done("npm", "install", "--offline", "--no-audit", "--no-fund", archive, cwd=tried.folder)
    shutil.copy(PROGRAM, tried.folder)
    expect(not (tried.folder / "node_modules/switchboard-clients/node_modules").exists(), "it has dependencies")

async def its_types_fit_a_program(tried):
    compiler = node_folder() / "node_modules/typescript/bin/tsc"
    for resolution, module in (("bundler", "esnext"), ("node16", "node16")):
        options = ("--strict", "--noEmit", "--target", "es2022", "--lib", "es2024,dom,dom.asynciterable,esnext.disposable")
        how = ("--module", module, "--moduleResolution", resolution, "--allowJs", "--checkJs", "--typeRoots")
        await done("node", compiler, *options, *how, node_folder() / "node_modules/@types", PROGRAM.name, cwd=tried.folder)

async def it_speaks(protocol, line, tried):
    words = (PROGRAM.name, protocol, f"ws://127.0.0.1:{line.port}", line.url)
    # Node 20 has a WebSocket behind this option, and later ones anyway.
    running = await done("node", "--experimental-websocket", *words, cwd=tried.folder)
    expect(running.find("well done"), running.tail())

async def body(checks):
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        packed, folder, home = (Path(stack.enter_context(TemporaryDirectory())) for _ in range(3))
        tried = SimpleNamespace(packed=packed, folder=folder)
        lines = {name: await enter(Page()) for name in ("snek", "exoclaw", "connectonion", "smarthole", "acolyte")}
        await checks.run(it_installs_from_its_archive, tried)
        await checks.run(its_types_fit_a_program, tried)
        users = ("--user", "alice:Alice", "--user", "bob:Bob")
        lines["snek"].target = (await enter(served("bot", "serve", *users, SNEK_PASSWORD_ALICE="wonderland", SNEK_PASSWORD_BOB="builder"))).port
        gateway = await enter(switchboard("gateway", "--port", "0", "--token", TOKEN, HOME=home))
        lines["exoclaw"].target = int((await gateway.line("listening")).split("ws://127.0.0.1:")[1].split("/")[0])
        lines["connectonion"].target = (await enter(served("agent", "host", HOME=home))).port
        router = await enter(switchboard("router", "--listen", "127.0.0.1:0", "--json"))
        listening = await router.event("listening")
        lines["smarthole"].target, lines["smarthole"].input = int(listening["url"].rsplit(":", 1)[1]), listening["input"]
        daemon = served("daemon", "serve", "--workspace", home, HOME=home, ACOLYTE_API_KEY=TOKEN)
        lines["acolyte"].target = (await enter(daemon)).port
        await checks.run(it_speaks, "types", lines["snek"], tried)
        for protocol, line in lines.items():
            await checks.run(it_speaks, protocol, line, tried)

main(body)
