// Users of the npm package's client, told by lines of JSON what to do: see realusers.py.
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

const answers = {
  ask_user: (_, { answer }) => answer !== undefined && { type: "ASK_USER_RESPONSE", answer },
  approval_needed: (_, { approve }) =>
    approve !== undefined && { type: "APPROVAL_RESPONSE", approved: approve, scope: "once" },
  onboard_required: (user, { code }) => code !== undefined && user.signOnboard({ inviteCode: code }),
};

/** Answers what the agent asks from now on, once each, as far as the order says how. */
function watch(user, order) {
  const answered = new Set(user.ui.map((item) => item.id));
  user.onMessage = () => {
    for (const item of user.ui.filter((item) => !answered.has(item.id))) {
      const answer = answers[item.type]?.(user, order);
      if (answer) {
        answered.add(item.id);
        user.send(answer);
      }
    }
  };
}

const orders = {
  open(_, { user, address, relay, key: name }) {
    users.set(user, connect(address, { keys: key(name), relayUrl: relay }));
  },
  input(user, order) {
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
  status: async (user) => ({ found: await user.checkSessionStatus(user.currentSession.session_id) }),
  stop: (user) => user.send({ type: "INTERRUPT" }),
  mode: (user, { mode }) => user.setMode(mode),
  look: (user) => ({
    session: user.currentSession,
    ui: user.ui,
    connected: user._ws !== null,
    asked: user._lastPingTime,
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
