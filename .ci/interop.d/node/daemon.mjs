// Node's `ws` and its own `fetch` against our daemon: what strict clients of all eras need.
//
//   node daemon.mjs DAEMON VECTORS

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Checks, Failed, expect, same, title, within } from "./common.mjs";
import { Client, ERAS, accepted, daemon, era, request } from "./acolyte.mjs";

const [program, vectors] = process.argv.slice(2);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "daemon-"));
process.on("exit", () => fs.rmSync(folder, { recursive: true, force: true }));
fs.writeFileSync(path.join(folder, "a.txt"), "one\ntwo\n");
const checks = new Checks();
const served = await daemon(program, folder);
const WORK = [
  "read a.txt", "search two", "list files", '!tool file-find {"glob": "*.txt"}', "create b/c.txt: hello",
  "edit b/c.txt: hello -> bye", "edit a.txt: two -> 2", "run echo out; echo err >&2", "run true", "run exit 3",
  "run seq 2000", "read nope", "read ../x", "!tool nope {}", "!tool file-read {oops", "!tool file-read {}",
  "!think hard", "!fail", "!break", "plan: read a.txt; read nope; say it", "hi", "",
];

/** What clients are known to accept, and to hang on or to drop: or else this program proves nothing. */
async function the_judge_is_one() {
  const id = "rpc_a";
  const said = { output: "x", outputStreamed: true, model: "m" };
  const done = (reply) => ({ id, type: "chat.done", reply: { ...said, ...reply } });
  const event = (event) => ({ id, type: "chat.event", event });
  const error = (members) => ({ id, type: "chat.error", errorMessage: "x", ...members });
  const task = (date) => {
    const task = { id: "task_a", state: "running", createdAt: date, updatedAt: date };
    return { id, type: "task.status.result", task };
  };
  const usage = { inputTokens: 1, outputTokens: 2 };
  const whole = { ...usage, totalTokens: 3 };
  for (const good of [done(), error(), task("2026-01-01T00:00:00.123Z"), done({ usage: whole })]) {
    accepted("message", good);
  }
  for (const bad of [
    done({ outputStreamed: undefined }), done({ model: "" }), done({ usage }), done({ error: null }),
    done({ state: "done" }),
    error({ errorId: null }), error({ errorId: "err_A" }), error({ errorMessage: undefined, error: "x" }),
    task("2026-01-01T00:00:00.123+00:00"), task("2026-01-01T00:00:00"), { id, type: "task.status.result" },
    { id, type: "chat.queued", position: 0 }, { id: "rpc_A", type: "chat.started" }, { type: "chat.started" },
    { id, type: "chat.accepted", taskId: "rpc_a" }, { id, payload: done() }, event({ type: "tasklist" }),
    event({ type: "usage", inputTokens: 1.5, outputTokens: 0 }), event({ type: "later" }),
    event({ type: "status", state: "running" }),
    event({ type: "tool-output", toolCallId: "c", toolName: "t", content: "text" }),
  ]) {
    let isAccepted = true;
    try {
      accepted("message", JSON.parse(JSON.stringify(bad)));
    } catch (error) {
      if (!(error instanceof Failed)) throw error;
      isAccepted = false;
    }
    expect(!isAccepted, `it accepts ${JSON.stringify(bad)}`);
  }
  for (const name of fs.readdirSync(vectors).filter((name) => name.includes("auth-chat"))) {
    // What a server sends suits the clients of its time, but for what it lacks that others want.
    const judge = era(ERAS[name.startsWith("v0210") ? 0 : 2]);
    const lines = fs.readFileSync(path.join(vectors, name), "utf8").trim().split("\n");
    for (const { dir, kind, msg } of lines.map((line) => JSON.parse(line))) {
      if (dir !== "s2c" || kind !== "text") continue;
      if (msg.reply) msg.reply.outputStreamed ??= true;
      judge.message(msg, name);
    }
  }
}

