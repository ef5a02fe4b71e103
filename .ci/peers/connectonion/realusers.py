"""Users of the Python package's client, told by lines of JSON what to do: realusers.py FOLDER.

`{"id", "user", "do", ..}` is answered by a line with the same `id` and what came of it, in any order. Ends with its
standard input.
"""

import asyncio
import contextlib
import inspect
import json
import os
import sys
from pathlib import Path

FOLDER = Path(sys.argv[1])
FOLDER.mkdir(parents=True, exist_ok=True)
os.environ["HOME"] = str(FOLDER)
os.chdir(FOLDER)

from connectonion import address, connect

if "SEAL_TIMEOUT" in os.environ:
    # Newer ones wait for hosts that know nothing of it.
    with contextlib.suppress(ImportError):
        from connectonion.network import sealed

        sealed.HANDSHAKE_TIMEOUT = float(os.environ["SEAL_TIMEOUT"])

KEYS = {}

def keys(name):
    """One key for each name. That of `wrong` signs for somebody else."""
    if name is None:
        # Newer ones look for a key of their own unless they are told not to.
        return False
    if name not in KEYS:
        KEYS[name] = address.generate()
        if name == "wrong":
            KEYS[name]["address"] = address.generate()["address"]
    return KEYS[name]

def answers(order, can):
    """How to answer what is asked on the way. Older clients cannot be told all of it."""
    given = {}
    if "code" in order:
        given["on_onboard"] = lambda methods, amount: {"invite_code": order["code"]}
    if "answer" in order and "on_ask" in can:
        given["on_ask"] = lambda event: order["answer"]
    if "approve" in order and "on_approval" in can:
        given["on_approval"] = lambda event: order["approve"]
    return given

async def obey(users, order):
    name = order["user"]
    match order["do"]:
        case "open":
            users[name] = connect(order["address"], keys=keys(order["key"]), relay_url=order["relay"])
            return {}
        case "input":
            can = inspect.signature(users[name].input_async).parameters
            more = {key: order[key] for key in ("timeout", "images", "files") if key in order}
            said = await users[name].input_async(order["prompt"], **more, **answers(order, can))
            return {"text": said.text, "done": said.done}
        case "approve":
            said = await users[name].respond_to_approval_async(order["approve"])
            return {"text": said.text, "done": said.done}
        case "stop":
            return {"stopped": await users[name].stop_async()}
        case "mode":
            return {"set": await users[name].set_session_mode_async(order["mode"])}
        case "look":
            return {"session": users[name].current_session, "ui": users[name].ui}

async def answer(users, order):
    try:
        result = await obey(users, order)
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps({"id": order["id"]} | result, default=str), flush=True)

async def main():
    users, tasks = {}, set()
    print(json.dumps({"ready": True}), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        tasks.add(asyncio.create_task(answer(users, json.loads(line))))
    os._exit(0)

asyncio.run(main())
