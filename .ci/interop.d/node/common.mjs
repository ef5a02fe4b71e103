// What all programs of checks need: running checks, programs, clients and requests.

import { spawn } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import readline from "node:readline";
import WebSocket from "ws";

/** Longer than anything that works takes. */
export const DEADLINE = 10_000;

export class Failed extends Error {}

export function expect(condition, what) {
  if (!condition) throw new Failed(what);
}

/** Both are the same as JSON. */
export function same(found, expected, what) {
  const [one, other] = [found, expected].map((value) => JSON.stringify(value));
  expect(one === other, `${what}: ${short(one)} instead of ${short(other)}`);
}

function short(text) {
  return text === undefined || text.length < 300 ? text : `${text.slice(0, 300)}…`;
}

export function sleep(milliseconds) {
  return new Promise((wake) => setTimeout(wake, milliseconds));
}

/** A promise that fails when it takes too long. */
export function within(promise, what, milliseconds = DEADLINE) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Failed(`nothing came: ${what}`)), milliseconds);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Runs checks, prints a line for each, remembers failures. */
export class Checks {
  #count = 0;
  #failed = 0;
  #beside = [];

  async run(name, check, milliseconds = 30_000) {
    this.#count += 1;
    try {
      await within(Promise.resolve().then(check), name, milliseconds);
      console.log(`ok    ${name}`);
    } catch (error) {
      this.#failed += 1;
      console.log(`FAIL  ${name}: ${error instanceof Failed ? error.message : error?.stack}`);
    }
  }

  /** Begins a check that mostly waits. */
  beside(name, check, milliseconds = 60_000) {
    this.#beside.push(this.run(name, check, milliseconds));
  }

