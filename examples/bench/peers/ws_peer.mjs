// ws at both ends: a map of calls by id, a promise and a timer for each.

import { createInterface } from "node:readline";
import { once } from "node:events";
import WebSocket, { WebSocketServer } from "ws";

const TIMEOUT_MS = 60_000;
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
      const { id, method } = JSON.parse(data);
      const answer = method === "ping" ? { id, result: "pong" } : { id, error: "unknown method" };
      socket.send(JSON.stringify(answer));
    });
  });
}

async function phase(done) {
  console.log(done);
  await once(lines, "line");
}

async function make(client, inFlight, calls) {
  const times = [];
  let left = calls;
  const caller = async () => {
    while (left-- > 0) {
      const start = inFlight === 1 ? process.hrtime.bigint() : 0n;
      if ((await client.call("ping", {})) !== "pong") throw new Error("no pong");
      if (inFlight === 1) times.push(Number(process.hrtime.bigint() - start));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, caller));
  times.sort((a, b) => a - b);
  return times[times.length >> 1] ?? 0;
}

async function load(address, inFlight, calls) {
  const socket = new WebSocket(`ws://${address}/`, { perMessageDeflate: false });
  await once(socket, "open");
  const client = new Client(socket);
  await make(client, inFlight, calls >> 2);
  await phase("ready");
  const median = await make(client, inFlight, calls);
  await phase(String(median));
}

const [role, , address, inFlight, calls] = process.argv.slice(2);
if (role === "serve") serve();
else await load(address, Number(inFlight), Number(calls));
