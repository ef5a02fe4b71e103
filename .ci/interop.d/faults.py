"""What the checks of clusters share: a NATS server that fails, and how long it took."""

import asyncio
import contextlib
import shutil
import signal
import socket
import tempfile

from common import expect


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class NatsServer:
    """A NATS server with JetStream, at the same port after each start."""

    def __init__(self, folder, port=None):
        self.folder, self.process = folder, None
        self.program = shutil.which("nats-server")
        expect(self.program, "nats-server on the path; on Debian: apt-get install nats-server")
        self.port = port or free_port()
        self.url = f"nats://127.0.0.1:{self.port}"

    async def start(self):
        args = ["-js", "-sd", self.folder, "-a", "127.0.0.1", "-p", str(self.port)]
        quiet = {"stdout": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.DEVNULL}
        self.process = await asyncio.create_subprocess_exec(self.program, *args, **quiet)
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            expect(self.process.returncode is None, "nats-server has ended")
            await asyncio.sleep(0.05)

    async def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        await self.process.wait()

    async def hang(self, seconds):
        self.process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextlib.asynccontextmanager
async def nats_server(port=None):
    with tempfile.TemporaryDirectory() as folder:
        server = NatsServer(folder, port)
        await server.start()
        try:
            yield server
        finally:
            await server.kill()


def quantiles(times):
    times = sorted(times)
    at = lambda share: times[min(len(times) - 1, int(len(times) * share))]
    return f"p50 {at(0.5):.2f} s, p99 {at(0.99):.2f} s, longest {times[-1]:.2f} s"
