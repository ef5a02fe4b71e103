"""aiohttp at both ends."""

import asyncio

import aiohttp
from aiohttp import web

from calls import Client, answer, main, measure


async def connection(request):
    socket = web.WebSocketResponse(compress=False)
    await socket.prepare(request)
    async for message in socket:
        if message.type is aiohttp.WSMsgType.TEXT:
            await socket.send_str(answer(message.data))
    return socket


async def serve():
    app = web.Application()
    app.router.add_get("/", connection)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    print(f"{host}:{port}", flush=True)
    await asyncio.Event().wait()


async def load(address, work, in_flight, calls):
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(f"ws://{address}/") as socket:
            client = Client(socket.send_str)

            async def read():
                async for message in socket:
                    client.answered(message.data)

            reader = asyncio.create_task(read())
            await measure(client, work, in_flight, calls)
            reader.cancel()


main(serve, load)
