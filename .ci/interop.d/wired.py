#!/usr/bin/env python3
"""The program under test behind `wire proxy --record`: wired.py ARGS..., in place of `switchboard ARGS...`.

What the program listens on is told as the address of a proxy, and what it is to connect to becomes one:
the checks need not know. WIRED_PROGRAM is the program, WIRED_FOLDER the folder of the recordings; its file
`lock` is locked for as long as one of them is written.
"""

import fcntl
import os
import re
import select
import subprocess
import sys
from pathlib import Path

PROGRAM, FOLDER = os.environ["WIRED_PROGRAM"], Path(os.environ["WIRED_FOLDER"])
LOCAL = re.compile(r"((?:ws|http)://)(127\.0\.0\.1:\d+)")
TARGETS = ("--url", "--endpoint")
COMMANDS = {"bot": "snek", "gateway": "exoclaw", "router": "smarthole", "agent": "connectonion", "daemon": "acolyte"}


def proxy(server, protocol):
    """Starts a proxy to a server, and returns it with its address."""
    lock = os.open(FOLDER / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_SH)
    name = f"{protocol}-{os.getpid()}-{server.rsplit(':', 1)[1]}"
    args = ["--listen", "127.0.0.1:0", "--to", f"ws://{server}", "--record", FOLDER / f"{name}.jsonl"]
    args += ["--protocol", protocol, "--drain", "1s"]
    args += ["--allow-origin", "http://localhost:3000", "--allow-origin", "app://obsidian.md"]
    with open(FOLDER / f"{name}.log", "w") as log:
        started = subprocess.Popen(
            [PROGRAM, "wire", "proxy", *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, pass_fds=[lock],
        )
    os.close(lock)
    line = started.stdout.readline().decode()
    return started, LOCAL.search(line)[2]


def as_client(args, protocol):
    """Replaces the address of the server, and leaves somebody behind who ends the proxy after the program."""
    found = [(at + 1, LOCAL.match(arg)) for at, arg in enumerate(args[1:]) if args[at] in TARGETS]
    found = [(at, target) for at, target in found if target]
    if not found:
        return
    [(at, target)] = found
    parent = os.pidfd_open(os.getpid())
    reads, writes = os.pipe()
    if os.fork() > 0:
        os.close(writes)
        args[at] = target[1] + os.read(reads, 100).decode() + args[at][target.end():]
        os.close(reads)
        os.close(parent)
        return
    os.setsid()
    os.close(reads)
    to_null(0, 1, 2)
    started, address = proxy(target[2], protocol)
    os.write(writes, address.encode())
    os.close(writes)
    select.select([parent], [], [])
    end(started)


def as_server(protocol):
    """Leaves somebody behind who reads what the program prints, and tells the address of a proxy instead."""
    reads, writes = os.pipe()
    if os.fork() > 0:
        os.dup2(writes, 1)
        os.close(writes)
        os.close(reads)
        return
    os.setsid()
    os.close(writes)
    to_null(0, 2)
    proxies = {}

    def other(found):
        server = found[2]
        if server not in proxies:
            proxies[server] = proxy(server, protocol)
        return found[1] + proxies[server][1]

    while data := os.read(reads, 65536):
        if b"listening" in data:
            data = LOCAL.sub(other, data.decode()).encode()
        try:
            os.write(1, data)
        except BrokenPipeError:
            break
    to_null(1)
    end(*(started for started, _ in proxies.values()))


def to_null(*files):
    null = os.open(os.devnull, os.O_RDWR)
    for file in files:
        os.dup2(null, file)
    os.close(null)


def end(*proxies):
    for started in proxies:
        started.terminate()
    for started in proxies:
        started.wait()
    os._exit(0)


def main(args):
    command, first = [*args, "", ""][:2]
    protocol = COMMANDS.get(command)
    serves = first in ("serve", "host")
    serves = serves or command == "router" and first != "client"
    serves = serves or command == "gateway" and (not first or first.startswith("-"))
    if protocol and serves:
        as_server(protocol)
    elif protocol:
        as_client(args, protocol)
    os.execv(PROGRAM, [PROGRAM, *args])


main(sys.argv[1:])
