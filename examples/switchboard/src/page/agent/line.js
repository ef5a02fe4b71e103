// The line to the agent: it is opened again when it is lost, and goes on where it was.

import { load, sign } from "./key.js";
import { memory } from "./memory.js";
import { connection, request } from "./page/connection.js";
import { address, isObject } from "./page/dom.js";

/** The agent says something every 30 s. */
const SILENCE_MS = 60000;

/** `heard` gets frames, `state` gets a word and a text: connecting, gate, ready, lost, refused. `deleted` is called when
 * the session was deleted elsewhere. */
export function line({ heard, state, info, deleted }) {
  const closed = ({ code }) => {
    if (code === 1000) deleted();
    socket.lost("Connection lost");
  };
  const socket = connection({ name: "The agent", dial, left, state });
  let me = null;
  let to = null;
  let isIn = false;
  let isGated = false;

  function dial(on) {
    const place = address("ws");
    place.protocol = place.protocol.replace("http", "ws");
    const ours = new WebSocket(place);
    ours.addEventListener("open", on(connect));
    ours.addEventListener("message", on(received));
    ours.addEventListener("close", on(closed));
    const send = (frame) => ours.readyState === WebSocket.OPEN && (ours.send(JSON.stringify(frame)), true);
    return { close: () => ours.close(1000), send };
  }

  function left() {
    isIn = false;
    isGated = false;
  }

  async function connect() {
    const ours = socket.current();
    const signed = await sign(me, to, { type: "CONNECT" });
    if (socket.current() !== ours) return;
    const frame = { type: "CONNECT", ...signed };
    if (memory.sessionId !== null) frame.session_id = memory.sessionId;
    if (memory.lastId !== null) frame.last_msg_id = memory.lastId;
    if (memory.session !== null) frame.session = memory.session;
    put(frame);
  }

  /** Whether it was sent. */
  const put = (frame) => socket.current()?.send(frame) ?? false;

  function received({ data }) {
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return;
    }
    if (!isObject(frame) || typeof frame.type !== "string") return;
    socket.after(SILENCE_MS, () => socket.lost("The agent was silent"));
    if (frame.type === "PING") put({ type: "PONG" });
    else if (frame.type === "ONBOARD_REQUIRED") gate(frame);
    else if (frame.type === "ERROR" && !isIn) refused(frame);
    else {
      if (frame.type === "CONNECTED") {
        isIn = true;
        isGated = false;
        socket.ready();
        state("ready", frame.signature_recommended ? "Connected without a signature" : "Connected");
      }
      heard(frame);
    }
  }

  function gate(frame) {
    isGated = true;
    const methods = Array.isArray(frame.methods) ? frame.methods : [];
    state("gate", methods.includes("invite_code") ? "" : "This agent accepts no invite codes.");
  }

  /** At the gate another try is welcome; a CONNECT that was refused would be refused again. */
  function refused(frame) {
    const why = typeof frame.message === "string" ? frame.message : "refused";
    if (isGated) return state("gate", why);
    socket.leave();
    state("refused", why);
  }

  async function start() {
    [me, to] = await Promise.all([load(), info()]);
    socket.open();
  }

  const started = start();
  return {
    open: socket.open,
    leave: socket.leave,
    /** Whether it was sent. */
    send: (frame) => isIn && put(frame),
    /** Deletes a session, and all that the agent has stored of it, but for its files if they are still needed. */
    async remove(id, keepsFiles = false) {
      await started;
      const body = await sign(me, to, { type: "DELETE", delete: id, ...(keepsFiles && { keep_files: true }) });
      await request("The agent", "DELETE", `sessions/${id}`, body);
    },
    async onboard(code) {
      const signed = await sign(me, to, { type: "ONBOARD_SUBMIT", invite_code: code });
      put({ type: "ONBOARD_SUBMIT", ...signed });
    },
  };
}
