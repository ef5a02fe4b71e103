"""websockets at both ends."""

import asyncio

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve as listen

from calls import Client, answer, main, measure


async def connection(socket):
    async for message in socket:
        await socket.send(answer(message))


async def serve():
    async with listen(connection, "127.0.0.1", 0, compression=None) as server:
        host, port = server.sockets[0].getsockname()
        print(f"{host}:{port}", flush=True)
        await asyncio.Event().wait()


async def load(address, work, in_flight, calls):
    async with connect(f"ws://{address}/", compression=None) as socket:
        client = Client(socket.send)

        async def read():
            async for message in socket:
                client.answered(message)

        reader = asyncio.create_task(read())
        await measure(client, work, in_flight, calls)
        reader.cancel()


main(serve, load)