async function everything_fits_the_clients_of_all_eras() {
  const client = await Client.open(served.rpc);
  const seen = new Set();
  for (const words of WORK) {
    const frames = await client.chat(words);
    for (const { type, event } of frames) {
      seen.add(event ? `${event.type} ${event.content?.kind ?? ""}`.trim() : type);
    }
    const { task } = await client.ask("task.status", { taskId: frames[0].taskId });
    same(task.state, frames.at(-1).type === "chat.done" ? "completed" : "failed", `the task of ${words}`);
  }
  for (const more of [{ workspace: "/nowhere" }, { model: "" }, { history: [null] }]) await client.chat("hi", more);
  const skill = { name: "s", instructions: "i" };
  for (const { event } of await client.chat("hi", { activeSkills: [skill] })) seen.add(event?.type);
  await client.ask("status.get");
  const wanted = [
    "chat.accepted", "chat.started", "chat.done", "status", "reasoning", "text-delta", "tool-call", "tool-result",
    "usage", "checklist", "skill-activated", "tool-output file-header", "tool-output scope-header",
    "tool-output edit-header", "tool-output diff", "tool-output shell-output",
  ];
  for (const kind of wanted) expect(seen.has(kind), `nothing like ${kind} was seen: ${[...seen]}`);
  same(await client.close(), 1005, "the close");
}

async function the_queue_fits_too() {
  const client = await Client.open(served.rpc);
  const ids = Array.from({ length: 28 }, (_, number) => client.start(number ? `chat ${number}` : "!slow 100 10"));
  const refused = await Promise.all(ids.slice(26).map((id) => client.end(id)));
  same(refused.map(([{ type }]) => type), ["error", "error"], "the 27th and 28th");
  const { aborted } = await client.ask("chat.abort", { requestId: ids[1] });
  same(aborted, true, "an abort");
  const ended = await Promise.all(ids.slice(0, 26).map((id) => client.end(id)));
  same(ended[1].at(-1).errorCode, "E_ABORTED", "the aborted one");
  same(ended.filter((frames) => frames.at(-1).type === "chat.done").length, 25, "the others");
  const places = ended[25].filter(({ type }) => type === "chat.queued").map(({ position }) => position);
  same(places, Array.from({ length: 25 }, (_, at) => 25 - at), "the places of the last one");
  await client.close();
}

async function parts_bytes_and_compression() {
  const client = await Client.open(served.rpc, [], { perMessageDeflate: true });
  same(client.socket.extensions, "", "extensions");
  const start = { id: "rpc_parts", type: "chat.start", payload: { request: request("grüße 🦀") } };
  const data = Buffer.from(JSON.stringify(start));
  for (let at = 0; at < data.length; at += 7) {
    client.socket.send(data.subarray(at, at + 7), { fin: at + 7 >= data.length, binary: true });
    if (at === 35) client.socket.ping("between");
  }
  const frames = await client.end("rpc_parts");
  same(frames.at(-1).reply.output, "grüße 🦀", "the answer");
  await client.pongs.next((it) => it === "between", "a pong");
  client.send(Buffer.from('{"id":"rpc_bytes","type":"status.get"}'));
  same((await client.next("rpc_bytes")).type, "status.result", "bytes");
  client.socket.close(4001, "bye");
  same(await within(client.closed, "the close"), 4001, "the code comes back");
}

async function subprotocols_and_keys() {
  const key = "node-key-1";
  const locked = await daemon(program, folder, "--api-key", key);
  const { url, rpc } = locked;
  for (const [protocols, headers, selected] of [
    [[`bearer.${key}`], {}, `bearer.${key}`],
    [["acolyte.v1", `bearer.${key}`], {}, "acolyte.v1"],
    [[], { authorization: `Bearer ${key}` }, ""],
    [["acolyte.v1"], { authorization: `Bearer ${key}` }, "acolyte.v1"],
    [[], {}], [["acolyte.v1"], {}], [[`bearer.${key}x`], {}], [[], { authorization: `bearer ${key}` }],
  ]) {
    try {
      const client = await Client.open(rpc, protocols, { headers });
      same(client.socket.protocol, selected, `the subprotocol for ${protocols}`);
      await client.chat("hi");
      await client.close();
    } catch (error) {
      if (!error.answer) throw error;
      same([error.answer.statusCode, selected], [401, undefined], `${protocols} ${JSON.stringify(headers)}`);
    }
  }
  for (const [headers, status] of [
    [{}, 401],
    [{ authorization: `Bearer ${key}` }, 200],
    [{ "sec-websocket-protocol": `bearer.${key}` }, 200],
  ]) {
    same((await fetch(`${url}/v1/status`, { headers })).status, status, `status with ${Object.keys(headers)}`);
    const body = JSON.stringify(request("hi"));
    const answer = await fetch(`${url}/v1/chat/stream`, { method: "POST", headers, body });
    same(answer.status, status, `a stream with ${Object.keys(headers)}`);
    await answer.text();
  }
  same(await locked.stop(), 0, "the exit code");
  expect(!locked.lines.all.some((line) => line.includes(key)), "the key is shown");
}

