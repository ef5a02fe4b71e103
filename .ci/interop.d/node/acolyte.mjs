// What strict clients of Acolyte accept: those of 0.18 to 0.21, those of 0.22, and the next ones. They drop
// or hang on what does not fit, so everything has to.

import { Failed, Program, Queue, expect, within } from "./common.mjs";
import WebSocket from "ws";

/** Describes values: each takes a value and a path, and fails. */
const fail = (path, what, value) => {
  throw new Failed(`${path} ${what}: ${JSON.stringify(value)?.slice(0, 200)}`);
};
const check = (what, fits) => (value, path) => fits(value) || fail(path, `is no ${what}`, value);

const text = check("text", (value) => isText(value));
const word = check("text with something in it", (value) => isText(value) && value !== "");
const flag = check("boolean", (value) => typeof value === "boolean");
const count = check("count", (value) => Number.isSafeInteger(value) && value >= 0);
const place = check("place", (value) => Number.isSafeInteger(value) && value >= 1);
const truth = check("true", (value) => value === true);
const isText = (value) => typeof value === "string";
const matching = (pattern) => check(`text like ${pattern}`, (value) => isText(value) && pattern.test(value));
const one = (...values) => check(`one of ${values}`, (value) => values.includes(value));
const id = (prefix) => matching(new RegExp(`^${prefix}_[a-z0-9]+$`));
// Zod's `datetime()`: a `Z`, and nothing else.
const date = matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

const list = (item) => (value, path) => {
  if (!Array.isArray(value)) fail(path, "is no list", value);
  value.forEach((inner, at) => item(inner, `${path}[${at}]`));
};

/** An object. Names that end in `?` may be missing, but are never null; others nobody reads. */
const object = (members, rest) => (value, path) => {
  if (!isObject(value)) fail(path, "is no object", value);
  const known = new Set();
  for (const [name, member] of Object.entries(members)) {
    const isOptional = name.endsWith("?");
    const key = isOptional ? name.slice(0, -1) : name;
    known.add(key);
    if (key in value) member(value[key], `${path}.${key}`);
    else if (!isOptional) fail(path, `has no ${key}`, value);
  }
  for (const [name, inner] of Object.entries(value)) {
    if (known.has(name)) continue;
    if (rest) rest(inner, `${path}.${name}`);
    else fail(path, `has an unknown member ${name}`, value);
  }
};

const tagged = (tag, kinds) => (value, path) => {
  if (!isObject(value)) fail(path, "is no object", value);
  const kind = kinds[value[tag]];
  if (!kind) fail(path, `has an unknown ${tag}`, value);
  kind(value, path);
};

const detail = object({ "code?": text, "category?": text, "kind?": text, "source?": text, "tool?": text });
// Clients ask for no more than the words; servers always send all.
const problem = { errorMessage: text, "errorId?": id("err"), "errorCode?": text, "error?": detail };
const skill = object({ name: word, instructions: word });

export const ERAS = ["0.18 to 0.21", "0.22", "later"];

/** What clients of an era accept. */
export function era(name) {
  expect(ERAS.includes(name), `an era ${name}`);
  const isOld = name === ERAS[0];
  const part = tagged("kind", {
    "tool-header": object({ kind: text, labelKey: text, "detail?": text, "state?": one("on", "off") }),
    text: object({ kind: text, text }),
    "file-header": object({ kind: text, labelKey: text, count, targets: list(text) }),
    "scope-header": object({ kind: text, labelKey: text, scope: text, patterns: list(text), matches: count }),
    "edit-header": object({
      kind: text, labelKey: text, path: text, added: count, removed: count, [isOld ? "files" : "files?"]: count,
    }),
    diff: object({ kind: text, marker: one("add", "remove", "context"), lineNumber: place, text }),
    "shell-output": object({ kind: text, stream: one("stdout", "stderr"), text }),
    "no-output": object({ kind: text }),
    truncated: object({ kind: text, "count?": count, "unit?": text }),
  });
  const tool = { type: text, toolCallId: text, toolName: text };
  const progress = one("pending", "in_progress", "done", "failed");
  const item = object({ id: text, label: text, status: progress, order: count });
  const groups = object({ type: text, groupId: word, groupTitle: word, items: list(item) });
  const events = {
    status: object({ type: text, state: object({ kind: one("running") }) }),
    reasoning: object({ type: text, text }),
    "text-delta": object({ type: text, text }),
    "tool-call": object({ ...tool, args: object({}, () => {}) }),
    "tool-output": object({ ...tool, content: part }),
    "tool-result": object({ ...tool, "isError?": truth, "errorCode?": text, "error?": detail }),
    usage: object({ type: text, inputTokens: count, outputTokens: count }),
    [name === ERAS[2] ? "tasklist" : "checklist"]: groups,
    // Clients of old drop these, which does no harm.
    notice: object({ type: text, level: one("warn", "error"), message: text, "source?": text }),
    "skill-activated": object({ type: text, skill }),
    "skill-deactivated": object({ type: text, name: text }),
  };
  const event = tagged("type", events);
  const reply = object({
    output: text,
    outputStreamed: flag,
    model: word,
    "error?": text,
    "state?": isOld ? one("done", "awaiting-input") : fail,
    "toolCalls?": list(text),
    "modelCalls?": count,
    "activeSkills?": list(skill),
    "usage?": object({ inputTokens: count, outputTokens: count, totalTokens: count, "inputBudgetTokens?": count }),
    "promptBreakdown?": object({}, count),
  });
  const extra = check("value that a status may have", (value) =>
    ["boolean", "string", "number"].includes(typeof value) || (Array.isArray(value) && value.every(isText)));
  const isSorted = (value) => isText(value) && value === value.split(", ").sort().join(", ");
  const status = object({
    ok: truth,
    providers: list(one("anthropic", "google", "openai", "vercel")),
    [isOld ? "provider_auth?" : "provider_auth"]: list(text),
    model: text,
    protocol_version: one("1"),
    capabilities: check("sorted list", isSorted),
    service: matching(/^http:\/\/localhost:\d+$/),
    tasks_total: count,
    tasks_running: count,
    [isOld ? "tasks_detached" : "tasks_detached?"]: count,
    rpc_queue_length: count,
  }, extra);
  const states = one("accepted", "queued", "running", "completed", "failed", "cancelled");
  const task = object({ id: id("task"), state: states, createdAt: date, updatedAt: date });
  const envelope = { id: id("rpc"), type: text };
  const message = tagged("type", {
    "status.result": object({ ...envelope, status }),
    "chat.accepted": object({ ...envelope, taskId: id("task") }),
    "chat.queued": object({ ...envelope, position: place }),
    "chat.started": object(envelope),
    "chat.event": object({ ...envelope, event }),
    "chat.done": object({ ...envelope, reply }),
    "chat.error": object({ ...envelope, ...problem }),
    "chat.abort.result": object({ ...envelope, requestId: id("rpc"), aborted: flag }),
    "task.status.result": object({ ...envelope, task: (value, path) => value === null || task(value, path) }),
    error: object({ ...envelope, error: word }),
  });
  const frame = tagged("type", {
    ...events,
    done: object({ type: text, reply }),
    error: object({ type: text, ...problem }),
  });
  return { message, frame, status };
}

