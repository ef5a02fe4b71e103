// Users of the npm package's client, ordered by lines of JSON, as caller.py does it for Python's.

import readline from "node:readline";
import connectonion from "connectonion";

const { address, connect } = connectonion;
const users = new Map();
const keys = new Map();

/** One key for each name. That of `wrong` signs for somebody else. */
function key(name) {
  if (!keys.has(name)) {
    const made = address.generate();
    keys.set(name, name === "wrong" ? { ...made, address: address.generate().address } : made);
  }
  return keys.get(name);
}

/** Answers what the agent asks, once each, as far as the order says how. */
function watch(user, order) {
  const answered = new Set(user.ui.map((item) => item.id));
  const look = () => {
    for (const item of user.ui.filter((item) => !answered.has(item.id))) {
      const answer = {
        ask_user: () => "answer" in order && { type: "ASK_USER_RESPONSE", answer: order.answer },
        approval_needed: () =>
          "approve" in order && { type: "APPROVAL_RESPONSE", approved: order.approve, scope: "once" },
        onboard_required: () => "code" in order && user.signOnboard({ inviteCode: order.code }),
      }[item.type]?.();
      if (!answer) continue;
      answered.add(item.id);
      user.send(answer);
    }
  };
  user.onMessage = look;
}

const orders = {
  open(_, { user, address: host, relay, key: name }) {
    users.set(user, connect(host, { keys: key(name), relayUrl: relay }));
    return { address: key(name).address };
  },
  async input(user, order) {
    watch(user, order);
    const { prompt, images, files, timeout } = order;
    return user.input(prompt, {
      images,
      files: files?.map(({ name, data }) => ({ name, dataUrl: data })),
      timeoutMs: timeout && timeout * 1000,
    });
  },
  reconnect(user, order) {
    watch(user, order);
    return user.reconnect();
  },
  async status(user) {
    return { found: await user.checkSessionStatus(user.currentSession.session_id) };
  },
  stop(user) {
    user.send({ type: "INTERRUPT" });
    return { stopped: true };
  },
  mode(user, { mode }) {
    user.setMode(mode);
    return { sent: true };
  },
  look: (user) => ({
    session: user.currentSession,
    ui: user.ui,
    status: user.status,
    connected: user._ws !== null,
  }),
};

async function obey(order) {
  let result;
  try {
    result = await orders[order.do](users.get(order.user), order);
  } catch (error) {
    result = { error: `${error.name}: ${error.message}` };
  }
  console.log(JSON.stringify({ id: order.id, ...result }));
}

const lines = readline.createInterface({ input: process.stdin });
lines.on("line", (line) => obey(JSON.parse(line)));
lines.on("close", () => process.exit(0));
console.log(JSON.stringify({ ready: true }));
