// ws at both ends: a map of calls by id, a promise and a timer for each.

import { createInterface } from "node:readline";
import { once } from "node:events";
import WebSocket, { WebSocketServer } from "ws";

const TIMEOUT_MS = 60_000;
const STATUS = { version: "0.1.0", plugins: 3, sessions: 12 };
const SAID = { text: "The quick brown fox jumps over a lazy dog." };
// Of each kind of work: the method, its parameters, and whether an answer is right.
const WORKS = {
  ping: ["ping", {}, (answer) => answer === "pong"],
  status: ["status", {}, (answer) => answer.sessions === STATUS.sessions],
  "echo, 42 B": ["echo", SAID, (answer) => answer.text === SAID.text],
};
const METHODS = {
  ping: () => "pong",
  status: () => STATUS,
  echo: (params) => ({ text: params.text }),
};
const lines = createInterface({ input: process.stdin });
lines.on("close", () => process.exit(0));

class Client {
  #socket;
  #pending = new Map();
  #next = 0;

  constructor(socket) {
    this.#socket = socket;
    socket.on("message", (data) => {
      const answer = JSON.parse(data);
      const call = this.#pending.get(answer.id);
      if (call === undefined) return;
      this.#pending.delete(answer.id);
      clearTimeout(call.timer);
      call.resolve(answer.result);
    });
  }

  call(method, params) {
    const id = (++this.#next).toString(16).padStart(16, "0");
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        reject(new Error("timed out"));
      }, TIMEOUT_MS);
      this.#pending.set(id, { resolve, timer });
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }
}

function serve() {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });
  server.on("listening", () => console.log(`127.0.0.1:${server.address().port}`));
  server.on("connection", (socket) => {
    socket.on("message", (data) => {
      const { id, method, params } = JSON.parse(data);
      const run = METHODS[method];
      const answer = run ? { id, result: run(params) } : { id, error: "unknown method" };
      socket.send(JSON.stringify(answer));
    });
  });
}

async function phase(done) {
  console.log(done);
  await once(lines, "line");
}

async function make(client, work, inFlight, calls) {
  const [method, params, isRight] = WORKS[work];
  const times = [];
  let left = calls;
  const caller = async () => {
    while (left-- > 0) {
      const start = inFlight === 1 ? process.hrtime.bigint() : 0n;
      if (!isRight(await client.call(method, params))) throw new Error("a wrong answer");
      if (inFlight === 1) times.push(Number(process.hrtime.bigint() - start));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, caller));
  times.sort((a, b) => a - b);
  return times[times.length >> 1] ?? 0;
}

async function load(address, work, inFlight, calls) {
  const socket = new WebSocket(`ws://${address}/`, { perMessageDeflate: false });
  await once(socket, "open");
  const client = new Client(socket);
  await make(client, work, inFlight, calls >> 2);
  await phase("ready");
  const median = await make(client, work, inFlight, calls);
  await phase(String(median));
}

const [role, kind, address, inFlight, calls] = process.argv.slice(2);
if (role === "serve") serve();
else await load(address, kind.split(": ")[1], Number(inFlight), Number(calls));
