"""Users of the Python package's client, ordered by lines of JSON: caller.py FOLDER.

`{"id", "user", "do", ..}` is answered by a line with the same `id`, and by what came of it: at once or
later, and in any order. Ends with its standard input.
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
    """What is answered on the way, as far as this client can be told."""
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
    if order["do"] == "open":
        users[name] = connect(order["address"], keys=keys(order["key"]), relay_url=order["relay"])
        return {"address": keys(order["key"])["address"] if order["key"] else None}
    user = users[name]
    match order["do"]:
        case "input":
            more = {key: order[key] for key in ("timeout", "images", "files") if key in order}
            can = inspect.signature(user.input_async).parameters
            said = await user.input_async(order["prompt"], **more, **answers(order, can))
            return {"text": said.text, "done": said.done}
        case "approve":
            said = await user.respond_to_approval_async(order["approve"])
            return {"text": said.text, "done": said.done}
        case "stop":
            return {"stopped": await user.stop_async()}
        case "mode":
            await user.set_session_mode_async(order["mode"])
            return {"set": True}
        case "look":
            session = user.current_session
            return {"session": session, "ui": user.ui, "status": user.status}


async def main():
    users, tasks = {}, set()
    loop = asyncio.get_running_loop()

    async def answer(order):
        try:
            result = await obey(users, order)
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"id": order["id"]} | result), flush=True)

    print(json.dumps({"ready": True}), flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = asyncio.create_task(answer(json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    os._exit(0)


asyncio.run(main())
