// What survives a reload: the session of each chat, the one that it replaces, those whose files it needs, what was
// shown, and the last event of what was shown.

import { browser } from "./page/dom.js";

const PREFIX = "agent-chat-";
const SOON_MS = 50;
const MAX_ITEMS = 400;
/** A host takes messages of 16 MiB; a conversation has to leave room for the rest. */
const MAX_SESSION = 8 * 1024 * 1024;

function empty() {
  return { sessionId: null, lastId: null, session: null, replaced: null, earlier: [], running: false, items: [] };
}

/** The chat that is shown. Change it, then call `save`. */
export const memory = empty();

let chat = null;
let timer = 0;

/** Shows another chat, which may be a new one. */
export function load(id) {
  if (timer !== 0) write();
  chat = id;
  const kept = browser.read(PREFIX + id);
  Object.assign(memory, empty(), Array.isArray(kept?.items) ? kept : {});
}

/** Shows the chat as another tab has left it. */
export function reload() {
  clearTimeout(timer);
  timer = 0;
  load(chat);
}

/** Soon: a run has many events. What was not written in time is told again by the host. */
export function save() {
  if (timer === 0) timer = setTimeout(write, SOON_MS);
}

export function write() {
  clearTimeout(timer);
  timer = 0;
  memory.items.splice(0, Math.max(0, memory.items.length - MAX_ITEMS));
  if (JSON.stringify(memory.session)?.length > MAX_SESSION) memory.session = null;
  // Full: the host has the conversation, too.
  for (const smaller of [() => {}, makeRoom, () => (memory.session = null), () => memory.items.splice(0, 300)]) {
    smaller();
    if (memory.items.length === 0 && memory.sessionId === null) return;
    if (browser.write(PREFIX + chat, memory)) return;
  }
}

/** Chats that are not shown keep only the way to what the host has. */
function makeRoom() {
  for (const name of Object.keys(localStorage)) {
    if (!name.startsWith(PREFIX) || name === PREFIX + chat) continue;
    const { sessionId = null, earlier = [] } = browser.read(name) ?? {};
    browser.write(name, { ...empty(), sessionId, earlier });
  }
}

/** Keeps a chat that begins with something. */
export function create(id, kept) {
  browser.write(PREFIX + id, { ...empty(), ...kept });
}

/** Whether a chat has these words, as far as this browser knows it. */
export function has(id, words) {
  const items = browser.read(PREFIX + id)?.items ?? [];
  return items.some(({ text }) => typeof text === "string" && text.toLowerCase().includes(words.toLowerCase()));
}

/** Forgets a chat, and returns what there was. */
export function forget(id) {
  if (id === chat && timer !== 0) write();
  const kept = browser.read(PREFIX + id);
  browser.write(PREFIX + id, null);
  if (id === chat) reload();
  return kept;
}

/** Takes back what was forgotten. */
export function restore(id, kept) {
  browser.write(PREFIX + id, kept);
  if (id === chat) reload();
}

addEventListener("pagehide", () => {
  if (timer !== 0) write();
});