const RELEASED = ERAS.slice(0, 2).map((name) => [name, era(name)]);

/** Fails unless the clients of all releases accept it. */
export function accepted(kind, value) {
  for (const [name, accepts] of RELEASED) accepts[kind](value, `${kind} for ${name}:`);
}

/** The daemon on a free port. */
export async function daemon(path, folder, ...args) {
  const program = new Program(path, ["daemon", "serve", "--listen", "127.0.0.1:0", "--workspace", folder, ...args]);
  const line = await program.line("listening on ");
  const url = line.split("listening on ")[1].split(" ")[0].replace(/\/$/, "");
  return Object.assign(program, { url, rpc: `${url.replace("http", "ws")}/v1/rpc` });
}

export const request = (message, more = {}) => ({ message, history: [], model: "scripted", ...more });

/** A client with `ws`. Every message is held against what strict clients accept. */
export class Client {
  static #ids = 0;

  static async open(url, protocols = [], options = {}) {
    const client = new Client();
    client.socket = new WebSocket(url, protocols, options);
    client.frames = new Queue();
    client.closed = new Promise((end) => client.socket.on("close", (code) => end(code)));
    client.fault = null;
    client.pongs = new Queue();
    client.socket.on("pong", (data) => client.pongs.push(data.toString()));
    client.socket.on("message", (data, isBinary) => {
      try {
        expect(!isBinary, "bytes");
        const frame = JSON.parse(data.toString());
        accepted("message", frame);
        client.frames.push(frame);
      } catch (error) {
        client.fault ??= error;
        client.frames.push({ type: "fault" });
      }
    });
    await within(new Promise((open, refuse) => {
      client.socket.on("open", open);
      client.socket.on("error", refuse);
      client.socket.on("unexpected-response", (_, answer) => {
        refuse(Object.assign(new Failed(`refused with ${answer.statusCode}`), { answer }));
      });
    }), "the upgrade");
    return client;
  }

  send(frame) {
    this.socket.send(typeof frame === "string" || Buffer.isBuffer(frame) ? frame : JSON.stringify(frame));
  }

  /** The next message with this id. */
  async next(id) {
    const frame = await this.frames.next((it) => it.id === id || it.type === "fault", `a message for ${id}`);
    if (this.fault) throw this.fault;
    return frame;
  }

  async ask(type, payload) {
    const id = `rpc_q${(Client.#ids += 1)}`;
    this.send({ id, type, ...(payload && { payload }) });
    return this.next(id);
  }

  start(message, more) {
    const id = `rpc_c${(Client.#ids += 1)}`;
    this.send({ id, type: "chat.start", payload: { request: request(message, more) } });
    return id;
  }

  /** All messages of a chat. */
  async end(id) {
    const frames = [];
    do frames.push(await this.next(id));
    while (!["chat.done", "chat.error", "error"].includes(frames.at(-1).type));
    return frames;
  }

  chat(message, more) {
    return this.end(this.start(message, more));
  }

  close() {
    this.socket.close();
    return within(this.closed, "the close");
  }
}
