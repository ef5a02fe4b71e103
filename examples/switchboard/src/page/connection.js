// Requests to the page's server, and a connection to it, which is made again when it is lost.

import { address } from "./dom.js";

/** How long opening, and what the server says first, may take. */
const OPEN_MS = 15000;
const FIRST_DELAY_MS = 1000;
const MAX_DELAY_MS = 30000;
const ANSWER_MS = 45000;

/** Asks the server, whose name is `name`, and returns its response. Fails with its words. */
export async function request(name, method, path, body, headers = {}) {
  const type = body === undefined ? {} : { "Content-Type": "application/json" };
  const signal = AbortSignal.timeout(ANSWER_MS);
  const init = { method, headers: { ...headers, ...type }, body: body && JSON.stringify(body), signal };
  const response = await fetch(address(path), init).catch(() => {
    throw new Error(`${name} cannot be reached.`);
  });
  // What is to be deleted may be gone.
  const isDone = response.ok || (method === "DELETE" && response.status === 404);
  if (!isDone) throw new Error((await response.text()).trim() || `HTTP ${response.status}`);
  return response;
}

/** `name` is who serves. `dial` opens a connection: it gets `on`, which makes of a function one that does nothing once
 * the connection was left, and returns it, which has `close`. `left` is called when one is given up, and `state` with a
 * word and a text: connecting, lost. */
export function connection({ name, dial, left, state }) {
  let ours = null;
  let timer = 0;
  let delay = FIRST_DELAY_MS;

  function after(ms, then) {
    clearTimeout(timer);
    timer = setTimeout(then, ms);
  }

  function open() {
    leave();
    state("connecting", "Connecting");
    const token = {};
    ours = token;
    token.dialled = dial((then) => (...details) => {
      if (ours === token) then(...details);
    });
    after(OPEN_MS, () => lost(`${name} does not answer`));
  }

  /** Closes the connection. */
  function leave() {
    clearTimeout(timer);
    const old = ours;
    ours = null;
    left?.();
    old?.dialled?.close();
  }

  function lost(why) {
    leave();
    // Not all pages of a restarted server at the same time.
    const wait = delay * (0.8 + 0.2 * Math.random());
    delay = Math.min(2 * delay, MAX_DELAY_MS);
    state("lost", `${why}. Next try in ${Math.max(1, Math.round(wait / 1000))} s`);
    after(wait, open);
  }

  return {
    open,
    leave,
    lost,
    /** Calls `then` unless something else is waited for by then. */
    after,
    /** The server has let the page in: the next loss is a new one. */
    ready() {
      delay = FIRST_DELAY_MS;
    },
    /** Which connection it is at the moment. */
    current: () => ours?.dialled ?? null,
  };
}
