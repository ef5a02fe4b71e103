"""Our clients in a page and in Node, compiled to WebAssembly: each talks, waits too long, loses its line, reconnects
and leaves; the machines and codecs keep their rules there; and the page that shows five clients works."""

# Needs: node, browser, web.

import contextlib
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from aiohttp import ClientSession
from chrome import browser
from gateways import TOKEN, gateway
from harness import expect, main, program, same, served, switchboard
from provider import Provider
from webs import Front, lives_in_a_page, lives_in_node

CHAT = """(async () => {
  const { default: init, Chat } = await import("/pkg/switchboard_web.js");
  await init();
  const chat = await Chat.connect(%s, %s);
  let answer = "";
  await chat.ask("hi", (piece) => { answer += piece; });
  return answer;
})()"""
TARGETS = """
import init, { target } from %s;
import { readFileSync, readdirSync } from "node:fs";
await init({ module_or_path: readFileSync(%s) });
let count = 0, name, file;
try {
  for (name of readdirSync(%s)) {
    for (file of readdirSync(`${%s}/${name}`)) {
      target(name, readFileSync(`${%s}/${name}/${file}`));
      count++;
    }
  }
  console.log(`${count} inputs`);
} catch (error) {
  console.log(`${name}/${file}: ${error.stack}`);
}
process.exit();
"""
STATE = "document.querySelector('#%s output').value"
HAS = "[...document.querySelectorAll('#%s %s')].map((it) => it.textContent).join('\\n')"
USERS = {"SNEK_PASSWORD_ALICE": "wonderland", "SNEK_PASSWORD_BOB": "builder"}
SECRETS = {"snek": "wonderland", "exoclaw": TOKEN}
ROOT = Path(__file__).resolve().parents[3]