  /** Waits for those that were begun beside. */
  others() {
    return Promise.all(this.#beside);
  }

  async finish() {
    await this.others();
    console.log(`${this.#count} checks, ${this.#failed} failed`);
    process.exit(this.#failed || !this.#count ? 1 : 0);
  }
}

/** Things that come one after the other, and somebody who waits for some of them. */
export class Queue {
  #items = [];
  #waiting = [];

  push(item) {
    this.#items.push(item);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const look of waiting) look();
  }

  get length() {
    return this.#items.length;
  }

  get all() {
    return this.#items;
  }

  /** Takes the next item that fits, and leaves the others. */
  async next(fits = () => true, what = "the next one", milliseconds = DEADLINE) {
    const search = async () => {
      for (;;) {
        const at = this.#items.findIndex(fits);
        if (at >= 0) return this.#items.splice(at, 1)[0];
        await new Promise((look) => this.#waiting.push(look));
      }
    };
    return within(search(), what, milliseconds);
  }
}

/** A program under test, with its output as lines. */
export class Program {
  constructor(path, args, options = {}) {
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(ACOLYTE_|ANTHROPIC_|OLLAMA_|VLLM_|OPENAI_|RUST_LOG|SMARTHOLE_)/.test(name)),
    );
    this.child = spawn(path, args, { env, stdio: ["pipe", "pipe", "pipe"], ...options });
    this.lines = new Queue();
    this.events = new Queue();
    this.errors = [];
    readline.createInterface({ input: this.child.stdout }).on("line", (line) => {
      this.lines.push(line);
      if (line.startsWith("{")) this.events.push(JSON.parse(line));
    });
    readline.createInterface({ input: this.child.stderr }).on("line", (line) => {
      this.lines.push(line);
      this.errors.push(line);
    });
    this.ended = once(this.child, "exit").then(([code, signal]) => code ?? signal);
    this.child.stdin.on("error", () => {});
    Program.#running.add(this.child);
    this.child.on("exit", () => Program.#running.delete(this.child));
  }

  static #running = new Set();
  static {
    process.on("exit", () => Program.#running.forEach((child) => child.kill("SIGKILL")));
  }

  get isRunning() {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Waits for a line with this text. */
  line(text, milliseconds) {
    return this.lines.next((line) => line.includes(text), `a line with ${text}`, milliseconds);
  }

  /** Waits for an event of this name with these members. */
  event(name, members = {}, milliseconds = DEADLINE) {
    const fits = (event) =>
      event.event === name && Object.entries(members).every(([key, value]) => event[key] === value);
    return this.events.next(fits, `the event ${name} ${JSON.stringify(members)}`, milliseconds);
  }

  /** Ends it as Ctrl-C does, and returns the exit code. */
  async stop() {
    this.child.kill("SIGINT");
    return within(this.ended, "the end of the program");
  }

  kill() {
    this.child.kill("SIGKILL");
  }
}

/** A router on a free port. */
export async function router(path, ...args) {
  const program = new Program(path, ["router", "--listen", "127.0.0.1:0", "--json", ...args]);
  const { url } = await program.event("listening");
  return Object.assign(program, { url, port: Number(new URL(url).port) });
}

/** A WebSocket with its frames and its end. */
export class Client {
  constructor(url, options = {}) {
    const { protocols, ...rest } = options;
    this.socket = new WebSocket(url, protocols, { perMessageDeflate: false, ...rest });
    this.frames = new Queue();
    this.pings = [];
    this.socket.on("message", (data, isBinary) => {
      this.frames.push(isBinary ? { binary: data } : JSON.parse(data.toString()));
    });
    this.socket.on("ping", (data) => this.pings.push(data.toString("hex")));
    this.closed = new Promise((end) => {
      this.socket.on("close", (code, reason) => end({ code, reason: reason.toString() }));
    });
    this.opened = new Promise((open, fail) => {
      this.socket.on("open", () => open(this));
      this.socket.on("error", fail);
    });
    // What it means is told by the close.
    this.socket.on("error", () => {});
    this.opened.catch(() => {});
  }

  static async open(url, options) {
    return within(new Client(url, options).opened, "an open socket");
  }

  /** Connects and registers. */
  static async register(url, name, description = `Does ${name}.`, options = {}) {
    const client = await Client.open(url, options);
    const answer = await client.introduce({ name, description });
    same(answer.payload.success, true, "the registration");
    return Object.assign(client, { name, id: answer.payload.clientId });
  }

  send(frame) {
    this.socket.send(typeof frame === "string" || frame instanceof Buffer ? frame : JSON.stringify(frame));
  }

  /** Sends a registration and takes its answer. */
  async introduce(payload) {
    this.send({ type: "registration", payload });
    return this.answer();
  }

  answer() {
    return this.frames.next((frame) => frame.type === "registration_response", "an answer");
  }

  async message(milliseconds) {
    const fits = (frame) => frame.type === "message";
    const frame = await this.frames.next(fits, `a message for ${this.name}`, milliseconds);
    return frame.payload;
  }

  respond(messageId, type, payload = {}) {
    this.send({ type: "response", payload: { messageId, type, payload } });
  }

  /** Answers every message from now on. */
  always(type, payload = {}) {
    this.socket.on("message", (data) => {
      const frame = JSON.parse(data.toString());
      if (frame.type === "message") this.respond(frame.payload.id, type, payload);
    });
    return this;
  }

  close(code = 1000, reason = "") {
    this.socket.close(code, reason);
    return within(this.closed, "the close");
  }
}

/** A request over HTTP: its status, its headers, its body. */
export function request(port, path, options = {}, body) {
  const { timeout = DEADLINE, ...rest } = options;
  const asked = new Promise((answer, fail) => {
    const sent = http.request(
      { host: "127.0.0.1", port, path, agent: false, ...rest },
      async (response) => {
        const parts = [];
        try {
          for await (const part of response) parts.push(part);
        } catch (error) {
          return fail(error);
        }
        const text = Buffer.concat(parts).toString();
        let json;
        try {
          json = JSON.parse(text);
        } catch {}
        answer({ status: response.statusCode, headers: response.headers, text, json });
      },
    );
    sent.on("error", fail);
    sent.end(body);
  });
  const answer = within(asked, `an answer to ${path}`, timeout);
  // A check that has failed does not wait for it.
  answer.catch(() => {});
  return answer;
}

/** Says something to a router; waits for what becomes of it if `wait`. */
export function say(port, text, { wait = true, ...more } = {}) {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ text, wait, ...more });
  return request(port, "/input", { method: "POST", headers, timeout: 40_000 }, body);
}

/** A function's name as the title of a check. */
export function title(check) {
  return check.name.replaceAll("_", " ");
}
