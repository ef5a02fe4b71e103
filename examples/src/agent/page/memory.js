// What survives a reload: the session, what was shown, and the last event of what was shown.

const PLACE = "agent-chat";
const SOON_MS = 50;
const MAX_ITEMS = 400;
/** A host takes messages of 16 MiB; a conversation has to leave room for the rest. */
const MAX_SESSION = 8 * 1024 * 1024;

function empty() {
  return { sessionId: null, lastId: null, session: null, running: false, items: [] };
}

function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(PLACE));
    return Array.isArray(kept?.items) ? { ...empty(), ...kept } : empty();
  } catch {
    return empty();
  }
}

/** The conversation. Change it, then call `save`. */
export const memory = read();

let timer = 0;

/** Soon: a run has many events. What was not written in time is told again by the host. */
export function save() {
  if (timer === 0) timer = setTimeout(write, SOON_MS);
}

function write() {
  clearTimeout(timer);
  timer = 0;
  memory.items.splice(0, Math.max(0, memory.items.length - MAX_ITEMS));
  if (JSON.stringify(memory.session)?.length > MAX_SESSION) memory.session = null;
  for (const smaller of [() => {}, () => (memory.session = null), () => memory.items.splice(0, 300)]) {
    smaller();
    try {
      return localStorage.setItem(PLACE, JSON.stringify(memory));
    } catch {
      // Full: the host has the conversation, too.
    }
  }
}

/** Another conversation. */
export function forget() {
  Object.assign(memory, empty());
  save();
}

addEventListener("pagehide", write);
