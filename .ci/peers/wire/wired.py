#!/usr/bin/env python3
"""The program under test behind `wire proxy --record`: wired.py ARGS.., in place of `switchboard ARGS..`.

What the program listens on is told as the address of a proxy, and what it is to connect to becomes one: the checks need
not know. It remains the process that was started, so that signals and exit codes are its own. WIRED_PROGRAM is the
program, WIRED_FOLDER the folder of the recordings; its file `lock` is locked for as long as one of them is written."""

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
# The proxy has its own list of pages that may connect.
ORIGINS = ("http://localhost:3000", "app://obsidian.md")


def proxy(server, protocol):
    """Starts a proxy to a server, and returns it with its address."""
    name = f"{protocol}-{os.getpid()}-{server.rsplit(':', 1)[1]}"
    args = ["--to", f"ws://{server}", "--record", FOLDER / f"{name}.jsonl", "--protocol", protocol, "--drain", "1s"]
    args += [f"--allow-origin={origin}" for origin in ORIGINS]
    with open(FOLDER / f"{name}.log", "w") as log, open(FOLDER / "lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        started = subprocess.Popen(
            [PROGRAM, "wire", "proxy", "--listen", "127.0.0.1:0", *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, pass_fds=[lock.fileno()],
        )
    return started, LOCAL.search(started.stdout.readline())[2]


def helper():
    """Leaves a process behind that helps this one. Returns whether it is that, and the ends of a pipe between them."""
    reads, writes = os.pipe()
    if os.fork() > 0:
        return False, reads, writes
    os.setsid()
    return True, reads, writes


def as_client(args, protocol):
    """Replaces the address of the server. The helper ends the proxy after the program."""
    places = [(at + 1, LOCAL.match(arg)) for at, arg in enumerate(args[1:]) if args[at] in TARGETS]
    places = [(at, target) for at, target in places if target]
    if not places:
        return
    [(at, target)] = places
    program = os.pidfd_open(os.getpid())
    is_helper, reads, writes = helper()
    if is_helper:
        close(0, 1, 2, reads)
        started, address = proxy(target[2], protocol)
        os.write(writes, address.encode())
        os.close(writes)
        select.select([program], [], [])
        end(started)
    args[at] = target[1] + os.read(reads, 100).decode() + args[at][target.end() :]
    for file in (program, reads, writes):
        os.close(file)


def as_server(protocol):
    """The helper passes on what the program prints, with the address of a proxy in place of its own."""
    is_helper, reads, writes = helper()
    if not is_helper:
        os.dup2(writes, 1)
        os.close(writes)
        os.close(reads)
        return
    close(0, 2, writes)
    proxies = {}

    def other(found):
        if found[2] not in proxies:
            proxies[found[2]] = proxy(found[2], protocol)
        return found[1] + proxies[found[2]][1]

    while data := os.read(reads, 65536):
        if b"listening" in data:
            data = LOCAL.sub(other, data.decode()).encode()
        try:
            os.write(1, data)
        except BrokenPipeError:
            break
    close(1)
    end(*(started for started, _ in proxies.values()))


def close(*files):
    """Closes files. What is opened later must not be taken for the first three."""
    null = os.open(os.devnull, os.O_RDWR)
    for file in files:
        os.dup2(null, file)


def end(*proxies):
    for started in proxies:
        started.terminate()
    for started in proxies:
        started.wait()
    os._exit(0)


def main(args):
    command, first = [*args, "", ""][:2]
    serves = first in ("serve", "host") or command == "router" and first != "client"
    serves = serves or command == "gateway" and (not first or first.startswith("-"))
    if protocol := COMMANDS.get(command):
        as_server(protocol) if serves else as_client(args, protocol)
    os.execv(PROGRAM, [PROGRAM, *args])


main(sys.argv[1:])
