// The line to the agent: it is opened again when it is lost, and goes on where it was.

import { load, sign } from "./key.js";
import { memory } from "./memory.js";

/** How long opening, and the answer to CONNECT, may take. */
const OPEN_MS = 15000;
/** The agent says something every 30 s. */
const SILENCE_MS = 60000;
const FIRST_DELAY_MS = 1000;
const MAX_DELAY_MS = 30000;

/** `heard` gets frames, `state` gets a word and a text: connecting, gate, ready, lost, refused. */
export function line({ heard, state, info }) {
  let socket = null;
  let timer = 0;
  let delay = FIRST_DELAY_MS;
  let me = null;
  let to = null;
  let isIn = false;
  let isGated = false;

  function after(ms, then) {
    clearTimeout(timer);
    timer = setTimeout(then, ms);
  }

  async function open() {
    leave();
    state("connecting", "Connecting");
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const ours = new WebSocket(`${scheme}//${location.host}/ws`);
    socket = ours;
    // A socket that was left has no say any more.
    const on = (name, handler) =>
      ours.addEventListener(name, (event) => {
        if (socket === ours) handler(event);
      });
    on("open", connect);
    on("message", ({ data }) => received(data));
    on("close", () => lost("Connection lost"));
    after(OPEN_MS, () => lost("The agent does not answer"));
  }

  function leave() {
    clearTimeout(timer);
    const old = socket;
    socket = null;
    isIn = false;
    isGated = false;
    old?.close(1000);
  }

  async function connect() {
    const ours = socket;
    const signed = await sign(me, to);
    if (socket !== ours) return;
    const frame = { type: "CONNECT", ...signed };
    if (memory.sessionId !== null) frame.session_id = memory.sessionId;
    if (memory.lastId !== null) frame.last_msg_id = memory.lastId;
    if (memory.session !== null) frame.session = memory.session;
    put(frame);
  }

  function put(frame) {
    if (socket?.readyState !== WebSocket.OPEN) return false;
    socket.send(JSON.stringify(frame));
    return true;
  }

  function lost(why) {
    leave();
    // Not all pages of a restarted agent at the same time.
    const wait = delay * (0.5 + 0.5 * Math.random());
    delay = Math.min(2 * delay, MAX_DELAY_MS);
    state("lost", `${why}. Next try in ${Math.max(1, Math.round(wait / 1000))} s`);
    after(wait, open);
  }

  function received(data) {
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return;
    }
    if (typeof frame?.type !== "string") return;
    after(SILENCE_MS, () => lost("The agent was silent"));
    if (frame.type === "PING") put({ type: "PONG" });
    else if (frame.type === "ONBOARD_REQUIRED") gate(frame);
    else if (frame.type === "ERROR" && !isIn) refused(frame);
    else {
      if (frame.type === "CONNECTED") {
        isIn = true;
        isGated = false;
        delay = FIRST_DELAY_MS;
        state("ready", frame.signature_recommended ? "Connected without a signature" : "Connected");
      }
      heard(frame);
    }
  }

  function gate(frame) {
    isGated = true;
    const methods = Array.isArray(frame.methods) ? frame.methods : [];
    state("gate", methods.includes("invite_code") ? "" : "This agent lets nobody in by invite code.");
  }

  /** At the gate another try is welcome; a CONNECT that was refused would be refused again. */
  function refused(frame) {
    const why = typeof frame.message === "string" ? frame.message : "refused";
    if (isGated) return state("gate", why);
    leave();
    state("refused", why);
  }

  async function start() {
    [me, to] = await Promise.all([load(), info()]);
    open();
  }

  start();
  return {
    open,
    leave,
    /** Whether it was sent. */
    send: (frame) => isIn && put(frame),
    async onboard(code) {
      const signed = await sign(me, to, { invite_code: code });
      put({ type: "ONBOARD_SUBMIT", ...signed });
    },
  };
}