async function the_subprotocol_may_be_any_without_a_key() {
  for (const protocols of [["x"], ["bearer.anything", "y"]]) {
    const client = await Client.open(served.rpc, protocols);
    same(client.socket.protocol, protocols[0], "the first one");
    await client.close();
  }
}

/** A chat over HTTP, block by block, as the reader of a known client does it. */
async function* blocks(words, more, signal) {
  const body = JSON.stringify(request(words, more));
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${served.url}/v1/chat/stream`, { method: "POST", body, signal, headers });
  same([answer.status, answer.headers.get("content-type")], [200, "text/event-stream"], "the answer");
  let rest = "";
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    const found = (rest + piece).split("\n\n");
    rest = found.pop();
    yield* found;
  }
  same(rest, "", "the end of the stream");
}

async function streams_fit_too() {
  for (const words of [...WORK, "grüße 🦀 \u2028 \" \\ \u0000"]) {
    const frames = [];
    for await (const block of blocks(words, { sessionId: "not checked", extra: 1 })) {
      expect(block.startsWith("data: ") && !block.includes("\n"), `a block ${block.slice(0, 80)}`);
      const frame = JSON.parse(block.slice(6));
      accepted("frame", frame);
      expect(!["done", "error"].includes(frames.at(-1)?.type), "more after the end");
      frames.push(frame);
    }
    const end = frames.at(-1);
    expect(["done", "error"].includes(end.type), `${words} has no end`);
    const calls = new Set();
    for (const { type, toolCallId } of frames) {
      if (type === "tool-call") calls.add(toolCallId);
      else if (toolCallId) expect(calls.has(toolCallId), "an output without its call");
    }
    if (end.type === "done") same(end.reply.toolCalls.length, calls.size, "the tools of the reply");
  }
}

async function a_stream_is_left() {
  const leave = new AbortController();
  try {
    for await (const block of blocks("!slow 1000 20", {}, leave.signal)) {
      if (block.includes("text-delta")) leave.abort();
    }
    throw new Failed("it came to its end");
  } catch (error) {
    same(error.name, "AbortError", "the end");
  }
  const answer = await fetch(`${served.url}/healthz`);
  same([answer.status, await answer.json()], [200, { ok: true }], "health");
}

async function the_status_fits_the_clients_of_all_eras() {
  const answer = await fetch(`${served.url}/v1/status`);
  const status = await answer.json();
  accepted("status", status);
  same(status.capabilities, "ask-first, error.structured, stream.sse, workspace.path", "capabilities");
  same(Object.keys(status).includes("status"), false, "it is flat");
}

async function pages_of_others_stay_outside() {
  for (const [origin, may] of [["https://evil.example", false], [served.url, true]]) {
    const open = Client.open(served.rpc, [], { origin });
    const status = await open.then((client) => client.close().then(() => 101), (error) => error.answer?.statusCode);
    same(status, may ? 101 : 403, origin);
    const asked = await fetch(`${served.url}/v1/status`, { headers: { origin } });
    const allowed = asked.headers.get("access-control-allow-origin");
    same([asked.status, allowed], [may ? 200 : 403, null], `HTTP from ${origin}`);
  }
}

async function large_messages() {
  const client = await Client.open(served.rpc);
  client.send(JSON.stringify({ id: "rpc_large", type: "status.get", more: "x".repeat(15 << 20) }));
  same((await client.next("rpc_large")).type, "status.result", "15 MiB");
  same((await client.chat("🦀".repeat(50_001)))[0].error, "Invalid RPC message", "50,001 crabs");
  client.send("x".repeat(17 << 20));
  same(await within(client.closed, "the close"), 1009, "17 MiB");
}

for (const check of [
  the_judge_is_one,
  everything_fits_the_clients_of_all_eras,
  the_queue_fits_too,
  parts_bytes_and_compression,
  subprotocols_and_keys,
  the_subprotocol_may_be_any_without_a_key,
  streams_fit_too,
  a_stream_is_left,
  the_status_fits_the_clients_of_all_eras,
  pages_of_others_stay_outside,
  large_messages,
]) {
  await checks.run(title(check), check);
}
await checks.run("the daemon ends", async () => {
  same(await served.stop(), 0, "the exit code");
  expect(!served.errors.some((line) => line.includes("panicked")), "nothing panicked");
});
await checks.finish();
