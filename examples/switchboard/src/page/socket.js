// A WebSocket to the page's server, which is opened again when it is lost.

import { isObject } from "./dom.js";

/** How long opening, and what the server says first, may take. */
const OPEN_MS = 15000;
const FIRST_DELAY_MS = 1000;
const MAX_DELAY_MS = 30000;

/** `name` is who serves. `opened`, `heard` (a frame) and `closed` are called for what happens on it, `left` when it is
 * given up, and `state` with a word and a text: connecting, lost. */
export function socketTo({ name, opened, heard, closed, left, state }) {
  let socket = null;
  let timer = 0;
  let delay = FIRST_DELAY_MS;

  function after(ms, then) {
    clearTimeout(timer);
    timer = setTimeout(then, ms);
  }

  const silent = () => lost(`${name} does not answer`);

  function open() {
    leave();
    state("connecting", "Connecting");
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const ours = new WebSocket(`${scheme}//${location.host}/ws`);
    socket = ours;
    // A socket that was left has no say any more.
    const on = (event, handler) =>
      ours.addEventListener(event, (details) => {
        if (socket === ours) handler(details);
      });
    on("open", opened);
    on("message", ({ data }) => received(data));
    on("close", closed);
    after(OPEN_MS, silent);
  }

  function received(data) {
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return;
    }
    if (isObject(frame)) heard(frame);
  }

  /** Closes the socket: the server ends what it does for it. */
  function leave() {
    clearTimeout(timer);
    const old = socket;
    socket = null;
    left();
    old?.close(1000);
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
    waitsNoMore: () => clearTimeout(timer),
    /** The server must say something in time. */
    expectAnswer: () => after(OPEN_MS, silent),
    /** The server has let the page in: the next loss is a new one. */
    ready() {
      delay = FIRST_DELAY_MS;
    },
    /** Which socket it is at the moment. */
    current: () => socket,
    isOpen: () => socket?.readyState === WebSocket.OPEN,
    send: (frame) => socket.send(JSON.stringify(frame)),
  };
}
